/* Byte pair encoding (Sennrich 2016): the characters of a word are joined, pair by pair, the pair
 * with the lowest rank first, of equal ones the leftmost. Short words look at all pairs each time;
 * long ones keep a heap. */
#include <assert.h>
#include <stdlib.h>

#include "text/aligned/grow.h"
#include "text/model/model.h"
#include "text/unicode/byte_alphabet.h"
#include "text/unicode/utf8.h"

#define SHORT_SYMBOLS 48
#define NO_RANK UINT32_MAX
#define NO_SYMBOL UINT32_MAX

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= UINT64_C(0xD6E8FEB86659FD93);
    return x ^ x >> 32;
}

status bpe_create_merges(model *m, size_t count)
{
    size_t places = 16;
    while (places < 2 * count)
        places *= 2;
    m->merges = malloc(places * sizeof *m->merges);
    if (m->merges == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %zu merges", count);
    for (size_t i = 0; i < places; i++)
        m->merges[i].pair = BPE_NO_PAIR;
    m->merge_mask = (uint32_t)(places - 1);
    return STATUS_OK;
}

/* Where a pair is, or would be, in the table. */
static const bpe_merge *find_merge(const model *m, uint32_t left, uint32_t right)
{
    uint64_t pair = (uint64_t)left << 32 | right;
    for (uint32_t at = (uint32_t)mix(pair) & m->merge_mask;; at = (at + 1) & m->merge_mask) {
        if (m->merges[at].pair == pair || m->merges[at].pair == BPE_NO_PAIR)
            return m->merges + at;
    }
}

void bpe_add_merge(model *m, uint32_t left, uint32_t right, uint32_t rank, uint32_t joined)
{
    bpe_merge *place = m->merges + (find_merge(m, left, right) - m->merges);
    *place = (bpe_merge){(uint64_t)left << 32 | right, rank, joined};
}

typedef struct symbol {
    uint32_t id, bytes, previous, next;
} symbol;

typedef struct word {
    symbol *symbols;
    size_t count, capacity;
    uint32_t unknown_bytes; /* of unknown characters that are not a symbol yet */
    bool has_unknown;
    bool counts_alphabet; /* a byte counts as the bytes of the character that stands for it */
} word;

/* UTF-8 bytes of the character that stands for a byte. */
static uint32_t alphabet_bytes(uint8_t byte)
{
    return byte_alphabet_character(byte) < 0x80 ? 1 : 2;
}

static void word_add(word *w, uint32_t id, uint32_t bytes)
{
    assert(w->count < w->capacity);
    uint32_t at = (uint32_t)w->count++;
    w->symbols[at] = (symbol){id, bytes, at - 1, at + 1}; /* at 0: previous is NO_SYMBOL */
}

static void word_flush_unknown(const model *m, word *w)
{
    if (w->has_unknown)
        word_add(w, m->unknown, w->unknown_bytes);
    w->has_unknown = false;
    w->unknown_bytes = 0;
}

/* The token of a character, with the prefix inside a word and the suffix at its end. */
static uint32_t character_id(const model *m, const uint8_t *data, size_t length, bool is_first,
                             bool is_last)
{
    const trie *t = m->vocabulary.trie;
    uint32_t node = TRIE_ROOT;
    if (!is_first && m->prefix_bytes > 0) {
        node = trie_walk(t, node, m->prefix, m->prefix_bytes);
        if (node == TRIE_ROOT)
            return TRIE_NONE;
    }
    node = trie_walk(t, node, data, length);
    if (node != TRIE_ROOT && is_last && m->suffix_bytes > 0)
        node = trie_walk(t, node, m->suffix, m->suffix_bytes);
    return node == TRIE_ROOT ? TRIE_NONE : trie_value(t, node);
}

/* One token for each byte of what was looked up. False: the vocabulary lacks one. */
static bool add_bytes(const model *m, const uint8_t *data, size_t length, bool is_first,
                      bool is_last, word *w)
{
    const struct {
        const void *data;
        size_t bytes;
    } parts[] = {{m->prefix, is_first ? 0 : m->prefix_bytes},
                 {data, length},
                 {m->suffix, is_last ? m->suffix_bytes : 0}};
    for (int part = 0; part < 3; part++) {
        for (size_t i = 0; i < parts[part].bytes; i++) {
            if (m->byte_ids[((const uint8_t *)parts[part].data)[i]] == TRIE_NONE)
                return false;
        }
    }
    for (int part = 0; part < 3; part++) {
        for (size_t i = 0; i < parts[part].bytes; i++)
            word_add(w, m->byte_ids[((const uint8_t *)parts[part].data)[i]], 1);
    }
    return true;
}

static status add_unknown(const model *m, uint32_t length, word *w)
{
    if (!m->has_unknown)
        return STATUS_OK; /* the library drops the character */
    if (m->unknown == TRIE_NONE)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "the tokenizer's unknown token is not in its vocabulary");
    if (w->has_unknown && !m->fuses_unknown)
        word_flush_unknown(m, w);
    w->has_unknown = true;
    w->unknown_bytes += length;
    return STATUS_OK;
}

/* The characters of a word as symbols. */
static status spell(const model *m, const uint8_t *data, size_t bytes, word *w)
{
    for (size_t at = 0; at < bytes;) {
        size_t length = m->is_byte_level ? 1 : utf8_length(data[at]);
        bool is_first = at == 0, is_last = at + length == bytes;
        uint32_t id = character_id(m, data + at, length, is_first, is_last);
        if (id != TRIE_NONE) {
            word_flush_unknown(m, w);
            word_add(w, id, w->counts_alphabet ? alphabet_bytes(data[at]) : (uint32_t)length);
        } else if (!m->falls_back_to_bytes ||
                   !add_bytes(m, data + at, length, is_first, is_last, w)) {
            status s = add_unknown(m, (uint32_t)length, w);
            if (s)
                return s;
        }
        at += length;
    }
    word_flush_unknown(m, w);
    if (w->count > 0)
        w->symbols[w->count - 1].next = NO_SYMBOL;
    return STATUS_OK;
}

static uint32_t pair_rank(const model *m, const symbol *left, const symbol *right, uint32_t *joined)
{
    const bpe_merge *merge = find_merge(m, left->id, right->id);
    if (merge->pair == BPE_NO_PAIR)
        return NO_RANK;
    *joined = merge->joined;
    return merge->rank;
}

/* Joins in place; symbols move together. */
static void join_short(const model *m, word *w)
{
    uint32_t ranks[SHORT_SYMBOLS], joined[SHORT_SYMBOLS];
    symbol *s = w->symbols;
    for (size_t i = 0; i + 1 < w->count; i++)
        ranks[i] = pair_rank(m, s + i, s + i + 1, joined + i);
    while (w->count > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < w->count; i++) {
            if (ranks[i] < ranks[best])
                best = i;
        }
        if (ranks[best] == NO_RANK)
            break;
        s[best].id = joined[best];
        s[best].bytes += s[best + 1].bytes;
        w->count--;
        for (size_t i = best + 1; i < w->count; i++) {
            s[i] = s[i + 1];
            ranks[i - 1] = ranks[i];
            joined[i - 1] = joined[i];
        }
        if (best + 1 < w->count)
            ranks[best] = pair_rank(m, s + best, s + best + 1, joined + best);
        if (best > 0)
            ranks[best - 1] = pair_rank(m, s + best - 1, s + best, joined + best - 1);
    }
}

/* A binary heap of pairs, by rank, then place. */
typedef struct heap_item {
    uint64_t order; /* rank << 32 | place of the left symbol */
    uint32_t joined;
} heap_item;

typedef struct heap {
    heap_item *items;
    size_t count, capacity;
    bool is_broken; /* there was no memory for a pair */
} heap;

static void heap_push(heap *h, const model *m, const symbol *symbols, uint32_t left)
{
    uint32_t joined = 0, rank;
    if (left == NO_SYMBOL || symbols[left].next == NO_SYMBOL)
        return;
    rank = pair_rank(m, symbols + left, symbols + symbols[left].next, &joined);
    if (rank == NO_RANK)
        return;
    if (h->count == h->capacity) {
        size_t capacity = grow_capacity(h->capacity, h->count + 1);
        h->is_broken |= !grow(&h->items, capacity, sizeof *h->items);
        if (h->is_broken)
            return;
        h->capacity = capacity;
    }
    heap_item item = {(uint64_t)rank << 32 | left, joined};
    size_t at = h->count++;
    for (; at > 0 && h->items[(at - 1) / 2].order > item.order; at = (at - 1) / 2)
        h->items[at] = h->items[(at - 1) / 2];
    h->items[at] = item;
}

static heap_item heap_pop(heap *h)
{
    heap_item top = h->items[0], last = h->items[--h->count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= h->count)
            break;
        if (child + 1 < h->count && h->items[child + 1].order < h->items[child].order)
            child++;
        if (h->items[child].order >= last.order)
            break;
        h->items[at] = h->items[child];
        at = child;
    }
    if (h->count > 0)
        h->items[at] = last;
    return top;
}

static status join_long(const model *m, word *w)
{
    heap h = {0};
    symbol *s = w->symbols;
    for (uint32_t i = 0; i + 1 < w->count; i++)
        heap_push(&h, m, s, i);
    while (h.count > 0) {
        heap_item top = heap_pop(&h);
        uint32_t left = (uint32_t)top.order, joined = 0;
        if (s[left].bytes == 0 || s[left].next == NO_SYMBOL)
            continue;
        uint32_t right = s[left].next;
        /* The pair may have changed since. */
        if (pair_rank(m, s + left, s + right, &joined) == NO_RANK || joined != top.joined)
            continue;
        s[left].id = joined;
        s[left].bytes += s[right].bytes;
        s[left].next = s[right].next;
        s[right].bytes = 0;
        if (s[left].next != NO_SYMBOL)
            s[s[left].next].previous = left;
        heap_push(&h, m, s, s[left].previous);
        heap_push(&h, m, s, left);
    }
    free(h.items);
    size_t count = 0;
    for (size_t i = 0; i < w->count; i++) {
        if (s[i].bytes != 0)
            s[count++] = s[i];
    }
    w->count = count;
    return h.is_broken ? grow_fail() : STATUS_OK;
}

/* The library counts the bytes of a word's symbols. Where it drops a byte, which its vocabulary
 * lacks, the symbols behind it move to the front; in a word of bytes, by the bytes of characters.
 */
static status spell_as_library(const model *m, const uint8_t *data, size_t bytes, word *w)
{
    size_t kept = 0;
    status s = spell(m, data, bytes, w);
    for (size_t i = 0; i < w->count; i++)
        kept += w->symbols[i].bytes;
    if (s || !m->is_byte_level || m->has_unknown || kept >= bytes)
        return s;
    w->count = 0;
    w->counts_alphabet = true;
    return spell(m, data, bytes, w);
}

/* Goes on to the byte whose character has byte `to` of the word's characters. */
static size_t find_byte(const uint8_t *data, size_t to, size_t *at, size_t *passed)
{
    while (*passed + alphabet_bytes(data[*at]) <= to)
        *passed += alphabet_bytes(data[(*at)++]);
    return *at;
}

static void add_symbols(const uint8_t *data, const word *w, model_memory *memory)
{
    size_t begin = 0, at = 0, passed = 0;
    if (!model_memory_reserve(memory, w->count))
        return;
    for (size_t i = 0; i < w->count; i++) {
        size_t end = begin + w->symbols[i].bytes;
        if (w->counts_alphabet) {
            size_t first = find_byte(data, begin, &at, &passed);
            size_t last = find_byte(data, end - 1, &at, &passed);
            model_memory_add(memory, w->symbols[i].id, first, last + 1);
        } else {
            model_memory_add(memory, w->symbols[i].id, begin, end);
        }
        begin = end;
    }
}

status model_bpe(const model *m, const uint8_t *data, size_t bytes, model_memory *memory)
{
    if (m->ignores_merges) {
        uint32_t id = trie_find(m->vocabulary.trie, data, bytes);
        if (id != TRIE_NONE) {
            model_memory_add(memory, id, 0, bytes);
            return STATUS_OK;
        }
    }
    /* With byte tokens, prefix and suffix may be spelled too. */
    size_t capacity =
        m->falls_back_to_bytes ? bytes * (1 + m->prefix_bytes) + m->suffix_bytes : bytes;
    word w = {.symbols = model_memory_work(memory, (capacity + 1) * sizeof(symbol)),
              .capacity = capacity + 1};
    if (w.symbols == NULL)
        return grow_fail();
    status failed = spell_as_library(m, data, bytes, &w);
    if (failed)
        return failed;
    if (w.count <= SHORT_SYMBOLS)
        join_short(m, &w);
    else
        failed = join_long(m, &w);
    if (!failed)
        add_symbols(data, &w, memory);
    return failed;
}

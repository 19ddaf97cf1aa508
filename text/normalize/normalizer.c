#include "text/normalize/normalizer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "text/aligned/grow.h"
#include "text/normalize/edit.h"
#include "text/unicode/byte_alphabet.h"
#include "text/unicode/grapheme.h"
#include "text/unicode/properties.h"

void normalizer_dispose(normalizer *n)
{
    pattern_destroy(n->pattern);
    charsmap_destroy(n->charsmap);
    free(n->content);
    *n = (normalizer){0};
}

typedef bool keeps(uint32_t code);

/* Leaves characters out; the first that stays after some begins behind them. */
static void filter(keeps *keep, const aligned_text *from, size_t begin, size_t end,
                   aligned_text *to)
{
    if (!aligned_text_reserve(to, end - begin))
        return;
    for (size_t at = begin; at < end; at += utf8_length(from->data[at])) {
        uint32_t code = utf8_decode(from->data + at);
        if (keep(code))
            aligned_text_put(to, code, aligned_text_span(from, at));
    }
}

static bool is_not_mark(uint32_t code)
{
    return !(unicode_properties(code) & UNICODE_MARK);
}

/* SentencePiece's nmt rules: control characters go, others become spaces. */
static bool nmt_drops(uint32_t c)
{
    return (c >= 1 && c <= 8) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F ||
           c == 0x9F;
}

static bool nmt_is_space(uint32_t c)
{
    return c == 9 || c == 10 || c == 12 || c == 13 || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
           c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
}

static void normalize_nmt(const aligned_text *from, size_t begin, size_t end, aligned_text *to)
{
    if (!aligned_text_reserve(to, end - begin))
        return;
    for (size_t at = begin; at < end; at += utf8_length(from->data[at])) {
        uint32_t code = utf8_decode(from->data + at);
        if (!nmt_drops(code))
            aligned_text_put(to, nmt_is_space(code) ? ' ' : code, aligned_text_span(from, at));
    }
}

static void lowercase(const aligned_text *from, size_t begin, size_t end, aligned_text *to)
{
    if (!aligned_text_reserve(to, end - begin + UTF8_BYTES_MAX))
        return;
    for (size_t at = begin; at < end; at += utf8_length(from->data[at])) {
        uint32_t code = utf8_decode(from->data + at);
        span s = aligned_text_span(from, at);
        if (!aligned_text_reserve(to, end - at + 2 * UTF8_BYTES_MAX))
            return;
        if (code == 0x130) {
            aligned_text_put(to, 'i', s);
            aligned_text_put(to, 0x307, s);
        } else {
            bool lowers = unicode_properties(code) & UNICODE_LOWERS;
            aligned_text_put(to, lowers ? unicode_lowercase(code) : code, s);
        }
    }
}

static bool is_space(const aligned_text *t, size_t at)
{
    return unicode_properties(utf8_decode(t->data + at)) & UNICODE_SPACE;
}

static void strip(const normalizer *n, const aligned_text *from, size_t begin, size_t end,
                  aligned_text *to)
{
    while (n->strips_left && begin < end && is_space(from, begin))
        begin += utf8_length(from->data[begin]);
    while (n->strips_right && begin < end) {
        size_t last = utf8_before(from->data, end);
        if (!is_space(from, last))
            break;
        end = last;
    }
    aligned_text_copy(to, from, begin, end);
}

/* New characters that share the span of the character before byte `at`. */
static void insert(const normalizer *n, const aligned_text *from, size_t begin, size_t at,
                   aligned_text *to)
{
    edit e = edit_begin(from, begin, from->bytes, to);
    const uint8_t *content = (const uint8_t *)n->content;
    e.at = at;
    for (size_t i = 0; i < n->content_bytes; i += utf8_length(content[i]))
        edit_put(&e, utf8_decode(content + i), 1);
}

static status too_long(void)
{
    return status_fail(STATUS_TOO_LARGE, "the text becomes too long when it is normalised");
}

static status replace(const normalizer *n, const aligned_text *from, size_t begin, size_t end,
                      pattern_memory *memory, size_t bytes_max, aligned_text *to)
{
    pattern_search search;
    bool found = begin < end;
    size_t copied = begin, first = 0, last = 0;
    pattern_search_begin(&search, n->pattern, memory, from->data + begin, end - begin);
    while (found) {
        status s = pattern_search_next(&search, &found, &first, &last);
        if (s)
            return s;
        if (!found)
            break;
        aligned_text_copy(to, from, copied, begin + first);
        insert(n, from, begin, begin + last, to);
        copied = begin + last;
        if (to->bytes > bytes_max)
            return too_long();
        if (to->is_broken)
            return grow_fail();
    }
    aligned_text_copy(to, from, copied, end);
    return STATUS_OK;
}

/* Before text that is not empty; what is new stands for the first character. */
static void prepend(const normalizer *n, const aligned_text *from, size_t begin, size_t end,
                    aligned_text *to)
{
    if (begin == end)
        return;
    const uint8_t *content = (const uint8_t *)n->content;
    span first = aligned_text_span(from, begin);
    if (!aligned_text_reserve(to, n->content_bytes + end - begin))
        return;
    for (size_t i = 0; i < n->content_bytes; i += utf8_length(content[i]))
        aligned_text_put(to, utf8_decode(content + i), first);
    aligned_text_copy(to, from, begin, end);
}

/* The library's way to count: what is left out is taken off the character before it. Where there is
 * none, it is not counted, and spans from there on are those of characters further left. */
typedef struct counted_edit {
    edit e;
    bool has_last;
    uint32_t last; /* the last character, which may still leave out some behind it */
    int change;
} counted_edit;

static void counted_put(counted_edit *c, uint32_t code, int change)
{
    if (c->has_last)
        edit_put(&c->e, c->last, c->change);
    c->has_last = true;
    c->last = code;
    c->change = change;
}

/* `before` characters become those of `with`. */
static void replace_part(counted_edit *c, size_t before, const uint8_t *with, size_t with_bytes)
{
    size_t index = 0;
    for (size_t i = 0; i < with_bytes; i += utf8_length(with[i]), index++)
        counted_put(c, utf8_decode(with + i), index >= before);
    if (index < before && c->has_last)
        c->change -= (int)(before - index);
}

static void normalize_charsmap(const charsmap *map, const aligned_text *from, size_t begin,
                               size_t end, aligned_text *to)
{
    counted_edit c = {.e = edit_begin(from, begin, end, to)};
    if (!aligned_text_reserve(to, end - begin + UTF8_BYTES_MAX))
        return;
    for (size_t at = begin; at < end;) {
        size_t bytes = grapheme_bytes(from->data + at, end - at), found_bytes = 0;
        const uint8_t *found = NULL;
        if (bytes < 6)
            found = charsmap_find(map, from->data + at, bytes, &found_bytes);
        if (found != NULL) {
            replace_part(&c, utf8_count(from->data + at, bytes), found, found_bytes);
            at += bytes;
            continue;
        }
        for (size_t stop = at + bytes; at < stop;) {
            unsigned length = utf8_length(from->data[at]);
            found = charsmap_find(map, from->data + at, length, &found_bytes);
            if (found != NULL)
                replace_part(&c, 1, found, found_bytes);
            else
                counted_put(&c, utf8_decode(from->data + at), 0);
            at += length;
        }
    }
    if (c.has_last)
        edit_put(&c.e, c.last, c.change);
}

/* SentencePiece's own way: the longest prefix that has a replacement, else one character. */
static void normalize_charsmap_longest(const charsmap *map, const aligned_text *from, size_t begin,
                                       size_t end, aligned_text *to)
{
    counted_edit c = {.e = edit_begin(from, begin, end, to)};
    if (!aligned_text_reserve(to, end - begin + UTF8_BYTES_MAX))
        return;
    for (size_t at = begin; at < end;) {
        size_t bytes = utf8_length(from->data[at]), found_bytes = 0, replacement_bytes = 0;
        const uint8_t *found =
            charsmap_find_longest(map, from->data + at, end - at, &found_bytes, &replacement_bytes);
        bool is_whole = at + found_bytes == end || utf8_is_first(from->data[at + found_bytes]);
        if (found != NULL && is_whole) {
            replace_part(&c, utf8_count(from->data + at, found_bytes), found, replacement_bytes);
            bytes = found_bytes;
        } else {
            counted_put(&c, utf8_decode(from->data + at), 0);
        }
        at += bytes;
    }
    if (c.has_last)
        edit_put(&c.e, c.last, c.change);
}

static void normalize_byte_level(const aligned_text *from, size_t begin, size_t end,
                                 aligned_text *to)
{
    if (!aligned_text_reserve(to, 2 * (end - begin)))
        return;
    for (size_t at = begin; at < end; at++)
        aligned_text_put(to, byte_alphabet_character(from->data[at]), aligned_text_span(from, at));
}

static status apply(const normalizer *n, const aligned_text *from, size_t begin, size_t end,
                    pattern_memory *memory, size_t bytes_max, aligned_text *to)
{
    switch (n->kind) {
    case NORMALIZER_BERT:
        normalize_bert(n, from, begin, end, to);
        break;
    case NORMALIZER_NFC:
    case NORMALIZER_NFKC:
        normalize_compose(from, begin, end, n->kind == NORMALIZER_NFKC, to);
        break;
    case NORMALIZER_NFD:
    case NORMALIZER_NFKD:
        normalize_decompose(from, begin, end, n->kind == NORMALIZER_NFKD, to);
        break;
    case NORMALIZER_LOWERCASE:
        lowercase(from, begin, end, to);
        break;
    case NORMALIZER_STRIP:
        strip(n, from, begin, end, to);
        break;
    case NORMALIZER_STRIP_ACCENTS:
        filter(is_not_mark, from, begin, end, to);
        break;
    case NORMALIZER_REPLACE:
        return replace(n, from, begin, end, memory, bytes_max, to);
    case NORMALIZER_PREPEND:
        prepend(n, from, begin, end, to);
        break;
    case NORMALIZER_CHARSMAP:
        if (n->takes_longest)
            normalize_charsmap_longest(n->charsmap, from, begin, end, to);
        else
            normalize_charsmap(n->charsmap, from, begin, end, to);
        break;
    case NORMALIZER_NMT:
        normalize_nmt(from, begin, end, to);
        break;
    case NORMALIZER_BYTE_LEVEL:
        normalize_byte_level(from, begin, end, to);
        break;
    }
    return to->bytes > bytes_max ? too_long() : STATUS_OK;
}

status normalizer_apply(const normalizer *n, const aligned_text *from, size_t begin, size_t end,
                        pattern_memory *memory, size_t bytes_max, aligned_text *to)
{
    assert(!to->is_identity && begin <= end && end <= from->bytes);
    status s = apply(n, from, begin, end, memory, bytes_max, to);
    return !s && to->is_broken ? grow_fail() : s;
}

/* What a step makes of an ASCII character wherever it stands. */
static uint8_t map_ascii(const normalizer *n, uint8_t c)
{
    bool is_upper = c >= 'A' && c <= 'Z';
    size_t bytes = 0;
    switch (n->kind) {
    case NORMALIZER_BERT:
        if (n->cleans && (c < 0x20 || c == 0x7F))
            return c >= 9 && c <= 13 && c != 11 && c != 12 ? ' ' : NORMALIZER_SLOW;
        return n->lowers && is_upper ? c | 0x20 : c;
    case NORMALIZER_LOWERCASE:
        return is_upper ? c | 0x20 : c;
    case NORMALIZER_NFC:
    case NORMALIZER_NFD:
    case NORMALIZER_NFKC:
    case NORMALIZER_NFKD:
    case NORMALIZER_STRIP_ACCENTS:
        return c;
    case NORMALIZER_CHARSMAP:
        /* CR LF is one grapheme: */
        return c < 0x20 || charsmap_find(n->charsmap, &c, 1, &bytes) ? NORMALIZER_SLOW : c;
    case NORMALIZER_NMT:
        return nmt_drops(c) ? NORMALIZER_SLOW : nmt_is_space(c) ? ' ' : c;
    default:
        return NORMALIZER_SLOW;
    }
}

void normalizer_ascii_table(const normalizer *steps, size_t count, uint8_t table[128])
{
    for (unsigned c = 0; c < 128; c++) {
        uint8_t mapped = (uint8_t)c;
        for (size_t i = 0; i < count && mapped != NORMALIZER_SLOW; i++)
            mapped = map_ascii(steps + i, mapped);
        table[c] = mapped;
    }
}

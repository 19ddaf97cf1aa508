#include "text/vocabulary/added.h"

#include <assert.h>
#include <stdlib.h>

#include "text/unicode/properties.h"

void added_tokens_dispose(added_tokens *a)
{
    for (size_t i = 0; i < a->count; i++) {
        free(a->items[i].content);
        free(a->items[i].looked_for);
    }
    trie_destroy(a->before);
    trie_destroy(a->after);
    free(a->items);
    free(a->by_id);
    *a = (added_tokens){0};
}

static status build_trie(const added_tokens *a, bool is_normalized, bool begins[256], trie **out)
{
    size_t count = 0;
    trie_key *keys = malloc((a->count + 1) * sizeof *keys);
    if (keys == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for added tokens");
    for (size_t i = 0; i < a->count; i++) {
        const added_token *t = a->items + i;
        /* Of tokens with one id, the last stands for it. */
        if (t->normalized != is_normalized || t->looked_for_bytes == 0 || a->by_id[t->id] != i)
            continue;
        keys[count++] =
            (trie_key){(const uint8_t *)t->looked_for, t->looked_for_bytes, (uint32_t)i};
        begins[(uint8_t)t->looked_for[0]] = true;
    }
    status s = count > 0 ? trie_create(keys, count, out) : STATUS_OK;
    free(keys);
    return s;
}

status added_tokens_finish(added_tokens *a)
{
    for (size_t i = 0; i < a->count; i++) {
        if (a->items[i].id >= a->id_count)
            a->id_count = a->items[i].id + 1;
    }
    a->by_id = malloc((a->id_count + 1) * sizeof *a->by_id);
    if (a->by_id == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for added tokens");
    for (size_t i = 0; i < a->id_count; i++)
        a->by_id[i] = TRIE_NONE;
    for (size_t i = 0; i < a->count; i++)
        a->by_id[a->items[i].id] = (uint32_t)i;
    status s = build_trie(a, false, a->begins_before, &a->before);
    return s ? s : build_trie(a, true, a->begins_after, &a->after);
}

const added_token *added_tokens_find(const added_tokens *a, uint32_t id)
{
    if (id >= a->id_count || a->by_id[id] == TRIE_NONE)
        return NULL;
    return a->items + a->by_id[id];
}

static bool is_kind(const aligned_text *t, size_t at, unsigned property)
{
    return unicode_properties(utf8_decode(t->data + at)) & property;
}

/* Whether [first, last) of [begin, end) has no word character beside it. */
static bool stands_alone(const aligned_text *t, size_t begin, size_t first, size_t last, size_t end)
{
    return (first == begin || !is_kind(t, utf8_before(t->data, first), UNICODE_WORD)) &&
           (last == end || !is_kind(t, last, UNICODE_WORD));
}

/* The longest token at `at`; TRIE_NONE: none. */
static uint32_t match(const trie *t, const uint8_t *data, size_t at, size_t end, size_t *stop)
{
    uint32_t node = TRIE_ROOT, found = TRIE_NONE;
    for (size_t i = at; i < end; i++) {
        node = trie_step(t, node, data[i]);
        if (node == TRIE_ROOT)
            break;
        if (trie_value(t, node) != TRIE_NONE) {
            found = trie_value(t, node);
            *stop = i + 1;
        }
    }
    return found;
}

void added_tokens_split(const added_tokens *a, bool is_normalized, const aligned_text *text,
                        size_t begin, size_t end, pieces *out)
{
    const trie *t = is_normalized ? a->after : a->before;
    const bool *begins = is_normalized ? a->begins_after : a->begins_before;
    const uint8_t *data = text->data;
    size_t copied = begin;
    for (size_t at = begin; at < end && t != NULL;) {
        size_t stop = at;
        uint32_t index = begins[data[at]] ? match(t, data, at, end, &stop) : TRIE_NONE;
        if (index == TRIE_NONE) {
            at++;
            continue;
        }
        const added_token *token = a->items + index;
        size_t first = at, last = stop;
        at = stop;
        if (token->single_word && !stands_alone(text, begin, first, last, end))
            continue;
        while (token->lstrip && first > copied) {
            size_t before = utf8_before(data, first);
            if (!is_kind(text, before, UNICODE_SPACE))
                break;
            first = before;
        }
        while (token->rstrip && last < end && is_kind(text, last, UNICODE_SPACE))
            last += utf8_length(data[last]);
        if (token->lstrip && first < copied)
            first = copied;
        if (first >= last) /* the token before took these spaces */
            continue;
        if (copied < first)
            pieces_add(out, copied, first, PIECE_IS_TEXT);
        pieces_add(out, first, last, token->id);
        copied = last;
    }
    if (copied < end)
        pieces_add(out, copied, end, PIECE_IS_TEXT);
}

/* Tokens that were added to the vocabulary. Their ids are those of the model's vocabulary; others
 * are numbered behind it, whatever the file says, as the library does. */
#include <stdlib.h>
#include <string.h>

#include "text/load/fields.h"
#include "text/load/load.h"

#define ADDED_TOKENS_MAX (1u << 20)

/* Normalised, where it is looked for in normalised text. */
static status find_text(const struct tokenizer *t, added_token *a)
{
    aligned_text text = {0}, next = {0};
    pattern_memory memory = {0};
    status s = STATUS_OK;
    aligned_text_set(&text, (const uint8_t *)a->content, a->content_bytes, false);
    if (text.is_broken)
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for added tokens");
    for (size_t i = 0; i < t->normalizer_count && a->normalized && !s; i++) {
        aligned_text_clear(&next);
        s = normalizer_apply(t->normalizers + i, &text, 0, text.bytes, &memory,
                             ADDED_TOKEN_BYTES_MAX * 16, &next);
        aligned_text swapped = text;
        text = next;
        next = swapped;
    }
    if (!s)
        s = field_copy(text.bytes ? (const char *)text.data : "", text.bytes, &a->looked_for);
    a->looked_for_bytes = text.bytes;
    aligned_text_dispose(&text);
    aligned_text_dispose(&next);
    pattern_memory_dispose(&memory);
    return s;
}

static status read_token(const json_t *c, added_token *a)
{
    a->normalized = true;
    status s = field_text(c, "content", &a->content, &a->content_bytes);
    if (!s && a->content == NULL)
        return status_fail(STATUS_CORRUPT, "\"content\" is missing");
    if (!s && a->content_bytes > ADDED_TOKEN_BYTES_MAX)
        return status_fail(STATUS_TOO_LARGE, "\"content\" has %zu bytes; at most %d are supported",
                           a->content_bytes, ADDED_TOKEN_BYTES_MAX);
    if (!s)
        s = field_bool(c, "single_word", &a->single_word);
    if (!s)
        s = field_bool(c, "lstrip", &a->lstrip);
    if (!s)
        s = field_bool(c, "rstrip", &a->rstrip);
    if (!s)
        s = field_bool(c, "normalized", &a->normalized);
    return s ? s : field_bool(c, "special", &a->special);
}

/* By content, of tokens that came before. */
typedef struct numbering {
    uint32_t next_id;
    json_t *ids; /* of new tokens, by content */
} numbering;

static status give_id(const struct tokenizer *t, numbering *n, added_token *a)
{
    a->id = vocabulary_find(&t->model.vocabulary, a->content, a->content_bytes);
    if (a->id != TRIE_NONE)
        return STATUS_OK;
    const json_t *known = json_object_getn(n->ids, a->content, a->content_bytes);
    if (known != NULL) {
        a->id = (uint32_t)json_integer_value(known);
        return STATUS_OK;
    }
    a->id = n->next_id++;
    if (a->id >= VOCABULARY_IDS_MAX)
        return status_fail(STATUS_TOO_LARGE, "token id %u; ids below %u are supported", a->id,
                           VOCABULARY_IDS_MAX);
    if (json_object_setn_new(n->ids, a->content, a->content_bytes, json_integer(a->id)) != 0)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for added tokens");
    return STATUS_OK;
}

static status read_tokens(const json_t *list, struct tokenizer *t, numbering *n)
{
    added_tokens *all = &t->added;
    size_t count = json_array_size(list);
    all->items = calloc(count + 1, sizeof *all->items);
    if (all->items == NULL || n->ids == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for added tokens");
    for (size_t i = 0; i < count; i++) {
        added_token *a = all->items + all->count++;
        status s = read_token(json_array_get(list, i), a);
        if (!s && a->content_bytes == 0) {
            free(a->content); /* an empty token does not count */
            *a = (added_token){0};
            all->count--;
            continue;
        }
        if (!s)
            s = give_id(t, n, a);
        if (!s)
            s = find_text(t, a);
        if (s)
            return status_prefix(s, "\"added_tokens\"[%zu]", i);
    }
    return STATUS_OK;
}

status text_load_added_tokens(const json_t *file, struct tokenizer *t)
{
    const json_t *list = json_object_get(file, "added_tokens");
    numbering n = {.next_id = (uint32_t)t->model.vocabulary.count, .ids = json_object()};
    status s = STATUS_OK;
    if (field_is_there(list) && !json_is_array(list))
        s = status_fail(STATUS_CORRUPT, "\"added_tokens\": expected an array");
    else if (json_array_size(list) > ADDED_TOKENS_MAX)
        s = status_fail(STATUS_TOO_LARGE, "\"added_tokens\": more than %u", ADDED_TOKENS_MAX);
    else
        s = read_tokens(list, t, &n);
    json_decref(n.ids);
    return s ? s : added_tokens_finish(&t->added);
}

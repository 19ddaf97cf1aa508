#include "text/tokenizer.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file_reader.h"
#include "text/load/fields.h"
#include "text/load/load.h"
#include "text/load/older.h"
#include "text/scratch.h"
#include "text/unicode/properties.h"

/* It is not applied. */
static status check_truncation(const json_t *file, tokenizer *t)
{
    size_t tokens_max;
    const json_t *c = json_object_get(file, "truncation");
    status s = field_is_there(c) ? field_size(c, "max_length", &tokens_max) : STATUS_OK;
    (void)t;
    return s ? status_prefix(s, "\"truncation\"") : STATUS_OK;
}

static status load_parts(const json_t *file, tokenizer *t)
{
    static status (*const loaders[])(const json_t *, struct tokenizer *) = {
        text_load_normalizers, text_load_splitters, text_load_model, text_load_added_tokens,
        text_load_processor,   text_load_decoders,  check_truncation};
    if (!json_is_object(file))
        return status_fail(STATUS_CORRUPT, "expected an object");
    for (size_t i = 0; i < sizeof loaders / sizeof *loaders; i++) {
        status s = loaders[i](file, t);
        if (s)
            return s;
    }
    return STATUS_OK;
}

/* Takes `file`. `has_exact_scores`: it was not read from a tokenizer.json. */
static status make(json_t *file, const char *name, bool has_exact_scores, tokenizer **out)
{
    static atomic_uint_fast64_t serials;
    tokenizer *t = NULL;
    status s = unicode_initialise();
    if (s)
        goto end;
    t = calloc(1, sizeof *t);
    if (t == NULL) {
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for a tokenizer");
        goto end;
    }
    t->serial = atomic_fetch_add(&serials, 1) + 1;
    t->model.has_exact_scores = has_exact_scores;
    s = load_parts(file, t);
    if (s) {
        s = status_prefix(s, "%s", name);
        tokenizer_destroy(t);
        goto end;
    }
    *out = t;
end:
    json_decref(file);
    return s;
}

status tokenizer_parse(const char *json, size_t bytes, const char *name, tokenizer **out)
{
    json_error_t error;
    assert(json != NULL && out != NULL);
    json_t *file = json_loadb(json, bytes, JSON_ALLOW_NUL, &error);
    if (file == NULL && field_lacked_memory(&error))
        return status_fail(STATUS_OUT_OF_MEMORY, "%s: no memory to read it", name);
    if (file == NULL)
        return status_fail(STATUS_CORRUPT, "%s: line %d: %s", name, error.line, error.text);
    return make(file, name, false, out);
}

status tokenizer_load(const char *folder, tokenizer **out)
{
    char path[4096];
    void *data = NULL;
    size_t bytes = 0;
    if ((size_t)snprintf(path, sizeof path, "%s/tokenizer.json", folder) >= sizeof path)
        return status_fail(STATUS_INVALID_ARGUMENT, "the path of the tokenizer is too long");
    status s = file_reader_read_whole(path, TOKENIZER_FILE_BYTES_MAX, &data, &bytes);
    if (s == STATUS_NOT_FOUND) {
        json_t *file = NULL;
        s = text_load_older(folder, &file);
        return s ? s : make(file, folder, true, out);
    }
    if (s)
        return s;
    s = tokenizer_parse(data, bytes, path, out);
    free(data);
    return s;
}

void tokenizer_destroy(tokenizer *t)
{
    if (t == NULL)
        return;
    for (size_t i = 0; i < t->normalizer_count; i++)
        normalizer_dispose(t->normalizers + i);
    for (size_t i = 0; i < t->splitter_count; i++)
        splitter_dispose(t->splitters + i);
    for (size_t i = 0; i < t->decoder_count; i++)
        decoder_dispose(t->decoders + i);
    model_dispose(&t->model);
    added_tokens_dispose(&t->added);
    free(t);
}

tokenizer_scratch *tokenizer_scratch_create(void)
{
    return calloc(1, sizeof(tokenizer_scratch));
}

void tokenizer_scratch_destroy(tokenizer_scratch *s)
{
    if (s == NULL)
        return;
    for (int i = 0; i < 3; i++)
        aligned_text_dispose(s->texts + i);
    for (int i = 0; i < 2; i++) {
        pieces_dispose(s->pieces + i);
        free(s->sequences[i].ids);
        free(s->sequences[i].spans);
        free(s->sequences[i].spaces);
    }
    pattern_memory_dispose(&s->pattern);
    model_memory_dispose(&s->model);
    free(s->ids);
    free(s->type_ids);
    free(s->spans);
    free(s->sequence_of);
    free(s);
}

status tokenizer_encode(const tokenizer *t, tokenizer_scratch *s, tokenizer_text first,
                        const tokenizer_text *second, const tokenizer_options *options,
                        tokenizer_tokens *out)
{
    assert(t != NULL && s != NULL && out != NULL);
    /* How a pair is truncated depends on the lengths of both; on the left the last tokens count. */
    size_t most = second != NULL || options->truncates_left ? 0 : options->tokens_max;
    status failed = text_encode_sequence(t, s, 0, first, most);
    if (!failed && second != NULL)
        failed = text_encode_sequence(t, s, 1, *second, most);
    return failed ? failed : text_assemble(t, s, second != NULL, options, out);
}

const char *tokenizer_token(const tokenizer *t, uint32_t id, size_t *bytes)
{
    const added_token *added = added_tokens_find(&t->added, id);
    if (added != NULL) {
        *bytes = added->content_bytes;
        return added->content;
    }
    return (const char *)vocabulary_token(&t->model.vocabulary, id, bytes);
}

uint32_t tokenizer_id_count(const tokenizer *t)
{
    uint32_t own = t->model.vocabulary.id_count, added = t->added.id_count;
    return own > added ? own : added;
}

size_t tokenizer_special_count(const tokenizer *t, bool is_pair)
{
    return is_pair ? t->processor.pair.special_count : t->processor.single.special_count;
}

#include "models/text/files.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file_reader.h"

#define LABELS_MAX 65536
#define PROMPTS_MAX 256
#define LENGTH_MAX 1000000 /* more: 1e30, which means no limit */
#define FILE_BYTES_MAX ((size_t)64 << 20)

/* NULL and STATUS_OK: there is no such file. */
static status open_file(const char *folder, const char *name, json_t **out)
{
    char path[PATH_MAX];
    *out = NULL;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return status_fail(STATUS_INVALID_ARGUMENT, "the path of %s is too long", name);
    void *data;
    size_t bytes;
    json_error_t error;
    status failure = file_reader_read_whole(path, FILE_BYTES_MAX, &data, &bytes);
    if (failure)
        return failure == STATUS_NOT_FOUND ? STATUS_OK : failure;
    /* Not as other JSON files are read: transformers writes 1e30 as an integer. */
    *out = json_loadb(data, bytes, JSON_DECODE_INT_AS_REAL, &error);
    free(data);
    if (!json_is_object(*out)) {
        json_decref(*out);
        *out = NULL;
        return status_fail(STATUS_CORRUPT, "%s: line %d: %s", path, error.line,
                           error.text[0] ? error.text : "no object");
    }
    return STATUS_OK;
}

static const char *copy(arena *memory, const char *text)
{
    return arena_copy_string(memory, text, strlen(text));
}

static status fail_memory(void)
{
    return status_fail(STATUS_OUT_OF_MEMORY, "no memory for what stands beside a tokenizer");
}

/* A number of 1 to `most`, or 0. */
static int64_t whole(const json_t *v, double most)
{
    double value = json_number_value(v);
    return value >= 1 && value <= most ? (int64_t)value : 0;
}

static void limit_tokens(model_text *t, const json_t *json, const char *key)
{
    int64_t length = whole(json_object_get(json, key), LENGTH_MAX);
    if (length > 0 && length < t->tokens_max)
        t->tokens_max = length;
}

static void read_dimensions(model_text *t, const json_t *json)
{
    const json_t *list = json_object_get(json, "matryoshka_dimensions");
    for (size_t i = 0; i < json_array_size(list) && t->dimension_count < MODEL_DIMENSIONS_MAX;
         i++) {
        int64_t size = whole(json_array_get(list, i), LENGTH_MAX);
        if (size > 0)
            t->dimensions[t->dimension_count++] = size;
    }
    if (t->dimension_count == 0 && json_is_true(json_object_get(json, "is_matryoshka")))
        t->dimensions[t->dimension_count++] = -1;
}

static status read_prompts(model_text *t, arena *memory, json_t *json)
{
    json_t *prompts = json_object_get(json, "prompts");
    size_t count = json_object_size(prompts);
    if (count == 0)
        return STATUS_OK;
    if (count > PROMPTS_MAX)
        return status_fail(STATUS_CORRUPT, "more than %d prompts", PROMPTS_MAX);
    model_prompt *list = arena_allocate_zeroed(memory, count, sizeof(*list));
    if (list == NULL)
        return fail_memory();
    const char *key;
    json_t *value;
    json_object_foreach(prompts, key, value)
    {
        if (!json_is_string(value))
            return status_fail(STATUS_CORRUPT, "prompts.%s is no string", key);
        model_prompt *p = &list[t->prompt_count];
        p->name = copy(memory, key);
        p->bytes = json_string_length(value);
        p->text = arena_copy_string(memory, json_string_value(value), p->bytes);
        if (p->name == NULL || p->text == NULL)
            return fail_memory();
        t->prompt_count++;
    }
    t->prompts = list;
    const char *named = json_string_value(json_object_get(json, "default_prompt_name"));
    if (named == NULL)
        return STATUS_OK;
    t->default_prompt = model_text_prompt(t, named, strlen(named));
    return t->default_prompt != NULL
               ? STATUS_OK
               : status_fail(STATUS_CORRUPT, "default_prompt_name '%s' is none of the prompts",
                             named);
}

/* {"0": "negative", "1": "positive"} */
static status read_labels(model_text *t, arena *memory, json_t *json)
{
    json_t *labels = json_object_get(json, "id2label");
    size_t count = json_object_size(labels);
    if (count == 0)
        return STATUS_OK;
    if (count > LABELS_MAX)
        return status_fail(STATUS_CORRUPT, "more than %d labels", LABELS_MAX);
    const char **list = arena_allocate_zeroed(memory, count, sizeof(*list));
    if (list == NULL)
        return fail_memory();
    const char *key;
    json_t *value;
    json_object_foreach(labels, key, value)
    {
        char *end;
        unsigned long index = strtoul(key, &end, 10);
        if (*key < '0' || *key > '9' || *end != '\0' || index >= count || !json_is_string(value))
            return status_fail(STATUS_CORRUPT, "id2label.%s is no label of %zu", key, count);
        list[index] = copy(memory, json_string_value(value));
        if (list[index] == NULL)
            return fail_memory();
    }
    for (size_t i = 0; i < count; i++) {
        if (list[i] == NULL)
            return status_fail(STATUS_CORRUPT, "id2label has no %zu", i);
    }
    t->labels = list;
    t->label_count = (int)count;
    return STATUS_OK;
}

static bool ends_with(const char *text, const char *end)
{
    size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

static text_head head_of(const json_t *json)
{
    const char *name = json_string_value(json_array_get(json_object_get(json, "architectures"), 0));
    if (name == NULL)
        return TEXT_HEAD_NONE;
    return ends_with(name, "ForSequenceClassification") ? TEXT_HEAD_SEQUENCE
           : ends_with(name, "ForTokenClassification")  ? TEXT_HEAD_TOKENS
           : ends_with(name, "ForQuestionAnswering")    ? TEXT_HEAD_ANSWER
           : ends_with(name, "ForMaskedLM")             ? TEXT_HEAD_WORDS
                                                        : TEXT_HEAD_NONE;
}

static status read_config(model_text *t, arena *memory, json_t *json, text_head *head)
{
    const char *problem = json_string_value(json_object_get(json, "problem_type"));
    *head = head_of(json);
    t->is_multi_label = problem != NULL && strcmp(problem, "multi_label_classification") == 0;
    read_dimensions(t, json);
    return *head == TEXT_HEAD_SEQUENCE || *head == TEXT_HEAD_TOKENS ? read_labels(t, memory, json)
                                                                    : STATUS_OK;
}

static status read_sentence_transformers(model_text *t, arena *memory, json_t *json)
{
    read_dimensions(t, json);
    if (t->dimension_count == 0 && whole(json_object_get(json, "truncate_dim"), LENGTH_MAX) > 0)
        t->dimensions[t->dimension_count++] = -1;
    return read_prompts(t, memory, json);
}

static void read_pooling(model_text *t, const json_t *json)
{
    t->pools_first = json_is_true(json_object_get(json, "pooling_mode_cls_token"));
    t->excludes_prompt = json_is_false(json_object_get(json, "include_prompt"));
}

status text_files_read(model_text *t, arena *memory, const char *folder, text_head *head)
{
    static const char *const names[] = {"config.json", "config_sentence_transformers.json",
                                        "1_Pooling/config.json", "sentence_bert_config.json",
                                        "tokenizer_config.json"};
    *head = TEXT_HEAD_NONE;
    for (int i = 0; i < 5; i++) {
        json_t *json;
        status failure = open_file(folder, names[i], &json);
        if (failure || json == NULL) {
            if (failure)
                return failure;
            continue;
        }
        if (i == 0)
            failure = read_config(t, memory, json, head);
        else if (i == 1)
            failure = read_sentence_transformers(t, memory, json);
        else if (i == 2)
            read_pooling(t, json);
        else
            limit_tokens(t, json, i == 3 ? "max_seq_length" : "model_max_length");
        json_decref(json);
        if (failure)
            return status_prefix(failure, "%s/%s", folder, names[i]);
    }
    return STATUS_OK;
}

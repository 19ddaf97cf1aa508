/* The files that models had before tokenizer.json, read as the converters of the `transformers`
 * library do. */
#include "text/load/older.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file_reader.h"
#include "text/unicode/utf8.h"

#define FILE_BYTES_MAX (64u << 20)

/* STATUS_NOT_FOUND when there is no such file. */
static status read_file(const char *folder, const char *name, char **data, size_t *bytes)
{
    char path[4096];
    void *contents = NULL;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path)
        return status_fail(STATUS_INVALID_ARGUMENT, "the path of the tokenizer is too long");
    status s = file_reader_read_whole(path, FILE_BYTES_MAX, &contents, bytes);
    if (s)
        return s;
    *data = contents;
    size_t valid = utf8_valid_bytes(contents, *bytes);
    if (valid < *bytes) {
        free(contents);
        return status_fail(STATUS_CORRUPT, "%s: byte %zu is not UTF-8", path, valid);
    }
    return STATUS_OK;
}

static status read_json(const char *folder, const char *name, json_t **out)
{
    char *data = NULL;
    size_t bytes = 0;
    json_error_t error;
    status s = read_file(folder, name, &data, &bytes);
    if (s)
        return s;
    *out = json_loadb(data, bytes, JSON_ALLOW_NUL, &error);
    free(data);
    if (!json_is_object(*out)) {
        json_decref(*out);
        *out = NULL;
        return status_fail(STATUS_CORRUPT, "%s/%s: expected a JSON object", folder, name);
    }
    return STATUS_OK;
}

/* A token of tokenizer_config.json: a string, or an object with "content". */
static const char *config_token(const json_t *config, const char *key, const char *fallback)
{
    const json_t *value = json_object_get(config, key);
    const char *text =
        json_string_value(json_is_object(value) ? json_object_get(value, "content") : value);
    return text ? text : fallback;
}

static bool config_bool(const json_t *config, const char *key, bool fallback)
{
    const json_t *value = json_object_get(config, key);
    return json_is_boolean(value) ? json_is_true(value) : fallback;
}

static int add_special(json_t *list, const char *content, bool strips_left)
{
    return json_array_append_new(
        list, json_pack("{s:i,s:s,s:b,s:b,s:b,s:b,s:b}", "id", 0, "content", content, "special", 1,
                        "normalized", 0, "single_word", 0, "lstrip", strips_left, "rstrip", 0));
}

/* Each line is a token, its number the id. */
static json_t *read_lines(const char *data, size_t bytes)
{
    json_t *vocab = json_object();
    json_int_t id = 0;
    for (const char *line = data, *end = data + bytes; line < end; id++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line)), *next = stop ? stop + 1 : end;
        stop = stop ? stop : end;
        while (stop > line && strchr(" \t\r\f\v", stop[-1]))
            stop--;
        json_object_setn_new(vocab, line, (size_t)(stop - line), json_integer(id));
        line = next;
    }
    return vocab;
}

/* Without the two tokens, nothing is put around a text. */
static json_t *bert_post_processor(const json_t *vocab, const char *cls, const char *sep)
{
    if (json_object_get(vocab, cls) == NULL || json_object_get(vocab, sep) == NULL)
        return json_null();
    return json_pack("{s:s,s:[s,I],s:[s,I]}", "type", "BertProcessing", "cls", cls,
                     json_integer_value(json_object_get(vocab, cls)), "sep", sep,
                     json_integer_value(json_object_get(vocab, sep)));
}

/* Takes `vocab`. */
static json_t *make_bert(const json_t *config, json_t *vocab)
{
    static const char *const keys[][2] = {{"pad_token", "[PAD]"},
                                          {"unk_token", "[UNK]"},
                                          {"cls_token", "[CLS]"},
                                          {"sep_token", "[SEP]"},
                                          {"mask_token", "[MASK]"}};
    json_t *added = json_array();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *token = config_token(config, keys[i][0], keys[i][1]);
        if (json_object_get(vocab, token) != NULL)
            add_special(added, token, false);
    }
    bool lowers = config_bool(config, "do_lower_case", true);
    json_t *processor = bert_post_processor(vocab, config_token(config, "cls_token", "[CLS]"),
                                            config_token(config, "sep_token", "[SEP]"));
    return json_pack("{s:o,s:{s:s,s:b,s:b,s:b,s:b},s:{s:s},s:o,s:{s:s,s:s,s:b},s:{s:s,s:s,s:o}}",
                     "added_tokens", added, "normalizer", "type", "BertNormalizer", "clean_text", 1,
                     "handle_chinese_chars", config_bool(config, "tokenize_chinese_chars", true),
                     "lowercase", lowers, "strip_accents",
                     config_bool(config, "strip_accents", lowers), "pre_tokenizer", "type",
                     "BertPreTokenizer", "post_processor", processor, "decoder", "type",
                     "WordPiece", "prefix", "##", "cleanup", 1, "model", "type", "WordPiece",
                     "unk_token", config_token(config, "unk_token", "[UNK]"), "vocab", vocab);
}

/* One merge a line, without the first line's version. */
static json_t *read_merges(const char *data, size_t bytes)
{
    json_t *merges = json_array();
    for (const char *line = data, *end = data + bytes; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line)), *next = stop ? stop + 1 : end;
        stop = stop ? stop : end;
        if (stop > line && stop[-1] == '\r')
            stop--;
        bool is_version = (size_t)(stop - line) >= 8 && memcmp(line, "#version", 8) == 0;
        if (stop > line && !is_version)
            json_array_append_new(merges, json_stringn(line, (size_t)(stop - line)));
        line = next;
    }
    return merges;
}

static json_t *byte_level_processor(const json_t *config, const json_t *vocab, bool is_roberta)
{
    bool adds = config_bool(config, "add_prefix_space", false);
    if (!is_roberta)
        return json_pack("{s:s,s:b}", "type", "ByteLevel", "trim_offsets", 0);
    const char *cls = config_token(config, "cls_token", "<s>");
    const char *sep = config_token(config, "sep_token", "</s>");
    if (json_object_get(vocab, cls) == NULL || json_object_get(vocab, sep) == NULL)
        return json_null();
    return json_pack("{s:s,s:[s,I],s:[s,I],s:b,s:b}", "type", "RobertaProcessing", "cls", cls,
                     json_integer_value(json_object_get(vocab, cls)), "sep", sep,
                     json_integer_value(json_object_get(vocab, sep)), "trim_offsets", 1,
                     "add_prefix_space", adds);
}

/* Takes `vocab` and `merges`. */
static json_t *make_byte_level(const json_t *config, json_t *vocab, json_t *merges)
{
    static const char *const special[] = {"<s>",   "<pad>",  "</s>",
                                          "<unk>", "<mask>", "<|endoftext|>"};
    bool is_roberta =
        json_object_get(vocab, "<s>") != NULL && json_object_get(vocab, "</s>") != NULL;
    json_t *added = json_array();
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        if (json_object_get(vocab, special[i]) != NULL)
            add_special(added, special[i], strcmp(special[i], "<mask>") == 0);
    }
    json_t *processor = byte_level_processor(config, vocab, is_roberta);
    return json_pack("{s:o,s:{s:s,s:b},s:o,s:{s:s},s:{s:s,s:o,s:o}}", "added_tokens", added,
                     "pre_tokenizer", "type", "ByteLevel", "add_prefix_space",
                     config_bool(config, "add_prefix_space", false), "post_processor", processor,
                     "decoder", "type", "ByteLevel", "model", "type", "BPE", "vocab", vocab,
                     "merges", merges);
}

static status load_byte_level(const char *folder, const json_t *config, json_t **out)
{
    json_t *vocab = NULL;
    char *data = NULL;
    size_t bytes = 0;
    status s = read_json(folder, "vocab.json", &vocab);
    if (!s)
        s = read_file(folder, "merges.txt", &data, &bytes);
    if (s) {
        json_decref(vocab);
        return s;
    }
    *out = make_byte_level(config, vocab, read_merges(data, bytes));
    free(data);
    return STATUS_OK;
}

status text_load_older(const char *folder, json_t **out)
{
    json_t *config = NULL, *made = NULL;
    char *data = NULL;
    size_t bytes = 0;
    assert(folder != NULL && out != NULL);
    status s = read_json(folder, "tokenizer_config.json", &config);
    if (s && s != STATUS_NOT_FOUND)
        return s;
    s = read_file(folder, "vocab.txt", &data, &bytes);
    if (!s)
        made = make_bert(config, read_lines(data, bytes));
    else if (s == STATUS_NOT_FOUND)
        s = load_byte_level(folder, config, &made);
    free(data);
    json_decref(config);
    if (s == STATUS_NOT_FOUND)
        return status_fail(STATUS_NOT_FOUND,
                           "%s has no tokenizer: expected tokenizer.json, vocab.txt, or vocab.json "
                           "with merges.txt",
                           folder);
    if (!s && made == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a tokenizer");
    if (!s)
        *out = made;
    return s;
}

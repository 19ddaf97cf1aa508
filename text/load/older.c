/* The files that models had before tokenizer.json, read as the converters of the `transformers`
 * library do. */
#include "text/load/older.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file_reader.h"
#include "text/load/fields.h"
#include "text/load/sentencepiece.h"
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
    return STATUS_OK;
}

static status read_text(const char *folder, const char *name, char **data, size_t *bytes)
{
    status s = read_file(folder, name, data, bytes);
    if (s)
        return s;
    size_t valid = utf8_valid_bytes((const uint8_t *)*data, *bytes);
    if (valid < *bytes) {
        free(*data);
        *data = NULL;
        return status_fail(STATUS_CORRUPT, "%s/%s: byte %zu is not UTF-8", folder, name, valid);
    }
    return STATUS_OK;
}

static status read_json(const char *folder, const char *name, json_t **out)
{
    char *data = NULL;
    size_t bytes = 0;
    json_error_t error;
    status s = read_text(folder, name, &data, &bytes);
    if (s)
        return s;
    *out = json_loadb(data, bytes, JSON_ALLOW_NUL, &error);
    free(data);
    if (*out == NULL && field_lacked_memory(&error))
        return status_fail(STATUS_OUT_OF_MEMORY, "%s/%s: no memory to read it", folder, name);
    if (!json_is_object(*out)) {
        json_decref(*out);
        *out = NULL;
        return status_fail(STATUS_CORRUPT, "%s/%s: expected a JSON object", folder, name);
    }
    return STATUS_OK;
}

/* Each line is a token, its number the id. NULL: there is no memory. */
static json_t *read_lines(const char *data, size_t bytes)
{
    json_t *vocab = json_object();
    json_int_t id = 0;
    bool failed = vocab == NULL;
    for (const char *line = data, *end = data + bytes; line < end; id++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line)), *next = stop ? stop + 1 : end;
        stop = stop ? stop : end;
        while (stop > line && strchr(" \t\r\f\v", stop[-1]))
            stop--;
        failed |= json_object_setn_new(vocab, line, (size_t)(stop - line), json_integer(id)) != 0;
        line = next;
    }
    return field_all_or_nothing(vocab, failed);
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

/* A token that the class has by default: only where the vocabulary has it. */
typedef struct default_token {
    const char *name; /* in tokenizer_config.json, or NULL */
    const char *content;
    bool strips_left;
} default_token;

/* "added_tokens": the files' own, then the class's. */
static status collect_tokens(const special_files *files, const json_t *vocab,
                             const default_token *defaults, size_t count, json_t **out)
{
    json_t *added = json_array();
    if (added == NULL || vocab == NULL) {
        json_decref(added);
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a vocabulary");
    }
    status s = special_add_all(files, added);
    for (size_t i = 0; i < count && !s; i++) {
        const default_token *d = defaults + i;
        const char *content = d->name ? special_token(files, d->name, d->content) : d->content;
        if (json_object_get(vocab, content) != NULL)
            s = special_add(added, content, true, d->strips_left);
    }
    if (s)
        json_decref(added);
    else
        *out = added;
    return s;
}

/* Takes `vocab`. */
static status make_bert(const special_files *files, json_t *vocab, json_t **out)
{
    static const default_token defaults[] = {{"pad_token", "[PAD]", false},
                                             {"unk_token", "[UNK]", false},
                                             {"cls_token", "[CLS]", false},
                                             {"sep_token", "[SEP]", false},
                                             {"mask_token", "[MASK]", false}};
    json_t *added = NULL;
    status s = collect_tokens(files, vocab, defaults, sizeof defaults / sizeof *defaults, &added);
    if (s) {
        json_decref(vocab);
        return s;
    }
    bool lowers = special_flag(files, "do_lower_case", true);
    json_t *processor = bert_post_processor(vocab, special_token(files, "cls_token", "[CLS]"),
                                            special_token(files, "sep_token", "[SEP]"));
    *out = json_pack("{s:o,s:{s:s,s:b,s:b,s:b,s:b},s:{s:s},s:o,s:{s:s,s:s,s:b},s:{s:s,s:s,s:o}}",
                     "added_tokens", added, "normalizer", "type", "BertNormalizer", "clean_text", 1,
                     "handle_chinese_chars", special_flag(files, "tokenize_chinese_chars", true),
                     "lowercase", lowers, "strip_accents",
                     special_flag(files, "strip_accents", lowers), "pre_tokenizer", "type",
                     "BertPreTokenizer", "post_processor", processor, "decoder", "type",
                     "WordPiece", "prefix", "##", "cleanup", 1, "model", "type", "WordPiece",
                     "unk_token", special_token(files, "unk_token", "[UNK]"), "vocab", vocab);
    return STATUS_OK;
}

/* One merge a line, without the first line's version. NULL: there is no memory. */
static json_t *read_merges(const char *data, size_t bytes)
{
    json_t *merges = json_array();
    bool failed = merges == NULL;
    for (const char *line = data, *end = data + bytes; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line)), *next = stop ? stop + 1 : end;
        stop = stop ? stop : end;
        if (stop > line && stop[-1] == '\r')
            stop--;
        bool is_version = (size_t)(stop - line) >= 8 && memcmp(line, "#version", 8) == 0;
        if (stop > line && !is_version)
            failed |= json_array_append_new(merges, json_stringn(line, (size_t)(stop - line))) != 0;
        line = next;
    }
    return field_all_or_nothing(merges, failed);
}

static json_t *byte_level_processor(const special_files *files, const json_t *vocab,
                                    bool is_roberta)
{
    bool adds = special_flag(files, "add_prefix_space", false);
    if (!is_roberta)
        return json_pack("{s:s,s:b}", "type", "ByteLevel", "trim_offsets", 0);
    const char *cls = special_token(files, "cls_token", "<s>");
    const char *sep = special_token(files, "sep_token", "</s>");
    if (json_object_get(vocab, cls) == NULL || json_object_get(vocab, sep) == NULL)
        return json_null();
    return json_pack("{s:s,s:[s,I],s:[s,I],s:b,s:b}", "type", "RobertaProcessing", "cls", cls,
                     json_integer_value(json_object_get(vocab, cls)), "sep", sep,
                     json_integer_value(json_object_get(vocab, sep)), "trim_offsets", 1,
                     "add_prefix_space", adds);
}

/* Takes `vocab` and `merges`. */
static status make_byte_level(const special_files *files, json_t *vocab, json_t *merges,
                              json_t **out)
{
    static const default_token defaults[] = {
        {NULL, "<s>", false},   {NULL, "<pad>", false}, {NULL, "</s>", false},
        {NULL, "<unk>", false}, {NULL, "<mask>", true}, {NULL, "<|endoftext|>", false}};
    bool is_roberta =
        json_object_get(vocab, "<s>") != NULL && json_object_get(vocab, "</s>") != NULL;
    json_t *added = NULL;
    status s = collect_tokens(files, vocab, defaults, sizeof defaults / sizeof *defaults, &added);
    if (s) {
        json_decref(vocab);
        json_decref(merges);
        return s;
    }
    json_t *processor = byte_level_processor(files, vocab, is_roberta);
    *out = json_pack("{s:o,s:{s:s,s:b},s:o,s:{s:s},s:{s:s,s:o,s:o}}", "added_tokens", added,
                     "pre_tokenizer", "type", "ByteLevel", "add_prefix_space",
                     special_flag(files, "add_prefix_space", false), "post_processor", processor,
                     "decoder", "type", "ByteLevel", "model", "type", "BPE", "vocab", vocab,
                     "merges", merges);
    return STATUS_OK;
}

static status load_bert(const char *folder, const special_files *files, json_t **out)
{
    char *data = NULL;
    size_t bytes = 0;
    status s = read_text(folder, "vocab.txt", &data, &bytes);
    if (!s)
        s = make_bert(files, read_lines(data, bytes), out);
    free(data);
    return s;
}

static status load_byte_level(const char *folder, const special_files *files, json_t **out)
{
    json_t *vocab = NULL;
    char *data = NULL;
    size_t bytes = 0;
    status s = read_json(folder, "vocab.json", &vocab);
    if (!s)
        s = read_text(folder, "merges.txt", &data, &bytes);
    if (s) {
        json_decref(vocab);
        return s;
    }
    s = make_byte_level(files, vocab, read_merges(data, bytes), out);
    free(data);
    return s;
}

/* The class that `transformers` would take: tokenizer_config.json's, else that of the model. */
static const char *find_class(const special_files *files, const json_t *model)
{
    static const char *const classes[][2] = {{"xlm-roberta", "XLMRobertaTokenizer"},
                                             {"xlm-roberta-xl", "XLMRobertaTokenizer"},
                                             {"camembert", "CamembertTokenizer"},
                                             {"t5", "T5Tokenizer"},
                                             {"mt5", "T5Tokenizer"},
                                             {"umt5", "T5Tokenizer"},
                                             {"albert", "AlbertTokenizer"},
                                             {"deberta-v2", "DebertaV2Tokenizer"},
                                             {"llama", "LlamaTokenizer"},
                                             {"gemma", "GemmaTokenizer"},
                                             {"gemma2", "GemmaTokenizer"},
                                             {"gemma3_text", "GemmaTokenizer"}};
    const char *own = json_string_value(json_object_get(files->config, "tokenizer_class"));
    const char *type = json_string_value(json_object_get(model, "model_type"));
    if (own == NULL)
        own = json_string_value(json_object_get(model, "tokenizer_class"));
    for (size_t i = 0; own == NULL && type != NULL && i < sizeof classes / sizeof *classes; i++) {
        if (strcmp(type, classes[i][0]) == 0)
            return classes[i][1];
    }
    return own;
}

static status load_sentencepiece(const char *folder, const special_files *files, json_t **out)
{
    json_t *model = NULL;
    char *data = NULL;
    size_t bytes = 0;
    const char *const *name = sentencepiece_file_names;
    status s = STATUS_NOT_FOUND;
    for (; *name != NULL && s == STATUS_NOT_FOUND; name++)
        s = read_file(folder, *name, &data, &bytes);
    if (s)
        return s;
    s = read_json(folder, "config.json", &model);
    if (!s || s == STATUS_NOT_FOUND)
        s = sentencepiece_convert(data, bytes, find_class(files, model), files, out);
    if (s)
        s = status_prefix(s, "%s/%s", folder, name[-1]);
    json_decref(model);
    free(data);
    return s;
}

static status not_found(const char *folder)
{
    return status_fail(STATUS_NOT_FOUND,
                       "%s has no tokenizer: expected tokenizer.json, vocab.txt, a SentencePiece "
                       "model (tokenizer.model, spiece.model, spm.model, "
                       "sentencepiece.bpe.model), or vocab.json with merges.txt",
                       folder);
}

status text_load_older(const char *folder, json_t **out)
{
    static status (*const loaders[])(const char *, const special_files *,
                                     json_t **) = {load_bert, load_sentencepiece, load_byte_level};
    static const char *const names[] = {"tokenizer_config.json", "special_tokens_map.json",
                                        "added_tokens.json"};
    json_t *side[3] = {NULL}, *made = NULL;
    status s = STATUS_OK;
    assert(folder != NULL && out != NULL);
    for (int i = 0; i < 3 && (!s || s == STATUS_NOT_FOUND); i++)
        s = read_json(folder, names[i], side + i);
    if (!s || s == STATUS_NOT_FOUND) {
        const special_files files = {.config = side[0], .map = side[1], .numbers = side[2]};
        s = STATUS_NOT_FOUND;
        for (size_t i = 0; i < sizeof loaders / sizeof *loaders && s == STATUS_NOT_FOUND; i++)
            s = loaders[i](folder, &files, &made);
        if (s == STATUS_NOT_FOUND)
            s = not_found(folder);
        else if (!s && made == NULL)
            s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for a tokenizer");
    }
    for (int i = 0; i < 3; i++)
        json_decref(side[i]);
    if (!s)
        *out = made;
    return s;
}

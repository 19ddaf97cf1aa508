#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "graph/hugging_face/hugging_face.h"
#include "graph/json_file.h"

static const struct {
    const char *model_type;
    hf_family family;
} families[] = {
    {"bert", HF_BERT},         {"roberta", HF_ROBERTA},       {"xlm-roberta", HF_ROBERTA},
    {"camembert", HF_ROBERTA}, {"distilbert", HF_DISTILBERT}, {"mpnet", HF_MPNET},
    {"electra", HF_ELECTRA},
};

/* A key that changes results must not silently get its default: a key that is present has the right
 * type and range, or an error names it. `null` counts as absent. */
static bool is_there(const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);
    return value != NULL && !json_is_null(value);
}

/* An integer from at_least to at_most; `otherwise` where the key is absent. A key whose `otherwise`
 * is out of range is required. */
static status read_size(const json_t *json, const char *key, int64_t otherwise, int64_t at_least,
                        int64_t at_most, int64_t *out)
{
    const json_t *value = json_object_get(json, key);
    int64_t size = json_is_integer(value) ? json_integer_value(value) : otherwise;
    if (is_there(json, key) && !json_is_integer(value))
        return status_fail(STATUS_CORRUPT, "config.json: %s is not an integer", key);
    if (size < at_least || size > at_most)
        return status_fail(STATUS_CORRUPT, "config.json: %s is %snot within %lld to %lld", key,
                           is_there(json, key) ? "" : "missing, or ", (long long)at_least,
                           (long long)at_most);
    *out = size;
    return STATUS_OK;
}

/* A size that is only compared with the tensors; 0 where config.json lacks it. */
static status read_said(const json_t *json, const char *key, int64_t *out)
{
    *out = 0;
    return is_there(json, key) ? read_size(json, key, 0, 1, INT_MAX, out) : STATUS_OK;
}

static status read_text(const json_t *json, const char *key, const char *otherwise,
                        const char **out)
{
    const json_t *value = json_object_get(json, key);
    if (is_there(json, key) && !json_is_string(value))
        return status_fail(STATUS_CORRUPT, "config.json: %s is not a string", key);
    *out = json_is_string(value) ? json_string_value(value) : otherwise;
    return STATUS_OK;
}

static status reject_flag(const json_t *json, const char *key, const char *why)
{
    const json_t *value = json_object_get(json, key);
    if (is_there(json, key) && !json_is_boolean(value))
        return status_fail(STATUS_CORRUPT, "config.json: %s is neither true nor false", key);
    return json_is_true(value) ? status_fail(STATUS_UNSUPPORTED, "config.json: %s: %s", key, why)
                               : STATUS_OK;
}

static status read_family(const json_t *json, hf_config *c)
{
    const char *type;
    status s = read_text(json, "model_type", NULL, &type);
    if (s)
        return s;
    if (type == NULL)
        return status_fail(STATUS_CORRUPT, "config.json: model_type is missing");
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        if (strcmp(families[i].model_type, type) == 0) {
            c->family = families[i].family;
            snprintf(c->model_type, sizeof c->model_type, "%s", type);
            return STATUS_OK;
        }
    }
    return status_fail(STATUS_UNSUPPORTED,
                       "config.json: model_type '%s' is not supported; supported: bert, roberta, "
                       "xlm-roberta, camembert, distilbert, mpnet, electra; others can be exported "
                       "to ONNX",
                       type);
}

static status check_settings(const json_t *json)
{
    const char *position;
    status s = read_text(json, "position_embedding_type", "absolute", &position);
    if (s == STATUS_OK && strcmp(position, "absolute") != 0)
        s = status_fail(STATUS_UNSUPPORTED,
                        "config.json: position_embedding_type '%s'; supported: absolute", position);
    if (s == STATUS_OK)
        s = reject_flag(json, "is_decoder", "a decoder; supported: encoders");
    if (s == STATUS_OK)
        s = reject_flag(json, "add_cross_attention", "a decoder; supported: encoders");
    if (s == STATUS_OK && is_there(json, "quantization_config"))
        s = status_fail(STATUS_UNSUPPORTED,
                        "config.json: quantization_config: weights quantised by transformers are "
                        "not read; save them as floats, or quantise an ONNX export");
    return s;
}

static status read_sizes(const json_t *json, hf_config *c)
{
    bool is_distil = c->family == HF_DISTILBERT;
    const hf_keys *k = hf_keys_of(c->family);
    status s = read_size(json, k->hidden, is_distil ? 768 : 0, 1, 65536, &c->hidden);
    if (s == STATUS_OK)
        s = read_size(json, k->layers, is_distil ? 6 : 0, 1, 1000, &c->layers);
    if (s == STATUS_OK)
        s = read_size(json, k->heads, is_distil ? 12 : 0, 1, 4096, &c->heads);
    if (s == STATUS_OK)
        s = read_size(json, "max_position_embeddings", 512, 1, 1 << 24, &c->positions);
    if (s == STATUS_OK && c->hidden % c->heads != 0)
        s = status_fail(STATUS_CORRUPT, "config.json: %s %lld is not a multiple of %s, %lld",
                        k->hidden, (long long)c->hidden, k->heads, (long long)c->heads);
    if (s == STATUS_OK)
        s = read_said(json, "vocab_size", &c->vocabulary);
    if (s == STATUS_OK)
        s = read_said(json, k->intermediate, &c->intermediate);
    if (s == STATUS_OK && c->family == HF_ELECTRA)
        s = read_said(json, "embedding_size", &c->embedding);
    if (s == STATUS_OK && (c->family == HF_BERT || c->family == HF_ELECTRA))
        s = read_size(json, "type_vocab_size", 2, 1, 65536, &c->types);
    if (s == STATUS_OK && c->family == HF_ROBERTA)
        s = read_said(json, "type_vocab_size", &c->types);
    return s;
}

/* RoBERTa's positions start behind the id of the pad token: the table must have rows there. */
static status read_pad_token(const json_t *json, hf_config *c)
{
    c->pad_token = 1;
    if (c->family != HF_ROBERTA)
        return STATUS_OK;
    if (json_is_null(json_object_get(json, "pad_token_id")))
        return status_fail(STATUS_CORRUPT,
                           "config.json: pad_token_id is null, but %s counts positions from it",
                           c->model_type);
    return read_size(json, "pad_token_id", 1, 0, c->positions - 2, &c->pad_token);
}

static status read_epsilon(const json_t *json, hf_config *c)
{
    const json_t *value = json_object_get(json, "layer_norm_eps");
    c->epsilon = 1e-12;
    if (c->family == HF_DISTILBERT || !is_there(json, "layer_norm_eps"))
        return STATUS_OK;
    c->epsilon = json_number_value(value);
    if (json_is_number(value) && c->epsilon >= 0 && c->epsilon <= 1)
        return STATUS_OK;
    return status_fail(STATUS_CORRUPT, "config.json: layer_norm_eps is not a number within 0 to 1");
}

static bool ends_with(const char *text, const char *end)
{
    size_t bytes = strlen(text), end_bytes = strlen(end);
    return bytes >= end_bytes && strcmp(text + bytes - end_bytes, end) == 0;
}

static status read_head(const json_t *json, hf_config *c)
{
    static const struct {
        const char *ending;
        hf_head head;
    } heads[] = {{"ForSequenceClassification", HF_SEQUENCE_CLASSES},
                 {"ForTokenClassification", HF_TOKEN_CLASSES},
                 {"ForQuestionAnswering", HF_ANSWER_SPANS}};
    const json_t *architectures = json_object_get(json, "architectures");
    const json_t *first = json_array_get(architectures, 0);
    if (is_there(json, "architectures") &&
        (!json_is_array(architectures) || (first != NULL && !json_is_string(first))))
        return status_fail(STATUS_CORRUPT, "config.json: architectures is not a list of names");
    const char *name = json_string_value(first);
    for (size_t i = 0; name != NULL && i < sizeof heads / sizeof heads[0]; i++)
        if (ends_with(name, heads[i].ending))
            c->head = heads[i].head;
    if (name != NULL && c->head == HF_NO_HEAD && !ends_with(name, "Model"))
        log_warning("graph",
                    "config.json: the head of %s is not supported: the outputs are hidden states",
                    name);
    return STATUS_OK;
}

static status read_config(const json_t *json, hf_config *c)
{
    const char *activation = "gelu";
    status s = read_family(json, c);
    if (s == STATUS_OK)
        s = check_settings(json);
    if (s == STATUS_OK)
        s = read_sizes(json, c);
    if (s == STATUS_OK)
        s = read_pad_token(json, c);
    if (s == STATUS_OK)
        s = read_epsilon(json, c);
    if (s == STATUS_OK && c->family == HF_MPNET)
        s = read_size(json, "relative_attention_num_buckets", 32, 4, 65536, &c->relative_buckets);
    if (s == STATUS_OK)
        s = read_text(json, hf_keys_of(c->family)->activation, "gelu", &activation);
    if (s)
        return s;
    snprintf(c->activation, sizeof c->activation, "%s", activation);
    return read_head(json, c);
}

const hf_keys *hf_keys_of(hf_family family)
{
    static const hf_keys distilbert = {"dim", "n_layers", "n_heads", "hidden_dim", "activation"};
    static const hf_keys others = {"hidden_size", "num_hidden_layers", "num_attention_heads",
                                   "intermediate_size", "hidden_act"};
    return family == HF_DISTILBERT ? &distilbert : &others;
}

status hf_read_config(const char *folder, hf_config *out)
{
    char path[PATH_MAX];
    json_t *json;
    hf_config c = {0};
    snprintf(path, sizeof path, "%s/config.json", folder);
    status s = json_file_read(path, &json);
    if (s)
        return s;
    s = read_config(json, &c);
    json_decref(json);
    if (s == STATUS_OK)
        *out = c;
    return s;
}

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "graph/hugging_face.h"
#include "graph/json_file.h"

static const struct {
    const char *model_type;
    hf_family family;
} families[] = {
    {"bert", HF_BERT},         {"roberta", HF_ROBERTA},       {"xlm-roberta", HF_ROBERTA},
    {"camembert", HF_ROBERTA}, {"distilbert", HF_DISTILBERT}, {"mpnet", HF_MPNET},
    {"electra", HF_ELECTRA},
};

static status read_family(const json_t *json, hf_config *c)
{
    const char *type = json_file_string(json, "model_type", NULL);
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

static status read_size(const json_t *json, const char *key, int64_t otherwise, int64_t at_most,
                        int64_t *out)
{
    int64_t size = json_file_int(json, key, otherwise);
    if (size < 1 || size > at_most)
        return status_fail(STATUS_CORRUPT, "config.json: %s is missing or not within 1 to %lld",
                           key, (long long)at_most);
    *out = size;
    return STATUS_OK;
}

static bool ends_with(const char *text, const char *end)
{
    size_t bytes = strlen(text), end_bytes = strlen(end);
    return bytes >= end_bytes && strcmp(text + bytes - end_bytes, end) == 0;
}

static status check_settings(const json_t *json)
{
    const char *position = json_file_string(json, "position_embedding_type", "absolute");
    if (strcmp(position, "absolute") != 0)
        return status_fail(STATUS_UNSUPPORTED,
                           "config.json: position_embedding_type '%s'; supported: absolute",
                           position);
    if (json_file_bool(json, "is_decoder", false) ||
        json_file_bool(json, "add_cross_attention", false))
        return status_fail(STATUS_UNSUPPORTED, "config.json: a decoder; supported: encoders");
    return STATUS_OK;
}

static status read_sizes(const json_t *json, hf_config *c)
{
    bool is_distil = c->family == HF_DISTILBERT;
    status s =
        read_size(json, is_distil ? "dim" : "hidden_size", is_distil ? 768 : 0, 65536, &c->hidden);
    if (s == STATUS_OK)
        s = read_size(json, is_distil ? "n_layers" : "num_hidden_layers", is_distil ? 6 : 0, 1000,
                      &c->layers);
    if (s == STATUS_OK)
        s = read_size(json, is_distil ? "n_heads" : "num_attention_heads", is_distil ? 12 : 0, 4096,
                      &c->heads);
    if (s == STATUS_OK)
        s = read_size(json, "max_position_embeddings", 512, INT_MAX, &c->positions);
    if (s == STATUS_OK && c->hidden % c->heads != 0)
        s = status_fail(STATUS_CORRUPT,
                        "config.json: hidden size %lld is not a multiple of %lld heads",
                        (long long)c->hidden, (long long)c->heads);
    return s;
}

static status read_config(const json_t *json, hf_config *c)
{
    status s = read_family(json, c);
    if (s == STATUS_OK)
        s = check_settings(json);
    if (s == STATUS_OK)
        s = read_sizes(json, c);
    if (s)
        return s;
    c->types = json_file_int(json, "type_vocab_size", c->family == HF_ROBERTA ? 1 : 2);
    c->pad_token = json_file_int(json, "pad_token_id",
                                 c->family == HF_ROBERTA || c->family == HF_MPNET ? 1 : 0);
    c->relative_buckets = json_file_int(json, "relative_attention_num_buckets", 32);
    c->epsilon = c->family == HF_DISTILBERT ? 1e-12 : json_file_real(json, "layer_norm_eps", 1e-12);
    snprintf(
        c->activation, sizeof c->activation, "%s",
        json_file_string(json, c->family == HF_DISTILBERT ? "activation" : "hidden_act", "gelu"));
    const json_t *architectures = json_object_get(json, "architectures");
    const char *architecture = json_string_value(json_array_get(architectures, 0));
    if (architecture != NULL && ends_with(architecture, "ForSequenceClassification"))
        c->head = HF_SEQUENCE_CLASSES;
    else if (architecture != NULL && ends_with(architecture, "ForTokenClassification"))
        c->head = HF_TOKEN_CLASSES;
    else if (architecture != NULL && ends_with(architecture, "ForQuestionAnswering"))
        c->head = HF_ANSWER_SPANS;
    return STATUS_OK;
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

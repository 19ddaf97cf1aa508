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
    {"bert", HF_BERT},
    {"roberta", HF_ROBERTA},
    {"xlm-roberta", HF_ROBERTA},
    {"camembert", HF_ROBERTA},
    {"distilbert", HF_DISTILBERT},
    {"mpnet", HF_MPNET},
    {"electra", HF_ELECTRA},
    {"albert", HF_ALBERT},
    {"modernbert", HF_MODERN_BERT},
    {"nomic_bert", HF_NOMIC_BERT},
    {"new", HF_GTE},
    {"gte", HF_GTE},
    {"llama", HF_DECODER},
    {"mistral", HF_DECODER},
    {"qwen2", HF_DECODER},
    {"qwen3", HF_DECODER},
    {"deberta-v2", HF_DEBERTA},
};

static status read_family(const json_t *json, hf_config *c)
{
    const char *type;
    status s = hf_read_text(json, "model_type", NULL, &type);
    if (s)
        return s;
    if (type == NULL)
        return status_fail(STATUS_CORRUPT, "config.json: model_type is missing");
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        if (strcmp(families[i].model_type, type) == 0) {
            c->family = families[i].family;
            snprintf(c->model_type, sizeof c->model_type, "%s", type);
            const char *position =
                json_string_value(json_object_get(json, "position_embedding_type"));
            if (c->family == HF_BERT && position != NULL && strcmp(position, "alibi") == 0)
                c->family = HF_JINA_BERT;
            return STATUS_OK;
        }
    }
    return status_fail(
        STATUS_UNSUPPORTED,
        "config.json: model_type '%s' is not supported; supported: bert, roberta, "
        "xlm-roberta, camembert, distilbert, mpnet, electra, albert, modernbert, "
        "nomic_bert, new, gte, deberta-v2, llama, mistral, qwen2, qwen3; others can be "
        "exported to ONNX",
        type);
}

static status reject_quantised(const json_t *json)
{
    if (!hf_is_there(json, "quantization_config"))
        return STATUS_OK;
    return status_fail(STATUS_UNSUPPORTED,
                       "config.json: quantization_config: weights quantised by transformers are "
                       "not read; save them as floats, or quantise an ONNX export");
}

static status read_sizes(const json_t *json, hf_config *c)
{
    bool is_distil = c->family == HF_DISTILBERT;
    const hf_keys *k = hf_keys_of(c->family);
    status s = hf_read_size(json, k->hidden, is_distil ? 768 : 0, 1, 65536, &c->hidden);
    if (s == STATUS_OK)
        s = hf_read_size(json, k->layers, is_distil ? 6 : 0, 1, HF_LAYERS_MAX, &c->layers);
    if (s == STATUS_OK)
        s = hf_read_size(json, k->heads, is_distil ? 12 : 0, 1, 4096, &c->heads);
    if (s == STATUS_OK)
        s = hf_read_size(json, "max_position_embeddings", 512, 1, 1 << 24, &c->positions);
    if (s == STATUS_OK && c->hidden % c->heads != 0)
        s = status_fail(STATUS_CORRUPT, "config.json: %s %lld is not a multiple of %s, %lld",
                        k->hidden, (long long)c->hidden, k->heads, (long long)c->heads);
    if (s == STATUS_OK)
        s = hf_read_said(json, "vocab_size", &c->vocabulary);
    if (s == STATUS_OK)
        s = hf_read_said(json, k->intermediate, &c->intermediate);
    if (s == STATUS_OK && (c->family == HF_ELECTRA || c->family == HF_ALBERT))
        s = hf_read_said(json, "embedding_size", &c->embedding);
    if (s == STATUS_OK && (c->family == HF_BERT || c->family == HF_ELECTRA ||
                           c->family == HF_ALBERT || c->family == HF_JINA_BERT))
        s = hf_read_size(json, "type_vocab_size", 2, 1, 65536, &c->types);
    if (s == STATUS_OK && c->family == HF_ROBERTA)
        s = hf_read_said(json, "type_vocab_size", &c->types);
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
    return hf_read_size(json, "pad_token_id", 1, 0, c->positions - 2, &c->pad_token);
}

static status read_epsilon(const json_t *json, hf_config *c)
{
    c->epsilon = 1e-12;
    return c->family == HF_DISTILBERT
               ? STATUS_OK
               : hf_read_real(json, "layer_norm_eps", 1e-12, 0, 1, &c->epsilon);
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
    if (hf_is_there(json, "architectures") &&
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

static status read_bert(const json_t *json, hf_config *c)
{
    static const hf_setting settings[] = {{"position_embedding_type", HF_TEXT, "absolute", 0},
                                          {"is_decoder", HF_FALSE, NULL, 0},
                                          {"add_cross_attention", HF_FALSE, NULL, 0}};
    bool is_jina = c->family == HF_JINA_BERT;
    status s = is_jina ? STATUS_OK
                       : hf_check_settings(json, sizeof settings / sizeof settings[0], settings);
    if (s == STATUS_OK)
        s = read_sizes(json, c);
    c->kv_heads = c->heads;
    c->head_dim = c->heads > 0 ? c->hidden / c->heads : 0;
    if (s == STATUS_OK)
        s = read_pad_token(json, c);
    if (s == STATUS_OK)
        s = read_epsilon(json, c);
    if (s == STATUS_OK && c->family == HF_MPNET)
        s = hf_read_size(json, "relative_attention_num_buckets", 32, 4, 65536,
                         &c->relative_buckets);
    if (s == STATUS_OK)
        s = hf_copy_text(json, hf_keys_of(c->family)->activation,
                         c->family == HF_ALBERT ? "gelu_new" : "gelu", c->activation);
    if (s == STATUS_OK && c->family == HF_ALBERT)
        s = hf_read_albert(json, c);
    return s || !is_jina ? s : hf_read_jina_bert(json, c);
}

static status read_family_keys(const json_t *json, hf_config *c)
{
    switch (c->family) {
    case HF_MODERN_BERT:
        return hf_read_modern_bert(json, c);
    case HF_DECODER:
        return hf_read_decoder(json, c);
    case HF_NOMIC_BERT:
        return hf_read_nomic_bert(json, c);
    case HF_GTE:
        return hf_read_gte(json, c);
    case HF_DEBERTA:
        return hf_read_deberta(json, c);
    default:
        return read_bert(json, c);
    }
}

static status read_config(const json_t *json, hf_config *c)
{
    status s = read_family(json, c);
    if (s == STATUS_OK)
        s = reject_quantised(json);
    if (s == STATUS_OK)
        s = read_family_keys(json, c);
    return s ? s : read_head(json, c);
}

const hf_keys *hf_keys_of(hf_family family)
{
    static const hf_keys distilbert = {"dim", "n_layers", "n_heads", "hidden_dim", "activation"};
    static const hf_keys others = {"hidden_size", "num_hidden_layers", "num_attention_heads",
                                   "intermediate_size", "hidden_act"};
    static const hf_keys modern = {"hidden_size", "num_hidden_layers", "num_attention_heads",
                                   "intermediate_size", "hidden_activation"};
    return family == HF_DISTILBERT ? &distilbert : family == HF_MODERN_BERT ? &modern : &others;
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

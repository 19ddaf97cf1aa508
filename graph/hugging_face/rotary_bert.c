#include <stdio.h>
#include <string.h>

#include "graph/hugging_face/hugging_face.h"

/* BERTs with rotary positions and gated feed-forward layers: NomicBERT (arXiv 2402.01613) and GTE
 * (arXiv 2407.19669), whose own code calls it "new". Each has two sets of names: of its first
 * checkpoints, and of transformers. */

/* The value of one of two keys; the second where only that one is there. */
static const char *either(const json_t *json, const char *key, const char *other)
{
    return json_object_get(json, other) != NULL && !hf_is_there(json, key) ? other : key;
}

static status read_sizes(const json_t *json, hf_config *c)
{
    static const hf_sizes otherwise = {0};
    hf_keys k = {.hidden = either(json, "hidden_size", "n_embd"),
                 .layers = either(json, "num_hidden_layers", "n_layer"),
                 .heads = either(json, "num_attention_heads", "n_head"),
                 .intermediate = either(json, "intermediate_size", "n_inner")};
    status s = hf_read_sizes(json, &k, &otherwise, c);
    if (s == STATUS_OK)
        s = hf_read_size(json, either(json, "max_position_embeddings", "n_positions"), 0, 1,
                         1 << 24, &c->positions);
    if (s == STATUS_OK)
        s = hf_read_size(json, "type_vocab_size", c->family == HF_NOMIC_BERT ? 2 : 1, 0, 65536,
                         &c->types);
    return s ? s
             : hf_read_size(json, "head_dim", c->head_dim, c->head_dim, c->head_dim, &c->head_dim);
}

status hf_read_nomic_bert(const json_t *json, hf_config *c)
{
    static const hf_setting settings[] = {
        {"prenorm", HF_FALSE, NULL, 0},
        {"parallel_block", HF_FALSE, NULL, 0},
        {"use_rms_norm", HF_FALSE, NULL, 0},
        {"causal", HF_FALSE, NULL, 0},
        {"rotary_emb_fraction", HF_NUMBER, NULL, 1},
        {"rotary_emb_interleaved", HF_FALSE, NULL, 0},
        {"rotary_emb_scale_base", HF_NULL, NULL, 0},
        {"rotary_scaling_factor", HF_NULL, NULL, 0},
        {"scale_attn_weights", HF_TRUE, NULL, 0},
        {"scale_attn_by_inverse_layer_idx", HF_FALSE, NULL, 0},
        {"mup_embed_scale", HF_NUMBER, NULL, 1},
        {"mup_output_scale", HF_NUMBER, NULL, 1},
        {"mup_width_scale", HF_NUMBER, NULL, 1},
        {"mup_scale_qk_dot_by_d", HF_FALSE, NULL, 0},
        {"activation_function", HF_TEXT, "swiglu", 0},
        {"moe_every_n_layers", HF_NUMBER, NULL, 0},
    };
    const char *theta = either(json, "rope_theta", "rotary_emb_base");
    const char *epsilon = either(json, "layer_norm_eps", "layer_norm_epsilon");
    status s = hf_check_settings(json, sizeof settings / sizeof settings[0], settings);
    if (s == STATUS_OK)
        s = read_sizes(json, c);
    if (s == STATUS_OK)
        s = hf_read_rotary(json, theta, 1000, NULL, &c->rotary);
    if (s == STATUS_OK)
        s = hf_read_real(json, epsilon, 1e-12, 0, 1, &c->epsilon);
    return s ? s : hf_copy_text(json, "hidden_act", "silu", c->activation);
}

status hf_read_gte(const json_t *json, hf_config *c)
{
    static const hf_setting settings[] = {
        {"position_embedding_type", HF_TEXT, "rope", 0},
        {"layer_norm_type", HF_TEXT, "layer_norm", 0},
        {"logn_attention_scale", HF_FALSE, NULL, 0},
        {"pack_qkv", HF_TRUE, NULL, 0},
    };
    status s = hf_check_settings(json, sizeof settings / sizeof settings[0], settings);
    if (s == STATUS_OK)
        s = read_sizes(json, c);
    if (s == STATUS_OK)
        s = hf_read_rotary(json, "rope_theta", strcmp(c->model_type, "gte") == 0 ? 160000 : 10000,
                           NULL, &c->rotary);
    if (s == STATUS_OK)
        s = hf_read_real(json, "layer_norm_eps", 1e-12, 0, 1, &c->epsilon);
    return s ? s : hf_copy_text(json, "hidden_act", "gelu", c->activation);
}

/* Below "<layers>.<number>."; a tensor whose rows are several layers, or one for each. */
typedef struct layer_names {
    const char *layers, *embedding_norm;
    const char *qkv, *query, *key, *value, *output;
    const char *up_gate, *up, *gate, *down;
    const char *attention_norm, *output_norm;
} layer_names;

static const layer_names nomic_names = {
    "encoder.layers", "emb_ln",   "attn.Wqkv", NULL,    NULL,    NULL, "attn.out_proj", NULL,
    "mlp.fc11",       "mlp.fc12", "mlp.fc2",   "norm1", "norm2",
};
static const layer_names new_names = {
    "encoder.layer",
    "embeddings.LayerNorm",
    "attention.qkv_proj",
    NULL,
    NULL,
    NULL,
    "attention.o_proj",
    "mlp.up_gate_proj",
    NULL,
    NULL,
    "mlp.down_proj",
    "attn_ln",
    "mlp_ln",
};
static const layer_names transformers_names = {
    "layers",
    "embeddings.LayerNorm",
    NULL,
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    NULL,
    "mlp.up_proj",
    "mlp.gate_proj",
    "mlp.down_proj",
    "post_attention_layernorm",
    "post_mlp_layernorm",
};

static const char *name_of(hf_builder *b, const layer_names *names, int64_t n, const char *name)
{
    return hf_name(b, "%s.%lld.%s", names->layers, (long long)n, name);
}

static void describe_attention(hf_builder *b, const layer_names *names, int64_t n, encoder_layer *l)
{
    int64_t hidden = b->config->hidden;
    if (names->qkv == NULL) {
        l->query = hf_linear(b, name_of(b, names, n, names->query), hidden, hidden);
        l->key = hf_linear(b, name_of(b, names, n, names->key), hidden, hidden);
        l->value = hf_linear(b, name_of(b, names, n, names->value), hidden, hidden);
        return;
    }
    encoder_linear qkv = hf_fused(b, name_of(b, names, n, names->qkv), 3 * hidden, hidden);
    l->query = hf_linear_rows(b, &qkv, name_of(b, names, n, "query"), 0, hidden);
    l->key = hf_linear_rows(b, &qkv, name_of(b, names, n, "key"), hidden, hidden);
    l->value = hf_linear_rows(b, &qkv, name_of(b, names, n, "value"), 2 * hidden, hidden);
}

static void describe_layer(hf_builder *b, const layer_names *names, int64_t n, encoder_layer *l)
{
    int64_t hidden = b->config->hidden, wide = b->config->intermediate;
    describe_attention(b, names, n, l);
    l->attention_output = hf_linear(b, name_of(b, names, n, names->output), hidden, hidden);
    l->attention_norm = hf_norm(b, name_of(b, names, n, names->attention_norm), hidden);
    if (names->up_gate != NULL) {
        encoder_linear both = hf_fused(b, name_of(b, names, n, names->up_gate), 2 * wide, hidden);
        l->up = hf_linear_rows(b, &both, name_of(b, names, n, "up"), 0, wide);
        l->gate = hf_linear_rows(b, &both, name_of(b, names, n, "gate"), wide, wide);
    } else {
        l->up = hf_linear(b, name_of(b, names, n, names->up), wide, hidden);
        l->gate = hf_linear(b, name_of(b, names, n, names->gate), wide, hidden);
    }
    l->down = hf_linear(b, name_of(b, names, n, names->down), hidden, wide);
    l->output_norm = hf_norm(b, name_of(b, names, n, names->output_norm), hidden);
    l->activation = b->e->layers[0].activation;
    l->rotary = b->e->layers[0].rotary;
}

void hf_describe_rotary_bert(hf_builder *b)
{
    const hf_config *c = b->config;
    encoder *e = b->e;
    bool is_own = hf_has(b, hf_name(b, "layers.0.self_attn.q_proj"));
    const layer_names *names = is_own                       ? &transformers_names
                               : c->family == HF_NOMIC_BERT ? &nomic_names
                                                            : &new_names;
    const char *words = hf_name(b, "embeddings.word_embeddings.weight");
    char layer[80];
    snprintf(layer, sizeof layer, "%s.%%lld.%s.weight", names->layers, names->output);
    hf_check_axis(b, words, 0, "vocab_size", c->vocabulary);
    hf_check_axis(b, words, 1, "hidden_size (n_embd)", c->hidden);
    hf_check_axis(b, hf_name(b, "%s.0.%s.weight", names->layers, names->down), 1,
                  "intermediate_size (n_inner)", c->intermediate);
    hf_check_layer_count(b, "num_hidden_layers (n_layer)", layer);
    e->word_table = hf_table(b, words, -1, c->hidden);
    if (c->types > 0)
        e->token_type_table =
            hf_table(b, hf_name(b, "embeddings.token_type_embeddings.weight"), c->types, c->hidden);
    e->embedding_norm = hf_norm(b, hf_name(b, "%s", names->embedding_norm), c->hidden);
    e->layers[0].activation = hf_activation(b, "hidden_act", c->activation);
    e->layers[0].rotary = hf_make_rotary(b, &c->rotary, c->head_dim);
    for (int64_t i = 0; i < c->layers && b->failed == STATUS_OK; i++)
        describe_layer(b, names, i, &e->layers[i]);
}

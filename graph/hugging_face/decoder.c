#include <stdio.h>
#include <string.h>

#include "graph/hugging_face/hugging_face.h"

/* Decoders that embed text: Llama (arXiv 2302.13971) and those that differ from it by biases, norms
 * of heads and attention windows. */

/* Whether config.json gives layers a window, and which. */
static status read_windows(const json_t *json, hf_config *c)
{
    bool is_mistral = strcmp(c->model_type, "mistral") == 0;
    bool is_llama = strcmp(c->model_type, "llama") == 0;
    const json_t *said = json_object_get(json, "sliding_window");
    bool has_window = is_mistral ? !json_is_null(said)
                                 : json_is_true(json_object_get(json, "use_sliding_window"));
    const hf_setting flag = {
        "use_sliding_window",
        json_is_true(json_object_get(json, "use_sliding_window")) ? HF_TRUE : HF_FALSE, NULL, 0};
    int64_t first = 0;
    status s = hf_check_settings(json, 1, &flag); /* a boolean */
    if (s == STATUS_OK && !is_llama && has_window)
        s = hf_read_size(json, "sliding_window", 4096, 1, 1 << 24, &c->window);
    if (s == STATUS_OK && !is_mistral)
        s = hf_read_size(json, "max_window_layers", 28, 0, HF_LAYERS_MAX, &first);
    for (int64_t i = 0; i < c->layers; i++)
        c->is_local[i] = !is_llama && has_window && i >= first;
    return s ? s : hf_read_layer_types(json, c);
}

static status read_sizes(const json_t *json, hf_config *c)
{
    bool is_qwen3 = strcmp(c->model_type, "qwen3") == 0;
    const hf_keys *k = hf_keys_of(c->family);
    status s = hf_read_size(json, k->hidden, 0, 1, 65536, &c->hidden);
    if (s == STATUS_OK)
        s = hf_read_size(json, k->layers, 0, 1, HF_LAYERS_MAX, &c->layers);
    if (s == STATUS_OK)
        s = hf_read_size(json, k->heads, 0, 1, 4096, &c->heads);
    if (s == STATUS_OK)
        s = hf_read_size(json, "num_key_value_heads", c->heads, 1, 4096, &c->kv_heads);
    if (s == STATUS_OK)
        s = hf_read_size(json, "head_dim", is_qwen3 ? 128 : c->hidden / c->heads, 1, 4096,
                         &c->head_dim);
    if (s == STATUS_OK)
        s = hf_read_size(json, k->intermediate, 0, 1, 1 << 24, &c->intermediate);
    if (s == STATUS_OK)
        s = hf_read_size(json, "max_position_embeddings", 0, 1, 1 << 24, &c->positions);
    if (s == STATUS_OK)
        s = hf_read_said(json, "vocab_size", &c->vocabulary);
    if (s == STATUS_OK && (c->heads % c->kv_heads != 0 || c->heads / c->kv_heads > 64))
        s = status_fail(STATUS_CORRUPT,
                        "config.json: %s, %lld, is not 1 to 64 times num_key_value_heads, %lld",
                        k->heads, (long long)c->heads, (long long)c->kv_heads);
    return s;
}

status hf_read_decoder(const json_t *json, hf_config *c)
{
    static const hf_setting settings[] = {{"partial_rotary_factor", HF_NUMBER, NULL, 1},
                                          {"add_cross_attention", HF_FALSE, NULL, 0},
                                          {"is_causal", HF_TRUE, NULL, 0},
                                          {"use_bidirectional_attention", HF_FALSE, NULL, 0},
                                          {"bidirectional", HF_FALSE, NULL, 0}};
    status s = hf_check_settings(json, sizeof settings / sizeof settings[0], settings);
    if (s == STATUS_OK)
        s = read_sizes(json, c);
    if (s == STATUS_OK)
        s = read_windows(json, c);
    if (s == STATUS_OK)
        s = hf_read_rotary(json, "rope_theta", 10000, NULL, &c->rotary);
    if (s == STATUS_OK)
        s = hf_read_real(json, "rms_norm_eps", 1e-6, 0, 1, &c->epsilon);
    if (s == STATUS_OK)
        s = hf_copy_text(json, hf_keys_of(c->family)->activation, "silu", c->activation);
    c->is_causal = true;
    return s;
}

static encoder_norm rms(hf_builder *b, const char *name, int64_t width)
{
    encoder_norm n = hf_norm(b, name, width);
    n.is_rms = true;
    return n;
}

static void describe_layer(hf_builder *b, int64_t n, encoder_layer *l)
{
    const hf_config *c = b->config;
    char stem[40];
    snprintf(stem, sizeof stem, "layers.%lld", (long long)n);
    int64_t hidden = c->hidden, wide = c->intermediate;
    int64_t queries = c->heads * c->head_dim, keys = c->kv_heads * c->head_dim;
    l->attention_norm = rms(b, hf_name(b, "%s.input_layernorm", stem), hidden);
    l->query = hf_linear(b, hf_name(b, "%s.self_attn.q_proj", stem), queries, hidden);
    l->key = hf_linear(b, hf_name(b, "%s.self_attn.k_proj", stem), keys, hidden);
    l->value = hf_linear(b, hf_name(b, "%s.self_attn.v_proj", stem), keys, hidden);
    if (strcmp(c->model_type, "qwen3") == 0) {
        l->query_norm = rms(b, hf_name(b, "%s.self_attn.q_norm", stem), c->head_dim);
        l->key_norm = rms(b, hf_name(b, "%s.self_attn.k_norm", stem), c->head_dim);
    }
    l->attention_output = hf_linear(b, hf_name(b, "%s.self_attn.o_proj", stem), hidden, queries);
    l->output_norm = rms(b, hf_name(b, "%s.post_attention_layernorm", stem), hidden);
    l->gate = hf_linear(b, hf_name(b, "%s.mlp.gate_proj", stem), wide, hidden);
    l->up = hf_linear(b, hf_name(b, "%s.mlp.up_proj", stem), wide, hidden);
    l->down = hf_linear(b, hf_name(b, "%s.mlp.down_proj", stem), hidden, wide);
    l->activation = b->e->layers[0].activation;
    l->rotary = b->e->layers[0].rotary;
    l->window = c->is_local[n] ? c->window : 0;
}

void hf_describe_decoder(hf_builder *b)
{
    const hf_config *c = b->config;
    encoder *e = b->e;
    const char *words = hf_name(b, "embed_tokens.weight");
    hf_check_axis(b, words, 0, "vocab_size", c->vocabulary);
    hf_check_axis(b, words, 1, "hidden_size", c->hidden);
    hf_check_axis(b, hf_name(b, "layers.0.self_attn.q_proj.weight"), 0,
                  "num_attention_heads times head_dim", c->heads * c->head_dim);
    hf_check_axis(b, hf_name(b, "layers.0.self_attn.k_proj.weight"), 0,
                  "num_key_value_heads times head_dim", c->kv_heads * c->head_dim);
    hf_check_axis(b, hf_name(b, "layers.0.mlp.down_proj.weight"), 1, "intermediate_size",
                  c->intermediate);
    hf_check_layer_count(b, hf_keys_of(c->family)->layers, "layers.%lld.self_attn.q_proj.weight");
    e->is_pre_norm = true;
    e->word_table = hf_table(b, words, -1, c->hidden);
    e->layers[0].activation = hf_activation(b, hf_keys_of(c->family)->activation, c->activation);
    e->layers[0].rotary = hf_make_rotary(b, &c->rotary, c->head_dim);
    for (int64_t i = 0; i < c->layers && b->failed == STATUS_OK; i++)
        describe_layer(b, i, &e->layers[i]);
    e->final_norm = rms(b, hf_name(b, "norm"), c->hidden);
}

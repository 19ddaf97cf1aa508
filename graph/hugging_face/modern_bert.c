#include <stdio.h>
#include <string.h>

#include "graph/hugging_face/hugging_face.h"

/* ModernBERT (arXiv 2412.13663): norms before the layers, rotary positions, gated feed-forward
 * layers; most layers attend to a window, with a rotation of their own. */

/* Every n-th layer is global, unless layer_types says otherwise. */
static status read_layer_types(const json_t *json, hf_config *c)
{
    int64_t every;
    status s = hf_read_size(json, "global_attn_every_n_layers", 3, 1, HF_LAYERS_MAX, &every);
    for (int64_t i = 0; i < c->layers && s == STATUS_OK; i++)
        c->is_local[i] = i % every != 0;
    return s ? s : hf_read_layer_types(json, c);
}

static status read_sizes(const json_t *json, hf_config *c)
{
    static const hf_sizes otherwise = {768, 22, 12, 1152};
    status s = hf_read_sizes(json, hf_keys_of(c->family), &otherwise, c);
    return s ? s : hf_read_size(json, "max_position_embeddings", 8192, 1, 1 << 24, &c->positions);
}

static status read_classifier(const json_t *json, hf_config *c)
{
    const char *pooling;
    status s = hf_read_text(json, "classifier_pooling", "cls", &pooling);
    if (s == STATUS_OK)
        s = hf_copy_text(json, "classifier_activation", "gelu", c->class_activation);
    if (s)
        return s;
    if (strcmp(pooling, "cls") != 0 && strcmp(pooling, "mean") != 0)
        return status_fail(STATUS_UNSUPPORTED,
                           "config.json: classifier_pooling '%s'; supported: cls, mean", pooling);
    c->class_pooling = strcmp(pooling, "cls") == 0 ? ENCODER_POOLING_FIRST : ENCODER_POOLING_MEAN;
    return STATUS_OK;
}

status hf_read_modern_bert(const json_t *json, hf_config *c)
{
    static const hf_setting settings[] = {{"position_embedding_type", HF_TEXT, "absolute", 0}};
    int64_t window = 0;
    status s = hf_check_settings(json, 1, settings);
    if (s == STATUS_OK)
        s = read_sizes(json, c);
    if (s == STATUS_OK)
        s = read_layer_types(json, c);
    if (s == STATUS_OK)
        s = hf_read_size(json, "local_attention", 128, 1, 1 << 24, &window);
    if (s == STATUS_OK)
        s = hf_read_rotary(json, "global_rope_theta", 160000, "full_attention", &c->rotary);
    if (s == STATUS_OK)
        s = hf_read_rotary(json, "local_rope_theta", 10000, "sliding_attention", &c->local_rotary);
    if (s == STATUS_OK)
        s = hf_read_real(json, "norm_eps", 1e-5, 0, 1, &c->epsilon);
    if (s == STATUS_OK)
        s = hf_copy_text(json, hf_keys_of(c->family)->activation, "gelu", c->activation);
    if (s == STATUS_OK)
        s = read_classifier(json, c);
    c->window = window / 2 + 1; /* the key counts both sides */
    return s;
}

static void describe_layer(hf_builder *b, int64_t n, encoder_layer *l)
{
    const hf_config *c = b->config;
    char stem[40];
    snprintf(stem, sizeof stem, "layers.%lld", (long long)n);
    int64_t hidden = c->hidden, wide = c->intermediate;
    encoder_linear qkv = hf_fused(b, hf_name(b, "%s.attn.Wqkv", stem), 3 * hidden, hidden);
    encoder_linear wi = hf_fused(b, hf_name(b, "%s.mlp.Wi", stem), 2 * wide, hidden);
    if (n > 0)
        l->attention_norm = hf_norm(b, hf_name(b, "%s.attn_norm", stem), hidden);
    l->query = hf_linear_rows(b, &qkv, hf_name(b, "%s.attn.query", stem), 0, hidden);
    l->key = hf_linear_rows(b, &qkv, hf_name(b, "%s.attn.key", stem), hidden, hidden);
    l->value = hf_linear_rows(b, &qkv, hf_name(b, "%s.attn.value", stem), 2 * hidden, hidden);
    l->attention_output = hf_linear(b, hf_name(b, "%s.attn.Wo", stem), hidden, hidden);
    l->output_norm = hf_norm(b, hf_name(b, "%s.mlp_norm", stem), hidden);
    l->gate = hf_linear_rows(b, &wi, hf_name(b, "%s.mlp.gate", stem), 0, wide);
    l->up = hf_linear_rows(b, &wi, hf_name(b, "%s.mlp.up", stem), wide, wide);
    l->down = hf_linear(b, hf_name(b, "%s.mlp.Wo", stem), hidden, wide);
    l->activation = b->e->layers[0].activation;
    l->window = c->is_local[n] ? c->window : 0;
}

void hf_describe_modern_bert(hf_builder *b)
{
    const hf_config *c = b->config;
    encoder *e = b->e;
    const char *words = hf_name(b, "embeddings.tok_embeddings.weight");
    const encoder_rotary *global = hf_make_rotary(b, &c->rotary, c->head_dim);
    const encoder_rotary *local = hf_make_rotary(b, &c->local_rotary, c->head_dim);
    hf_check_axis(b, words, 0, "vocab_size", c->vocabulary);
    hf_check_axis(b, words, 1, "hidden_size", c->hidden);
    hf_check_axis(b, hf_name(b, "layers.0.mlp.Wo.weight"), 1, "intermediate_size", c->intermediate);
    hf_check_layer_count(b, hf_keys_of(c->family)->layers, "layers.%lld.attn.Wqkv.weight");
    e->is_pre_norm = true;
    e->intermediate = c->intermediate;
    e->word_table = hf_table(b, words, -1, c->hidden);
    e->embedding_norm = hf_norm(b, hf_name(b, "embeddings.norm"), c->hidden);
    e->layers[0].activation = hf_activation(b, hf_keys_of(c->family)->activation, c->activation);
    for (int64_t i = 0; i < c->layers && b->failed == STATUS_OK; i++) {
        describe_layer(b, i, &e->layers[i]);
        e->layers[i].rotary = c->is_local[i] ? local : global;
    }
    e->final_norm = hf_norm(b, hf_name(b, "final_norm"), c->hidden);
}

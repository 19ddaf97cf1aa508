#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/hugging_face/hugging_face.h"

/* JinaBERT (arXiv 2310.19923): a BERT whose scores fall with the distance (ALiBi, in both
 * directions) and whose feed-forward layers are gated. Its config.json says "bert". */

status hf_read_jina_bert(const json_t *json, hf_config *c)
{
    static const hf_setting settings[] = {{"is_decoder", HF_FALSE, NULL, 0},
                                          {"add_cross_attention", HF_FALSE, NULL, 0}};
    const char *kind;
    status s = hf_check_settings(json, sizeof settings / sizeof settings[0], settings);
    if (s == STATUS_OK)
        s = hf_read_text(json, "feed_forward_type", "original", &kind);
    if (s)
        return s;
    if (strcmp(kind, "geglu") != 0 && strcmp(kind, "reglu") != 0)
        return status_fail(STATUS_UNSUPPORTED,
                           "config.json: feed_forward_type '%s'; supported: geglu, reglu", kind);
    snprintf(c->activation, sizeof c->activation, "%s", kind[0] == 'g' ? "gelu" : "relu");
    return STATUS_OK;
}

/* The slopes of `heads`, a power of two: a geometric series whose first number is its ratio. */
static float slope_of(int64_t heads, int64_t head)
{
    double ratio = pow(2, -8.0 / (double)heads);
    return (float)pow(ratio, (double)(head + 1));
}

/* The paper's for a number of heads that is no power of two: those of the power below, then every
 * other one of the power above. */
static const float *make_slopes(hf_builder *b)
{
    int64_t heads = b->config->heads, below = 1;
    float *slopes = arena_allocate(&b->g->memory, (size_t)heads * sizeof *slopes);
    if (slopes == NULL) {
        hf_lack_memory(b);
        return NULL;
    }
    while (2 * below <= heads)
        below *= 2;
    for (int64_t h = 0; h < heads; h++)
        slopes[h] = h < below ? slope_of(below, h) : slope_of(2 * below, 2 * (h - below));
    return slopes;
}

static void describe_layer(hf_builder *b, int64_t n, encoder_layer *l)
{
    int64_t hidden = b->config->hidden, wide = b->config->intermediate;
    char stem[40];
    snprintf(stem, sizeof stem, "encoder.layer.%lld", (long long)n);
    l->query = hf_linear(b, hf_name(b, "%s.attention.self.query", stem), hidden, hidden);
    l->key = hf_linear(b, hf_name(b, "%s.attention.self.key", stem), hidden, hidden);
    l->value = hf_linear(b, hf_name(b, "%s.attention.self.value", stem), hidden, hidden);
    l->attention_output =
        hf_linear(b, hf_name(b, "%s.attention.output.dense", stem), hidden, hidden);
    l->attention_norm = hf_norm(b, hf_name(b, "%s.attention.output.LayerNorm", stem), hidden);
    encoder_linear both = hf_fused(b, hf_name(b, "%s.mlp.gated_layers", stem), 2 * wide, hidden);
    l->gate = hf_linear_rows(b, &both, hf_name(b, "%s.mlp.gate", stem), 0, wide);
    l->up = hf_linear_rows(b, &both, hf_name(b, "%s.mlp.up", stem), wide, wide);
    l->down = hf_linear(b, hf_name(b, "%s.mlp.wo", stem), hidden, wide);
    l->output_norm = hf_norm(b, hf_name(b, "%s.mlp.layernorm", stem), hidden);
    l->activation = b->e->layers[0].activation;
}

void hf_describe_jina_bert(hf_builder *b)
{
    const hf_config *c = b->config;
    encoder *e = b->e;
    const char *words = hf_name(b, "embeddings.word_embeddings.weight");
    hf_check_axis(b, words, 0, "vocab_size", c->vocabulary);
    hf_check_axis(b, words, 1, "hidden_size", c->hidden);
    hf_check_axis(b, hf_name(b, "encoder.layer.0.mlp.wo.weight"), 1, "intermediate_size",
                  c->intermediate);
    hf_check_axis(b, hf_name(b, "embeddings.token_type_embeddings.weight"), 0, "type_vocab_size",
                  c->types);
    hf_check_layer_count(b, "num_hidden_layers", "encoder.layer.%lld.attention.self.query.weight");
    if (hf_has(b, hf_name(b, "encoder.layer.0.attention.self.layer_norm_q")) &&
        b->failed == STATUS_OK)
        b->failed = status_fail(STATUS_UNSUPPORTED,
                                "tensor 'attention.self.layer_norm_q': norms of queries and keys "
                                "are not supported in this architecture");
    e->word_table = hf_table(b, words, -1, c->hidden);
    e->token_type_table =
        hf_table(b, hf_name(b, "embeddings.token_type_embeddings.weight"), c->types, c->hidden);
    e->embedding_norm = hf_norm(b, hf_name(b, "embeddings.LayerNorm"), c->hidden);
    e->slopes = make_slopes(b);
    e->layers[0].activation = hf_activation(b, "hidden_act", c->activation);
    for (int64_t i = 0; i < c->layers && b->failed == STATUS_OK; i++)
        describe_layer(b, i, &e->layers[i]);
}

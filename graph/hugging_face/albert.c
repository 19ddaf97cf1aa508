#include <stdio.h>

#include "graph/hugging_face/hugging_face.h"

/* ALBERT (arXiv 1909.11942): a BERT whose embeddings are narrow and projected to the hidden size,
 * and whose layers share their weights in groups. A group may have several layers, which run one
 * after the other each time. */

status hf_read_albert(const json_t *json, hf_config *c)
{
    status s = hf_read_size(json, "num_hidden_groups", 1, 1, HF_LAYERS_MAX, &c->groups);
    if (s == STATUS_OK)
        s = hf_read_size(json, "inner_group_num", 1, 1, HF_LAYERS_MAX, &c->group_layers);
    if (s == STATUS_OK && c->layers * c->group_layers > HF_LAYERS_MAX)
        s = status_fail(STATUS_TOO_LARGE,
                        "config.json: num_hidden_layers %lld times inner_group_num %lld is more "
                        "than %d layers",
                        (long long)c->layers, (long long)c->group_layers, HF_LAYERS_MAX);
    if (s == STATUS_OK)
        c->layers *= c->group_layers;
    return s;
}

/* "encoder.albert_layer_groups.0.albert_layers.0.<name>", behind the prefix. */
static const char *layer_name(hf_builder *b, int64_t group, int64_t layer, const char *name)
{
    return hf_name(b, "encoder.albert_layer_groups.%lld.albert_layers.%lld.%s", (long long)group,
                   (long long)layer, name);
}

/* The group that layer n is of: one division after the other, which round as transformers' do. */
static int64_t group_of(const hf_config *c, int64_t n)
{
    double layers_of_group = (double)(c->layers / c->group_layers) / (double)c->groups;
    return (int64_t)((double)(n / c->group_layers) / layers_of_group);
}

/* Fewer groups than the weights have would not be the first ones of that model, but another one. */
static void check_count(hf_builder *b, const char *key, int64_t count, const char *last,
                        const char *next)
{
    bool has_last = hf_weights_find(b->weights, last) != NULL;
    if (b->failed || (has_last && hf_weights_find(b->weights, next) == NULL))
        return;
    b->failed =
        status_fail(STATUS_CORRUPT, "config.json: %s is %lld, but the weights have %stensor '%s'",
                    key, (long long)count, has_last ? "" : "no ", has_last ? next : last);
}

/* Checks config.json against the tensors, so that an error names the key. */
static void check_sizes(hf_builder *b)
{
    static const char query[] = "attention.query.weight";
    const hf_config *c = b->config;
    const char *words = hf_name(b, "embeddings.word_embeddings.weight");
    hf_check_axis(b, words, 0, "vocab_size", c->vocabulary);
    hf_check_axis(b, words, 1, "embedding_size", c->embedding);
    hf_check_axis(b, hf_name(b, "embeddings.position_embeddings.weight"), 0,
                  "max_position_embeddings", c->positions);
    hf_check_axis(b, hf_name(b, "embeddings.token_type_embeddings.weight"), 0, "type_vocab_size",
                  c->types);
    hf_check_axis(b, layer_name(b, 0, 0, query), 0, "hidden_size", c->hidden);
    hf_check_axis(b, layer_name(b, 0, 0, "ffn.weight"), 0, "intermediate_size", c->intermediate);
    check_count(b, "num_hidden_groups", c->groups, layer_name(b, c->groups - 1, 0, query),
                layer_name(b, c->groups, 0, query));
    check_count(b, "inner_group_num", c->group_layers, layer_name(b, 0, c->group_layers - 1, query),
                layer_name(b, 0, c->group_layers, query));
}

static void describe_embeddings(hf_builder *b)
{
    encoder *e = b->e;
    e->word_table = hf_table(b, hf_name(b, "embeddings.word_embeddings.weight"), -1, -1);
    int64_t width = b->failed ? 1 : e->word_table->dims[1];
    e->position_table = hf_table(b, hf_name(b, "embeddings.position_embeddings.weight"),
                                 b->config->positions, width);
    e->token_type_table =
        hf_table(b, hf_name(b, "embeddings.token_type_embeddings.weight"), -1, width);
    e->positions = ENCODER_POSITIONS_COUNTED;
    e->embedding_norm = hf_norm(b, hf_name(b, "embeddings.LayerNorm"), width);
    e->embedding_projection =
        hf_linear(b, hf_name(b, "encoder.embedding_hidden_mapping_in"), b->config->hidden, width);
}

static void describe_layer(hf_builder *b, int64_t group, int64_t n, encoder_layer *l)
{
    char layers[80];
    snprintf(layers, sizeof layers, "encoder.albert_layer_groups.%lld.albert_layers",
             (long long)group);
    const hf_layer_names names = {layers,
                                  "attention.query",
                                  "attention.key",
                                  "attention.value",
                                  "attention.dense",
                                  "attention.LayerNorm",
                                  "ffn",
                                  "ffn_output",
                                  "full_layer_layer_norm"};
    hf_describe_bert_layer(b, &names, n, l);
}

void hf_describe_albert(hf_builder *b)
{
    const hf_config *c = b->config;
    encoder_layer *layers = b->e->layers;
    encoder_activation activation = hf_activation(b, "hidden_act", c->activation);
    check_sizes(b);
    describe_embeddings(b);
    for (int64_t i = 0; i < c->layers && b->failed == STATUS_OK; i++) {
        int64_t group = group_of(c, i), before = i - c->group_layers;
        if (before >= 0 && group_of(c, before) == group)
            layers[i] = layers[before]; /* the same tensors */
        else
            describe_layer(b, group, i % c->group_layers, &layers[i]);
        layers[i].activation = activation;
    }
}

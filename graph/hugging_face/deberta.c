#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/hugging_face/hugging_face.h"

/* DeBERTa-v2 and v3 (arXiv 2006.03654, 2111.09543): a BERT whose scores also compare content with
 * relative positions, in both directions ("disentangled attention"). */

/* "c2p|p2c", or a list of them. */
static bool has_kind(const json_t *json, const char *kind)
{
    const json_t *kinds = json_object_get(json, "pos_att_type");
    if (json_is_string(kinds))
        return strstr(json_string_value(kinds), kind) != NULL;
    for (size_t i = 0; i < json_array_size(kinds); i++) {
        const char *one = json_string_value(json_array_get(kinds, i));
        if (one != NULL && strcmp(one, kind) == 0)
            return true;
    }
    return false;
}

static bool is_true(const json_t *json, const char *key, bool otherwise)
{
    return hf_is_there(json, key) ? json_is_true(json_object_get(json, key)) : otherwise;
}

static status read_distances(const json_t *json, hf_config *c)
{
    hf_distances *d = &c->distances;
    const char *norm;
    int64_t longest = -1;
    d->is_relative = is_true(json, "relative_attention", false);
    d->reads_keys = has_kind(json, "c2p");
    d->reads_queries = has_kind(json, "p2c");
    d->shares_projections = is_true(json, "share_att_key", false);
    status s = hf_read_text(json, "norm_rel_ebd", "none", &norm);
    if (s == STATUS_OK && strcmp(norm, "none") != 0 && strcmp(norm, "layer_norm") != 0)
        s = status_fail(STATUS_UNSUPPORTED,
                        "config.json: norm_rel_ebd '%s'; supported: none, layer_norm", norm);
    if (s == STATUS_OK)
        s = hf_read_size(json, "position_buckets", -1, -1, 1 << 20, &d->buckets);
    if (s == STATUS_OK)
        s = hf_read_size(json, "max_relative_positions", -1, -1, 1 << 20, &longest);
    if (s)
        return s;
    d->has_norm = norm[0] == 'l';
    d->buckets = d->buckets > 0 ? d->buckets : 0;
    d->longest = longest > 0 ? longest : c->positions;
    if (d->buckets != 0 && (d->buckets < 4 || d->longest <= d->buckets / 2 + 1))
        return status_fail(STATUS_CORRUPT,
                           "config.json: position_buckets %lld do not fit max_relative_positions, "
                           "%lld",
                           (long long)d->buckets, (long long)d->longest);
    return STATUS_OK;
}

status hf_read_deberta(const json_t *json, hf_config *c)
{
    static const hf_setting settings[] = {{"conv_kernel_size", HF_NUMBER, NULL, 0},
                                          {"is_decoder", HF_FALSE, NULL, 0},
                                          {"talking_head", HF_FALSE, NULL, 0}};
    static const hf_sizes otherwise = {1536, 24, 24, 6144};
    const hf_keys *k = hf_keys_of(c->family);
    int64_t same;
    status s = hf_check_settings(json, sizeof settings / sizeof settings[0], settings);
    if (s == STATUS_OK)
        s = hf_read_sizes(json, k, &otherwise, c);
    if (s == STATUS_OK)
        s = hf_read_size(json, "max_position_embeddings", 512, 1, 1 << 20, &c->positions);
    if (s == STATUS_OK)
        s = hf_read_size(json, "type_vocab_size", 0, 0, 65536, &c->types);
    if (s == STATUS_OK)
        s = hf_read_size(json, "attention_head_size", c->head_dim, c->head_dim, c->head_dim, &same);
    if (s == STATUS_OK)
        s = hf_read_size(json, "embedding_size", c->hidden, c->hidden, c->hidden, &same);
    if (s == STATUS_OK)
        s = hf_read_real(json, "layer_norm_eps", 1e-7, 0, 1, &c->epsilon);
    if (s == STATUS_OK)
        s = hf_copy_text(json, k->activation, "gelu", c->activation);
    if (s == STATUS_OK)
        s = hf_copy_text(json, "pooler_hidden_act", "gelu", c->class_activation);
    c->distances.has_positions = is_true(json, "position_biased_input", true);
    return s ? s : read_distances(json, c);
}

static encoder_linear part(hf_builder *b, int64_t n, const char *name, int64_t out, int64_t in)
{
    return hf_linear(b, hf_name(b, "encoder.layer.%lld.%s", (long long)n, name), out, in);
}

static encoder_norm norm(hf_builder *b, int64_t n, const char *name)
{
    return hf_norm(b, hf_name(b, "encoder.layer.%lld.%s", (long long)n, name), b->config->hidden);
}

static void describe_distances(hf_builder *b, int64_t n, encoder_layer *l)
{
    const hf_distances *d = &b->config->distances;
    int64_t hidden = b->config->hidden;
    if (!d->is_relative)
        return;
    if (d->reads_keys)
        l->position_key = d->shares_projections
                              ? l->key
                              : part(b, n, "attention.self.pos_key_proj", hidden, hidden);
    if (d->reads_queries)
        l->position_query = d->shares_projections
                                ? l->query
                                : part(b, n, "attention.self.pos_query_proj", hidden, hidden);
}

static void describe_layer(hf_builder *b, int64_t n, encoder_layer *l)
{
    int64_t hidden = b->config->hidden, wide = b->config->intermediate;
    l->query = part(b, n, "attention.self.query_proj", hidden, hidden);
    l->key = part(b, n, "attention.self.key_proj", hidden, hidden);
    l->value = part(b, n, "attention.self.value_proj", hidden, hidden);
    describe_distances(b, n, l);
    l->attention_output = part(b, n, "attention.output.dense", hidden, hidden);
    l->attention_norm = norm(b, n, "attention.output.LayerNorm");
    l->up = part(b, n, "intermediate.dense", wide, hidden);
    l->down = part(b, n, "output.dense", hidden, wide);
    l->output_norm = norm(b, n, "output.LayerNorm");
    l->activation = b->e->layers[0].activation;
}

static void describe_embeddings(hf_builder *b)
{
    const hf_config *c = b->config;
    encoder *e = b->e;
    e->word_table = hf_table(b, hf_name(b, "embeddings.word_embeddings.weight"), -1, c->hidden);
    if (c->distances.has_positions) {
        e->position_table = hf_table(b, hf_name(b, "embeddings.position_embeddings.weight"),
                                     c->positions, c->hidden);
        e->positions = ENCODER_POSITIONS_COUNTED;
    }
    if (c->types > 0 && !hf_has(b, hf_name(b, "embeddings.token_type_embeddings")) &&
        b->failed == STATUS_OK)
        b->failed = status_fail(STATUS_CORRUPT,
                                "config.json: type_vocab_size is %lld, but the weights have no "
                                "token_type_embeddings",
                                (long long)c->types);
    if (c->types > 0)
        e->token_type_table =
            hf_table(b, hf_name(b, "embeddings.token_type_embeddings.weight"), c->types, c->hidden);
    e->embedding_norm = hf_norm(b, hf_name(b, "embeddings.LayerNorm"), c->hidden);
}

void hf_describe_deberta(hf_builder *b)
{
    const hf_config *c = b->config;
    const hf_distances *d = &c->distances;
    encoder *e = b->e;
    const char *words = hf_name(b, "embeddings.word_embeddings.weight");
    hf_check_axis(b, words, 0, "vocab_size", c->vocabulary);
    hf_check_axis(b, words, 1, "hidden_size", c->hidden);
    hf_check_axis(b, hf_name(b, "encoder.layer.0.intermediate.dense.weight"), 0,
                  "intermediate_size", c->intermediate);
    hf_check_axis(b, hf_name(b, "embeddings.token_type_embeddings.weight"), 0, "type_vocab_size",
                  c->types);
    hf_check_layer_count(b, hf_keys_of(c->family)->layers,
                         "encoder.layer.%lld.attention.self.query_proj.weight");
    /* Content and both directions count as one variance each. */
    e->attention_scale /= sqrtf((float)(1 + d->reads_keys + d->reads_queries));
    describe_embeddings(b);
    if (d->is_relative) {
        e->distance_span = d->buckets != 0 ? d->buckets : d->longest;
        e->distance_buckets = d->buckets;
        e->distance_longest = d->longest;
        hf_check_axis(b, hf_name(b, "encoder.rel_embeddings.weight"), 0,
                      "twice position_buckets (or else max_relative_positions)",
                      2 * e->distance_span);
        e->distance_table = hf_table(b, hf_name(b, "encoder.rel_embeddings.weight"),
                                     2 * e->distance_span, c->hidden);
        if (d->has_norm)
            e->distance_norm = hf_norm(b, hf_name(b, "encoder.LayerNorm"), c->hidden);
    }
    e->layers[0].activation = hf_activation(b, hf_keys_of(c->family)->activation, c->activation);
    for (int64_t i = 0; i < c->layers && b->failed == STATUS_OK; i++)
        describe_layer(b, i, &e->layers[i]);
}

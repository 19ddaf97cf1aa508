#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/log.h"
#include "graph/hugging_face/hugging_face.h"

/* The names of the tensors of a layer by family, below "<layers>.<number>.". */
typedef struct layer_names {
    const char *layers;
    const char *query, *key, *value, *output, *output_norm, *up, *down, *down_norm;
} layer_names;

static const layer_names bert_names = {
    "encoder.layer",        "attention.self.query",   "attention.self.key",
    "attention.self.value", "attention.output.dense", "attention.output.LayerNorm",
    "intermediate.dense",   "output.dense",           "output.LayerNorm",
};
static const layer_names distilbert_names = {
    "transformer.layer", "attention.q_lin",   "attention.k_lin",
    "attention.v_lin",   "attention.out_lin", "sa_layer_norm",
    "ffn.lin1",          "ffn.lin2",          "output_layer_norm",
};
static const layer_names mpnet_names = {
    "encoder.layer",      "attention.attn.q", "attention.attn.k",
    "attention.attn.v",   "attention.attn.o", "attention.LayerNorm",
    "intermediate.dense", "output.dense",     "output.LayerNorm",
};

/* Checks axis 0 or 1 of a matrix against the size in config.json (0: absent there). A tensor that
 * is missing or no matrix is reported where it is used. */
static void check_axis(hf_builder *b, const char *name, int axis, const char *key, int64_t expected)
{
    const safetensors_entry *e = hf_weights_find(b->weights, name);
    if (b->failed || expected == 0 || e == NULL || e->value.rank != 2 ||
        e->value.dims[axis] == expected)
        return;
    char text[TENSOR_SHAPE_TEXT_BYTES];
    b->failed = status_fail(STATUS_CORRUPT, "config.json: %s is %lld, but tensor '%s' is %s", key,
                            (long long)expected, name,
                            tensor_shape_text(text, e->value.rank, e->value.dims));
}

static const char *query_of_layer(hf_builder *b, const layer_names *names, int64_t layer)
{
    return hf_name(b, "%s.%lld.%s.weight", names->layers, (long long)layer, names->query);
}

static void check_layer_count(hf_builder *b, const layer_names *names)
{
    const char *key = hf_keys_of(b->config->family)->layers;
    int64_t layers = b->config->layers;
    for (int64_t i = 1; i < layers && b->failed == STATUS_OK; i++)
        if (hf_weights_find(b->weights, query_of_layer(b, names, i)) == NULL)
            b->failed = status_fail(STATUS_CORRUPT,
                                    "config.json: %s is %lld, but the weights have no tensor '%s'",
                                    key, (long long)layers, query_of_layer(b, names, i));
    if (hf_weights_find(b->weights, query_of_layer(b, names, layers)) != NULL)
        log_warning("graph", "config.json: %s is %lld; the weights have more layers, not used", key,
                    (long long)layers);
}

/* Checks config.json against the tensors, so that an error names the key. */
static void check_sizes(hf_builder *b, const layer_names *names)
{
    const hf_config *c = b->config;
    const hf_keys *keys = hf_keys_of(c->family);
    const char *words = hf_name(b, "embeddings.word_embeddings.weight");
    bool is_electra = c->family == HF_ELECTRA;
    check_axis(b, words, 0, "vocab_size", c->vocabulary);
    check_axis(b, words, 1, is_electra ? "embedding_size" : keys->hidden,
               is_electra ? c->embedding : c->hidden);
    check_axis(b, hf_name(b, "embeddings.position_embeddings.weight"), 0, "max_position_embeddings",
               c->positions);
    check_axis(b, hf_name(b, "embeddings.token_type_embeddings.weight"), 0, "type_vocab_size",
               c->types);
    check_axis(b, hf_name(b, "encoder.relative_attention_bias.weight"), 0,
               "relative_attention_num_buckets", c->relative_buckets);
    check_axis(b, hf_name(b, "encoder.relative_attention_bias.weight"), 1, keys->heads, c->heads);
    check_axis(b, query_of_layer(b, names, 0), 0, keys->hidden, c->hidden);
    check_axis(b, hf_name(b, "%s.0.%s.weight", names->layers, names->up), 0, keys->intermediate,
               c->intermediate);
    check_layer_count(b, names);
}

static graph_value_index gather(hf_builder *b, graph_value_index table, graph_value_index indices)
{
    graph_value_index inputs[] = {table, indices};
    graph_attribute axis = graph_make_int("axis", 0);
    return graph_add(b->g, GRAPH_OP_GATHER, 2, inputs, 1, &axis);
}

/* 0 .. S-1, [S]. */
static graph_value_index count_positions(hf_builder *b)
{
    graph_value_index shape = hf_unary(b, GRAPH_OP_SHAPE, b->ids);
    graph_value_index inputs[] = {hf_int(b, 0), hf_binary(b, GRAPH_OP_GATHER, shape, hf_int(b, 1)),
                                  hf_int(b, 1)};
    return graph_add(b->g, GRAPH_OP_RANGE, 3, inputs, 0, NULL);
}

/* Positions of RoBERTa and MPNet, [B,S]: tokens other than padding count from pad + 1 on; padding
 * has position pad. */
static graph_value_index number_tokens(hf_builder *b)
{
    graph_value_index pad = hf_int(b, b->config->pad_token);
    graph_value_index is_pad = hf_binary(b, GRAPH_OP_EQUAL, b->ids, pad);
    graph_value_index is_token = hf_cast(b, hf_unary(b, GRAPH_OP_NOT, is_pad), DTYPE_I64);
    graph_value_index count = hf_binary(b, GRAPH_OP_CUM_SUM, is_token, hf_int(b, 1));
    return hf_binary(b, GRAPH_OP_ADD, hf_binary(b, GRAPH_OP_MUL, count, is_token), pad);
}

static graph_value_index add_embeddings(hf_builder *b)
{
    const hf_config *c = b->config;
    bool numbers_tokens = c->family == HF_ROBERTA || c->family == HF_MPNET;
    graph_value_index words = hf_weight(b, hf_name(b, "embeddings.word_embeddings.weight"), -1, -1);
    graph_value_index positions =
        hf_weight(b, hf_name(b, "embeddings.position_embeddings.weight"), c->positions, -1);
    if (b->failed)
        return 0;
    graph_value_index x = gather(b, words, b->ids);
    if (c->family != HF_DISTILBERT && c->family != HF_MPNET) {
        graph_value_index table =
            hf_weight(b, hf_name(b, "embeddings.token_type_embeddings.weight"), -1, -1);
        graph_value_index types = b->types != GRAPH_NO_VALUE ? b->types : hf_int(b, 0);
        x = hf_binary(b, GRAPH_OP_ADD, x, gather(b, table, types));
    }
    graph_value_index numbers = numbers_tokens ? number_tokens(b) : count_positions(b);
    x = hf_binary(b, GRAPH_OP_ADD, x, gather(b, positions, numbers));
    x = hf_layer_normalization(b, x, hf_name(b, "embeddings.LayerNorm"));
    if (c->family == HF_ELECTRA && hf_has(b, hf_name(b, "embeddings_project")))
        x = hf_linear(b, x, hf_name(b, "embeddings_project"));
    return x;
}

/* The attention mask, [B,1,1,S]: 0 for keys that count, the lowest float for others. */
static graph_value_index make_mask_bias(hf_builder *b)
{
    int64_t axes[] = {1, 2};
    graph_value_index mask = hf_cast(b, b->mask, DTYPE_F32);
    mask = hf_binary(b, GRAPH_OP_UNSQUEEZE, mask, hf_ints(b, 2, axes));
    graph_value_index absent = hf_binary(b, GRAPH_OP_SUB, hf_float(b, 1), mask);
    return hf_binary(b, GRAPH_OP_MUL, absent, hf_float(b, -FLT_MAX));
}

/* MPNet's bucket of each distance d = key - query, for d from -(positions-1) to positions-1: the
 * bidirectional buckets of T5 (arXiv 1910.10683, section 2.1), half of them for each sign, half of
 * those exact, the rest logarithmic up to a distance of 128. A table, because a logarithm at run
 * time would have to round as the training code did. */
static graph_value_index add_bucket_table(hf_builder *b)
{
    int64_t reach = b->config->positions, count = 2 * reach - 1;
    int64_t half = b->config->relative_buckets / 2, exact = half / 2;
    int64_t *buckets = malloc((size_t)count * sizeof buckets[0]);
    if (buckets == NULL)
        abort();
    for (int64_t i = 0; i < count; i++) {
        int64_t d = i - (reach - 1), n = d < 0 ? -d : d, bucket = n;
        if (n >= exact) {
            float ratio = logf((float)n / (float)exact) / (float)log(128.0 / (double)exact);
            bucket = exact + (int64_t)(ratio * (float)(half - exact));
            bucket = bucket < half ? bucket : half - 1;
        }
        buckets[i] = bucket + (d > 0 ? half : 0);
    }
    graph_value_index table = hf_ints(b, (int)count, buckets);
    free(buckets);
    return table;
}

/* [1,heads,S,S]. */
static graph_value_index make_position_bias(hf_builder *b)
{
    const hf_config *c = b->config;
    int64_t zero = 0, one = 1;
    graph_value_index weights = hf_weight(b, hf_name(b, "encoder.relative_attention_bias.weight"),
                                          c->relative_buckets, c->heads);
    if (b->failed)
        return 0;
    graph_value_index range = count_positions(b);
    graph_value_index keys = hf_binary(b, GRAPH_OP_UNSQUEEZE, range, hf_ints(b, 1, &zero));
    graph_value_index queries = hf_binary(b, GRAPH_OP_UNSQUEEZE, range, hf_ints(b, 1, &one));
    graph_value_index distance = hf_binary(b, GRAPH_OP_SUB, keys, queries);
    distance = hf_binary(b, GRAPH_OP_ADD, distance, hf_int(b, c->positions - 1));
    graph_value_index bias = gather(b, weights, gather(b, add_bucket_table(b), distance));
    int64_t order[] = {2, 0, 1};
    graph_attribute perm = graph_make_ints(b->g, "perm", 3, order);
    bias = graph_add(b->g, GRAPH_OP_TRANSPOSE, 1, &bias, 1, &perm);
    return hf_binary(b, GRAPH_OP_UNSQUEEZE, bias, hf_ints(b, 1, &zero));
}

/* [B,S,H] to [B,heads,S,size], or [B,heads,size,S] for keys. */
static graph_value_index split_heads(hf_builder *b, graph_value_index x, bool is_key)
{
    const hf_config *c = b->config;
    int64_t shape[] = {0, 0, c->heads, c->hidden / c->heads};
    int64_t order[] = {0, 2, is_key ? 3 : 1, is_key ? 1 : 3};
    graph_attribute perm = graph_make_ints(b->g, "perm", 4, order);
    x = hf_binary(b, GRAPH_OP_RESHAPE, x, hf_ints(b, 4, shape));
    return graph_add(b->g, GRAPH_OP_TRANSPOSE, 1, &x, 1, &perm);
}

static graph_value_index add_attention(hf_builder *b, graph_value_index x, const layer_names *names,
                                       int64_t layer, graph_value_index mask_bias,
                                       graph_value_index position_bias)
{
    const hf_config *c = b->config;
    long long n = layer;
    const char *stem = names->layers;
    graph_value_index q = hf_linear(b, x, hf_name(b, "%s.%lld.%s", stem, n, names->query));
    graph_value_index k = hf_linear(b, x, hf_name(b, "%s.%lld.%s", stem, n, names->key));
    graph_value_index v = hf_linear(b, x, hf_name(b, "%s.%lld.%s", stem, n, names->value));
    graph_value_index scores =
        hf_binary(b, GRAPH_OP_MATMUL, split_heads(b, q, false), split_heads(b, k, true));
    float scale = (float)sqrt((double)(c->hidden / c->heads));
    scores = hf_binary(b, GRAPH_OP_DIV, scores, hf_float(b, scale));
    if (position_bias != GRAPH_NO_VALUE)
        scores = hf_binary(b, GRAPH_OP_ADD, scores, position_bias);
    scores = hf_binary(b, GRAPH_OP_ADD, scores, mask_bias);
    graph_attribute axis = graph_make_int("axis", -1);
    graph_value_index weights = graph_add(b->g, GRAPH_OP_SOFTMAX, 1, &scores, 1, &axis);
    graph_value_index mixed = hf_binary(b, GRAPH_OP_MATMUL, weights, split_heads(b, v, false));
    int64_t order[] = {0, 2, 1, 3}, shape[] = {0, 0, c->hidden};
    graph_attribute perm = graph_make_ints(b->g, "perm", 4, order);
    mixed = graph_add(b->g, GRAPH_OP_TRANSPOSE, 1, &mixed, 1, &perm);
    mixed = hf_binary(b, GRAPH_OP_RESHAPE, mixed, hf_ints(b, 3, shape));
    return hf_linear(b, mixed, hf_name(b, "%s.%lld.%s", stem, n, names->output));
}

static graph_value_index add_layer(hf_builder *b, graph_value_index x, const layer_names *names,
                                   int64_t layer, graph_value_index mask_bias,
                                   graph_value_index position_bias)
{
    long long n = layer;
    const char *stem = names->layers;
    graph_value_index attention = add_attention(b, x, names, layer, mask_bias, position_bias);
    x = hf_binary(b, GRAPH_OP_ADD, attention, x);
    x = hf_layer_normalization(b, x, hf_name(b, "%s.%lld.%s", stem, n, names->output_norm));
    graph_value_index up = hf_linear(b, x, hf_name(b, "%s.%lld.%s", stem, n, names->up));
    up = hf_activation(b, up, b->config->activation);
    graph_value_index down = hf_linear(b, up, hf_name(b, "%s.%lld.%s", stem, n, names->down));
    x = hf_binary(b, GRAPH_OP_ADD, down, x);
    return hf_layer_normalization(b, x, hf_name(b, "%s.%lld.%s", stem, n, names->down_norm));
}

graph_value_index hf_add_encoder(hf_builder *b)
{
    const hf_config *c = b->config;
    const layer_names *names = c->family == HF_DISTILBERT ? &distilbert_names
                               : c->family == HF_MPNET    ? &mpnet_names
                                                          : &bert_names;
    check_sizes(b, names);
    if (b->failed)
        return 0;
    graph_value_index x = add_embeddings(b);
    graph_value_index mask_bias = make_mask_bias(b);
    graph_value_index position_bias =
        c->family == HF_MPNET ? make_position_bias(b) : GRAPH_NO_VALUE;
    for (int64_t layer = 0; layer < c->layers && b->failed == STATUS_OK; layer++)
        x = add_layer(b, x, names, layer, mask_bias, position_bias);
    return x;
}

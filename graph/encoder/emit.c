#include "graph/encoder/emit.h"

#include <assert.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "graph/build.h"
#include "graph/encoder/emit_internal.h"

/* From a description to nodes. The ids are [B,S]; hidden states are [B,S,hidden]. */

/* The graph's constant with that tensor, added if need be. */
static graph_value_index constant(const encoder_emitter *m, const tensor *t)
{
    const graph *g = m->g;
    for (int32_t v = 0; v < g->value_count; v++)
        if (g->values[v].constant == t)
            return v;
    return graph_add_constant(m->g, NULL, t);
}

static graph_value_index integer(const encoder_emitter *m, int64_t i)
{
    return graph_add_constant_i64(m->g, NULL, 0, NULL, &i);
}

/* "encoder.layer.3.output.dense" of "encoder.layer.3.output.dense.weight". */
static const char *stem_of(const encoder_emitter *m, graph_value_index weight)
{
    static const char ending[] = ".weight";
    const char *name = m->g->values[weight].name;
    size_t bytes = strlen(name), end = sizeof ending - 1;
    bool has_it = bytes > end && strcmp(name + bytes - end, ending) == 0;
    char *stem = arena_format(&m->g->memory, "%.*s", (int)(has_it ? bytes - end : bytes), name);
    if (stem == NULL)
        graph_lack_memory(m->g);
    return stem != NULL ? stem : "";
}

/* Weights are stored [out, in]. A node transposes them, so that a device that uses them as they are
 * need not read them. */
graph_value_index encoder_emit_linear(const encoder_emitter *m, const encoder_linear *l,
                                      graph_value_index x)
{
    graph_value_index weight = constant(m, l->weight);
    const char *name = stem_of(m, weight);
    if (l->is_transposed)
        weight = graph_unary(m->g, GRAPH_OP_TRANSPOSE, weight);
    graph_value_index inputs[] = {x, weight};
    int32_t node = graph_add_node(m->g, GRAPH_OP_MATMUL, name, 2, inputs, 1, 0, NULL);
    x = m->g->nodes[node].outputs[0];
    return l->bias ? graph_binary(m->g, GRAPH_OP_ADD, x, constant(m, l->bias)) : x;
}

static graph_value_index rms_norm(const encoder_emitter *m, const encoder_norm *n,
                                  graph_value_index x)
{
    graph_value_index squares = graph_binary(m->g, GRAPH_OP_MUL, x, x);
    graph_value_index mean = graph_reduce(m->g, GRAPH_OP_REDUCE_MEAN, squares, -1, true);
    mean = graph_binary(m->g, GRAPH_OP_ADD, mean, graph_number(m->g, n->epsilon));
    x = graph_binary(m->g, GRAPH_OP_DIV, x, graph_unary(m->g, GRAPH_OP_SQRT, mean));
    return graph_binary(m->g, GRAPH_OP_MUL, x, constant(m, n->scale));
}

graph_value_index encoder_emit_norm(const encoder_emitter *m, const encoder_norm *n,
                                    graph_value_index x)
{
    if (n->scale == NULL)
        return x;
    if (n->is_rms)
        return rms_norm(m, n, x);
    graph_value_index inputs[] = {x, constant(m, n->scale),
                                  n->bias ? constant(m, n->bias) : GRAPH_NO_VALUE};
    graph_attribute attributes[] = {graph_make_int("axis", -1),
                                    graph_make_float("epsilon", n->epsilon)};
    int32_t node = graph_add_node(m->g, GRAPH_OP_LAYER_NORMALIZATION, stem_of(m, inputs[1]),
                                  n->bias ? 3 : 2, inputs, 1, 2, attributes);
    return m->g->nodes[node].outputs[0];
}

/* --- embeddings --- */

/* 0 .. S-1, [S]. */
static graph_value_index count_positions(const encoder_emitter *m)
{
    graph_value_index shape = graph_unary(m->g, GRAPH_OP_SHAPE, m->ids);
    graph_value_index inputs[] = {
        integer(m, 0), graph_binary(m->g, GRAPH_OP_GATHER, shape, integer(m, 1)), integer(m, 1)};
    return graph_add(m->g, GRAPH_OP_RANGE, 3, inputs, 0, NULL);
}

/* Positions of RoBERTa and MPNet, [B,S]: tokens other than padding count from pad + 1 on; padding
 * has position pad. */
static graph_value_index number_tokens(const encoder_emitter *m)
{
    graph_value_index pad = integer(m, m->e->pad_id);
    graph_value_index is_pad = graph_binary(m->g, GRAPH_OP_EQUAL, m->ids, pad);
    graph_value_index is_token =
        graph_cast(m->g, graph_unary(m->g, GRAPH_OP_NOT, is_pad), DTYPE_I64);
    graph_value_index count = graph_binary(m->g, GRAPH_OP_CUM_SUM, is_token, integer(m, 1));
    return graph_binary(m->g, GRAPH_OP_ADD, graph_binary(m->g, GRAPH_OP_MUL, count, is_token), pad);
}

static graph_value_index embeddings(encoder_emitter *m)
{
    const encoder *e = m->e;
    graph_value_index x = graph_gather(m->g, constant(m, e->word_table), m->ids, 0);
    if (e->token_type_table != NULL) {
        graph_value_index types = m->types != GRAPH_NO_VALUE ? m->types : integer(m, 0);
        x = graph_binary(m->g, GRAPH_OP_ADD, x,
                         graph_gather(m->g, constant(m, e->token_type_table), types, 0));
    }
    if (e->positions != ENCODER_POSITIONS_NONE) {
        graph_value_index at =
            e->positions == ENCODER_POSITIONS_FROM_IDS ? number_tokens(m) : m->positions;
        if (e->positions == ENCODER_POSITIONS_COUNTED && e->position_offset != 0)
            at = graph_binary(m->g, GRAPH_OP_ADD, at, integer(m, e->position_offset));
        x = graph_binary(m->g, GRAPH_OP_ADD, x,
                         graph_gather(m->g, constant(m, e->position_table), at, 0));
    }
    x = encoder_emit_norm(m, &e->embedding_norm, x);
    return e->embedding_projection.weight ? encoder_emit_linear(m, &e->embedding_projection, x) : x;
}

/* --- attention --- */

static graph_value_index unsqueeze(const encoder_emitter *m, graph_value_index x, int count,
                                   const int64_t *axes)
{
    return graph_binary(m->g, GRAPH_OP_UNSQUEEZE, x, graph_ints(m->g, count, axes));
}

/* The attention mask, [B,1,1,S]: 0 for keys that count, the lowest float for others. */
static graph_value_index make_mask_bias(const encoder_emitter *m)
{
    const int64_t axes[] = {1, 2};
    graph_value_index mask = m->mask;
    if (m->e->excludes_prompt)
        mask = graph_cast(m->g, mask, DTYPE_BOOL);
    mask = unsqueeze(m, graph_cast(m->g, mask, DTYPE_F32), 2, axes);
    graph_value_index absent = graph_binary(m->g, GRAPH_OP_SUB, graph_number(m->g, 1), mask);
    return graph_binary(m->g, GRAPH_OP_MUL, absent, graph_number(m->g, -FLT_MAX));
}

/* Key minus query, i64 [S,S]. */
static graph_value_index distances(const encoder_emitter *m)
{
    const int64_t zero = 0, one = 1;
    return graph_binary(m->g, GRAPH_OP_SUB, unsqueeze(m, m->positions, 1, &zero),
                        unsqueeze(m, m->positions, 1, &one));
}

/* The bucket of each distance from -(reach - 1) to reach - 1: a table, because a logarithm at run
 * time would round in its own way. */
static graph_value_index bucket_table(const encoder_emitter *m, int64_t reach)
{
    const encoder *e = m->e;
    int64_t count = 2 * reach - 1;
    int64_t *buckets = malloc((size_t)count * sizeof buckets[0]);
    if (buckets == NULL)
        return graph_lack_memory(m->g);
    for (int64_t i = 0; i < count; i++)
        buckets[i] = encoder_relative_bucket(e->relative_table->dims[0], e->relative_distance_max,
                                             i - (reach - 1));
    graph_value_index table = graph_ints(m->g, (int)count, buckets);
    free(buckets);
    return table;
}

/* [1,heads,S,S]. */
static graph_value_index relative_bias(const encoder_emitter *m)
{
    const encoder *e = m->e;
    const int64_t zero = 0, order[] = {2, 0, 1};
    int64_t reach = e->position_table->dims[0];
    graph_value_index distance =
        graph_binary(m->g, GRAPH_OP_ADD, distances(m), integer(m, reach - 1));
    graph_value_index bucket = graph_gather(m->g, bucket_table(m, reach), distance, 0);
    graph_value_index bias = graph_gather(m->g, constant(m, e->relative_table), bucket, 0);
    return unsqueeze(m, graph_transpose(m->g, bias, 3, order), 1, &zero);
}

/* ALiBi, [1,heads,S,S]. */
static graph_value_index slope_bias(const encoder_emitter *m)
{
    const int64_t axes[] = {0, 1}, dims[] = {1, m->e->heads, 1, 1};
    float *negative = malloc((size_t)m->e->heads * sizeof *negative);
    if (negative == NULL)
        return graph_lack_memory(m->g);
    for (int64_t h = 0; h < m->e->heads; h++)
        negative[h] = -m->e->slopes[h];
    graph_value_index slopes = graph_add_constant_f32(m->g, NULL, 4, dims, negative);
    free(negative);
    graph_value_index far =
        graph_cast(m->g, graph_unary(m->g, GRAPH_OP_ABS, distances(m)), DTYPE_F32);
    return graph_binary(m->g, GRAPH_OP_MUL, unsqueeze(m, far, 2, axes), slopes);
}

/* [1,1,S,S]: the lowest float where a token may not attend to another, GRAPH_NO_VALUE: it may. */
static graph_value_index limit_bias(const encoder_emitter *m, int64_t window)
{
    const int64_t axes[] = {0, 1};
    graph_value_index hidden = GRAPH_NO_VALUE;
    if (m->e->is_causal)
        hidden = graph_binary(m->g, GRAPH_OP_GREATER, distances(m), integer(m, 0));
    if (window != 0) {
        graph_value_index far =
            graph_binary(m->g, GRAPH_OP_GREATER_OR_EQUAL,
                         graph_unary(m->g, GRAPH_OP_ABS, distances(m)), integer(m, window));
        hidden = hidden == GRAPH_NO_VALUE ? far : graph_binary(m->g, GRAPH_OP_OR, hidden, far);
    }
    if (hidden == GRAPH_NO_VALUE)
        return hidden;
    graph_value_index bias =
        graph_where(m->g, hidden, graph_number(m->g, -FLT_MAX), graph_number(m->g, 0));
    return unsqueeze(m, bias, 2, axes);
}

static graph_value_index add_bias(const encoder_emitter *m, graph_value_index a,
                                  graph_value_index b)
{
    return a == GRAPH_NO_VALUE   ? b
           : b == GRAPH_NO_VALUE ? a
                                 : graph_binary(m->g, GRAPH_OP_ADD, a, b);
}

/* What is added to the scores of a layer with that window; made once for layers of the same. */
static graph_value_index score_bias(encoder_emitter *m, int64_t window)
{
    for (int i = 0; i < m->bias_count; i++)
        if (m->biases[i].window == window)
            return m->biases[i].value;
    graph_value_index bias = limit_bias(m, window);
    if (m->e->relative_table != NULL)
        bias = add_bias(m, bias, relative_bias(m));
    if (m->e->slopes != NULL)
        bias = add_bias(m, bias, slope_bias(m));
    if (m->mask != GRAPH_NO_VALUE)
        bias = add_bias(m, bias, make_mask_bias(m));
    if (m->bias_count < EMIT_BIASES_MAX)
        m->biases[m->bias_count++] = (emitted_bias){window, bias};
    return bias;
}

/* Cosines and sines of a rotation, [S,dims/2] each; made once for layers of the same. */
static emitted_rotary rotation(encoder_emitter *m, const encoder_rotary *r)
{
    for (int i = 0; i < m->rotary_count; i++)
        if (m->rotaries[i].rotary == r)
            return m->rotaries[i];
    const int64_t one = 1, dims[] = {1, r->dims / 2};
    graph_value_index at =
        unsqueeze(m, graph_cast(m->g, m->positions, DTYPE_F32), 1, &one); /* [S,1] */
    graph_value_index angles = graph_binary(
        m->g, GRAPH_OP_MUL, at, graph_add_constant_f32(m->g, NULL, 2, dims, r->frequencies));
    emitted_rotary made = {r, graph_unary(m->g, GRAPH_OP_COS, angles),
                           graph_unary(m->g, GRAPH_OP_SIN, angles)};
    if (m->rotary_count < EMIT_BIASES_MAX)
        m->rotaries[m->rotary_count++] = made;
    return made;
}

static graph_value_index slice_last(const encoder_emitter *m, graph_value_index x, int64_t from,
                                    int64_t to)
{
    const int64_t axis = -1;
    graph_value_index inputs[] = {x, graph_ints(m->g, 1, &from), graph_ints(m->g, 1, &to),
                                  graph_ints(m->g, 1, &axis)};
    return graph_add(m->g, GRAPH_OP_SLICE, 4, inputs, 0, NULL);
}

/* x is [B,heads,S,head_dim]. */
static graph_value_index rotate(encoder_emitter *m, const encoder_rotary *r, graph_value_index x)
{
    emitted_rotary turn = rotation(m, r);
    int64_t half = r->dims / 2, size = m->e->head_dim;
    graph_value_index a = slice_last(m, x, 0, half), b = slice_last(m, x, half, r->dims);
    graph_value_index parts[] = {
        graph_binary(m->g, GRAPH_OP_SUB, graph_binary(m->g, GRAPH_OP_MUL, a, turn.cosine),
                     graph_binary(m->g, GRAPH_OP_MUL, b, turn.sine)),
        graph_binary(m->g, GRAPH_OP_ADD, graph_binary(m->g, GRAPH_OP_MUL, b, turn.cosine),
                     graph_binary(m->g, GRAPH_OP_MUL, a, turn.sine)),
        r->dims < size ? slice_last(m, x, r->dims, size) : GRAPH_NO_VALUE};
    graph_attribute axis = graph_make_int("axis", -1);
    return graph_add(m->g, GRAPH_OP_CONCAT, r->dims < size ? 3 : 2, parts, 1, &axis);
}

/* [B,kv_heads,...] to [B,heads,...]: each head for the queries that share it. x is [B,kv,m,n]. */
static graph_value_index repeat_heads(const encoder_emitter *m, graph_value_index x, int64_t rows,
                                      int64_t columns)
{
    const encoder *e = m->e;
    int64_t group = e->heads / e->kv_heads, two = 2;
    if (group == 1)
        return x;
    const int64_t many[] = {0, e->heads, rows, columns};
    graph_value_index copies[64], wide = unsqueeze(m, x, 1, &two); /* [B,kv,1,m,n] */
    assert(group <= 64);
    for (int64_t i = 0; i < group; i++)
        copies[i] = wide;
    graph_attribute axis = graph_make_int("axis", 2);
    wide = graph_add(m->g, GRAPH_OP_CONCAT, (int)group, copies, 1, &axis);
    return graph_reshape(m->g, wide, 4, many);
}

/* [B,S,heads*size] to [B,heads,S,size]; normalised by head, and rotated. */
static graph_value_index split_heads(encoder_emitter *m, graph_value_index x, int64_t heads,
                                     const encoder_norm *norm, const encoder_rotary *r)
{
    const int64_t shape[] = {0, 0, heads, m->e->head_dim}, order[] = {0, 2, 1, 3};
    x = graph_reshape(m->g, x, 4, shape);
    if (norm != NULL)
        x = encoder_emit_norm(m, norm, x);
    x = graph_transpose(m->g, x, 4, order);
    return r != NULL ? rotate(m, r, x) : x;
}

/* encoder_distance_row() of each query and key, and the normalised table. */
static void make_distances(encoder_emitter *m)
{
    const encoder *e = m->e;
    int64_t reach = e->length_max, count = 2 * reach - 1;
    int64_t *rows = malloc((size_t)count * sizeof rows[0]);
    if (rows == NULL) {
        m->distance_rows = m->distance_states = graph_lack_memory(m->g);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        rows[i] = encoder_distance_row(e, (reach - 1) - i); /* distances() is key - query */
    graph_value_index at = graph_binary(m->g, GRAPH_OP_ADD, distances(m), integer(m, reach - 1));
    m->distance_rows = graph_gather(m->g, graph_ints(m->g, (int)count, rows), at, 0);
    free(rows);
    m->distance_states = encoder_emit_norm(m, &e->distance_norm, constant(m, e->distance_table));
}

/* x [B,heads,S,size] times what `l` makes of the table, [B,heads,S,2*span]; of these the numbers
 * that `rows` [S,S] names, [B,heads,S,S]. */
static graph_value_index compare_distances(encoder_emitter *m, const encoder_linear *l,
                                           graph_value_index x, graph_value_index rows,
                                           graph_value_index like)
{
    const encoder *e = m->e;
    const int64_t order[] = {1, 2, 0}, shape[] = {0, e->heads, e->head_dim};
    graph_value_index table = encoder_emit_linear(m, l, m->distance_states);
    table = graph_transpose(m->g, graph_reshape(m->g, table, 3, shape), 3, order);
    graph_value_index all = graph_binary(m->g, GRAPH_OP_MATMUL, x, table);
    rows = graph_binary(m->g, GRAPH_OP_EXPAND, rows, graph_unary(m->g, GRAPH_OP_SHAPE, like));
    graph_value_index inputs[] = {all, rows};
    graph_attribute axis = graph_make_int("axis", -1);
    return graph_add(m->g, GRAPH_OP_GATHER_ELEMENTS, 2, inputs, 1, &axis);
}

/* Disentangled attention: what is added to scores that are not scaled yet. */
static graph_value_index add_distances(encoder_emitter *m, const encoder_layer *l,
                                       graph_value_index q, graph_value_index k,
                                       graph_value_index scores)
{
    const int64_t swap[] = {0, 1, 3, 2}, turn[] = {1, 0};
    if (m->distance_rows == GRAPH_NO_VALUE)
        make_distances(m);
    graph_value_index like = scores;
    if (l->position_key.weight != NULL)
        scores = graph_binary(m->g, GRAPH_OP_ADD, scores,
                              compare_distances(m, &l->position_key, q, m->distance_rows, like));
    if (l->position_query.weight != NULL) {
        graph_value_index rows = graph_transpose(m->g, m->distance_rows, 2, turn);
        graph_value_index of_keys = compare_distances(m, &l->position_query, k, rows, like);
        scores = graph_binary(m->g, GRAPH_OP_ADD, scores, graph_transpose(m->g, of_keys, 4, swap));
    }
    return scores;
}

static graph_value_index attention(encoder_emitter *m, const encoder_layer *l, graph_value_index x)
{
    const encoder *e = m->e;
    const int64_t swap[] = {0, 1, 3, 2}, back[] = {0, 2, 1, 3};
    const int64_t joined[] = {0, 0, e->heads * e->head_dim};
    graph_value_index q =
        split_heads(m, encoder_emit_linear(m, &l->query, x), e->heads, &l->query_norm, l->rotary);
    graph_value_index k =
        split_heads(m, encoder_emit_linear(m, &l->key, x), e->kv_heads, &l->key_norm, l->rotary);
    graph_value_index v =
        split_heads(m, encoder_emit_linear(m, &l->value, x), e->kv_heads, NULL, NULL);
    graph_value_index keys = k;
    k = repeat_heads(m, graph_transpose(m->g, k, 4, swap), e->head_dim, -1);
    v = repeat_heads(m, v, -1, e->head_dim);
    graph_value_index scores = graph_binary(m->g, GRAPH_OP_MATMUL, q, k);
    if (e->distance_table != NULL)
        scores = add_distances(m, l, q, keys, scores);
    scores = graph_binary(m->g, GRAPH_OP_MUL, scores, graph_number(m->g, e->attention_scale));
    graph_value_index bias = score_bias(m, l->window);
    if (bias != GRAPH_NO_VALUE)
        scores = graph_binary(m->g, GRAPH_OP_ADD, scores, bias);
    graph_attribute axis = graph_make_int("axis", -1);
    graph_value_index weights = graph_add(m->g, GRAPH_OP_SOFTMAX, 1, &scores, 1, &axis);
    graph_value_index mixed = graph_binary(m->g, GRAPH_OP_MATMUL, weights, v);
    mixed = graph_reshape(m->g, graph_transpose(m->g, mixed, 4, back), 3, joined);
    return encoder_emit_linear(m, &l->attention_output, mixed);
}

/* --- activations --- */

static graph_value_index gelu(graph *g, graph_value_index x, const char *approximate)
{
    graph_attribute a = graph_make_string("approximate", approximate);
    return graph_add(g, GRAPH_OP_GELU, 1, &x, 1, &a);
}

/* x * sigmoid(inner) */
static graph_value_index gated(graph *g, graph_value_index x, graph_value_index inner)
{
    return graph_binary(g, GRAPH_OP_MUL, x, graph_unary(g, GRAPH_OP_SIGMOID, inner));
}

graph_value_index encoder_activate(graph *g, encoder_activation a, graph_value_index x)
{
    switch (a) {
    case ENCODER_GELU:
        return gelu(g, x, "none");
    case ENCODER_GELU_TANH:
        return gelu(g, x, "tanh");
    case ENCODER_RELU:
        return graph_unary(g, GRAPH_OP_RELU, x);
    case ENCODER_SILU:
        return gated(g, x, x);
    case ENCODER_QUICK_GELU:
        return gated(g, x, graph_binary(g, GRAPH_OP_MUL, x, graph_number(g, 1.702f)));
    case ENCODER_TANH:
        return graph_unary(g, GRAPH_OP_TANH, x);
    case ENCODER_SIGMOID:
        return graph_unary(g, GRAPH_OP_SIGMOID, x);
    case ENCODER_MISH:
        return graph_unary(g, GRAPH_OP_MISH, x);
    case ENCODER_IDENTITY:
        return x;
    }
    abort();
}

graph_value_index encoder_activate_head(graph *g, encoder_head_activation a, graph_value_index x)
{
    switch (a) {
    case ENCODER_HEAD_NONE:
        return x;
    case ENCODER_HEAD_TANH:
        return graph_unary(g, GRAPH_OP_TANH, x);
    case ENCODER_HEAD_RELU:
        return graph_unary(g, GRAPH_OP_RELU, x);
    case ENCODER_HEAD_GELU:
        return gelu(g, x, "none");
    case ENCODER_HEAD_GELU_TANH:
        return gelu(g, x, "tanh");
    case ENCODER_HEAD_SILU:
        return gated(g, x, x);
    case ENCODER_HEAD_SIGMOID:
        return graph_unary(g, GRAPH_OP_SIGMOID, x);
    }
    abort();
}

/* --- layers --- */

static graph_value_index feed_forward(const encoder_emitter *m, const encoder_layer *l,
                                      graph_value_index x)
{
    graph_value_index up = encoder_emit_linear(m, &l->up, x);
    if (l->gate.weight == NULL)
        return encoder_emit_linear(m, &l->down, encoder_activate(m->g, l->activation, up));
    graph_value_index gate =
        encoder_activate(m->g, l->activation, encoder_emit_linear(m, &l->gate, x));
    return encoder_emit_linear(m, &l->down, graph_binary(m->g, GRAPH_OP_MUL, gate, up));
}

static graph_value_index layer(encoder_emitter *m, const encoder_layer *l, graph_value_index x)
{
    if (m->e->is_pre_norm) {
        graph_value_index y = attention(m, l, encoder_emit_norm(m, &l->attention_norm, x));
        x = graph_binary(m->g, GRAPH_OP_ADD, y, x);
        y = feed_forward(m, l, encoder_emit_norm(m, &l->output_norm, x));
        return graph_binary(m->g, GRAPH_OP_ADD, y, x);
    }
    x = graph_binary(m->g, GRAPH_OP_ADD, attention(m, l, x), x);
    x = encoder_emit_norm(m, &l->attention_norm, x);
    x = graph_binary(m->g, GRAPH_OP_ADD, feed_forward(m, l, x), x);
    return encoder_emit_norm(m, &l->output_norm, x);
}

static graph_value_index input_of(const graph *g, int input)
{
    return input >= 0 ? g->inputs[input] : GRAPH_NO_VALUE;
}

status encoder_emit(const encoder *e, graph *g, const char *const *outputs)
{
    status s = graph_check_memory(g); /* of the inputs */
    if (s)
        return s;
    encoder_emitter m = {.g = g,
                         .e = e,
                         .ids = input_of(g, e->ids_input),
                         .mask = input_of(g, e->mask_input),
                         .types = input_of(g, e->token_type_input),
                         .distance_rows = GRAPH_NO_VALUE};
    assert(m.ids != GRAPH_NO_VALUE && e->kv_heads > 0 && e->heads % e->kv_heads == 0);
    m.positions = count_positions(&m);
    graph_value_index x = embeddings(&m);
    for (int i = 0; i < e->layer_count; i++)
        x = layer(&m, &e->layers[i], x);
    x = encoder_emit_norm(&m, &e->final_norm, x);
    for (int i = 0; i < e->output_count; i++)
        graph_add_output(g, encoder_emit_output(&m, &e->outputs[i], x), outputs[i]);
    encoder *kept = arena_allocate(&g->memory, sizeof *kept);
    if (kept == NULL) {
        graph_lack_memory(g);
    } else {
        *kept = *e;
        g->described = kept;
    }
    return graph_check_memory(g);
}

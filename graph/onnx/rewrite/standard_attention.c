#include <math.h>
#include <string.h>

#include "graph/onnx/rewrite/rewrite.h"

/* Attention of the standard domain (opsets 23 to 25), composed of operators of opset 21. Query
 * heads that share a key head are an axis of their own: [batch, key heads, queries per key head,
 * ...]. */

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, VALID_KEYS };
enum { MODE_SCORES, MODE_CAPPED, MODE_BIASED, MODE_PROBABILITIES };

typedef struct attention {
    onnx_node *n;
    int64_t query_heads, key_heads; /* 0: inputs of rank 4 */
    bool is_grouped;
    graph_value_index query, key, value; /* of rank 4 */
    int64_t mode;
} attention;

static graph_value_index add(onnx_node *n, graph_op op, int count, const graph_value_index *inputs,
                             const char *name, int64_t attribute)
{
    graph_attribute a = graph_make_int(name, attribute);
    return graph_add(n->graph, op, count, inputs, 1, &a);
}

/* A dim as a scalar, or as a vector of one. */
static graph_value_index scalar_dim(onnx_node *n, graph_value_index x, int64_t axis)
{
    return onnx_binary(n, GRAPH_OP_GATHER, onnx_unary(n, GRAPH_OP_SHAPE, x), onnx_int(n, axis));
}

static graph_value_index dim(onnx_node *n, graph_value_index x, int64_t axis)
{
    return onnx_binary(n, GRAPH_OP_GATHER, onnx_unary(n, GRAPH_OP_SHAPE, x),
                       onnx_ints(n, 1, &axis));
}

static graph_value_index reshape(onnx_node *n, graph_value_index x, int count,
                                 const graph_value_index *dims)
{
    return onnx_binary(n, GRAPH_OP_RESHAPE, x, add(n, GRAPH_OP_CONCAT, count, dims, "axis", 0));
}

static graph_value_index reshape_to(onnx_node *n, graph_value_index x, int count,
                                    const int64_t *dims)
{
    return onnx_binary(n, GRAPH_OP_RESHAPE, x, onnx_ints(n, count, dims));
}

static graph_value_index transpose(onnx_node *n, graph_value_index x, size_t rank,
                                   const int64_t *order)
{
    graph_attribute perm = graph_make_ints(n->graph, "perm", rank, order);
    return graph_add(n->graph, GRAPH_OP_TRANSPOSE, 1, &x, 1, &perm);
}

/* [batch, length, heads * size] to [batch, heads, length, size]. */
static graph_value_index split_heads(onnx_node *n, graph_value_index x, int64_t heads)
{
    if (heads == 0)
        return x;
    x = reshape_to(n, x, 4, (int64_t[]){0, 0, heads, -1});
    return transpose(n, x, 4, (int64_t[]){0, 2, 1, 3});
}

/* The past, where there is one, before the new keys or values; written to an output as well. */
static graph_value_index join_past(onnx_node *n, int past, int output, graph_value_index x)
{
    if (onnx_input(n, past) != GRAPH_NO_VALUE) {
        graph_value_index parts[] = {n->inputs[past], x};
        x = add(n, GRAPH_OP_CONCAT, 2, parts, "axis", 2);
    }
    if (onnx_has_output(n, output))
        graph_add_node_to(n->graph, GRAPH_OP_IDENTITY, n->name, 1, &x, 1, &n->outputs[output], 0,
                          NULL);
    return x;
}

/* [batch, heads, a, b] of the queries to [batch, key heads, heads per key head, a, b]. */
static graph_value_index group(const attention *a, graph_value_index x)
{
    onnx_node *n = a->n;
    if (!a->is_grouped)
        return x;
    graph_value_index dims[] = {dim(n, x, 0), dim(n, a->key, 1), onnx_ints(n, 1, &(int64_t){-1}),
                                dim(n, x, 2), dim(n, x, 3)};
    return reshape(n, x, 5, dims);
}

static graph_value_index ungroup(const attention *a, graph_value_index x)
{
    onnx_node *n = a->n;
    if (!a->is_grouped)
        return x;
    graph_value_index dims[] = {dim(n, a->query, 0), dim(n, a->query, 1), dim(n, a->query, 2),
                                dim(n, x, 4)};
    return reshape(n, x, 4, dims);
}

static graph_value_index share(const attention *a, graph_value_index x)
{
    return a->is_grouped
               ? onnx_binary(a->n, GRAPH_OP_UNSQUEEZE, x, onnx_ints(a->n, 1, &(int64_t){2}))
               : x;
}

/* Queries and keys are scaled by the root of the scale each. */
static graph_value_index multiply_queries(const attention *a, float scale)
{
    onnx_node *n = a->n;
    graph_value_index factor;
    if (scale > 0) {
        factor = onnx_float_like(n, sqrtf(scale), a->query);
    } else {
        factor = onnx_cast(n, dim(n, a->query, 3), dtype_to_onnx(DTYPE_F32));
        factor = onnx_unary(n, GRAPH_OP_SQRT, onnx_unary(n, GRAPH_OP_SQRT, factor));
        factor = onnx_unary(n, GRAPH_OP_RECIPROCAL, factor);
        factor = onnx_binary(n, GRAPH_OP_CAST_LIKE, factor, a->query);
    }
    graph_value_index keys = transpose(n, a->key, 4, (int64_t[]){0, 1, 3, 2});
    graph_value_index left = onnx_binary(n, GRAPH_OP_MUL, a->query, factor);
    graph_value_index right = onnx_binary(n, GRAPH_OP_MUL, keys, factor);
    return ungroup(a, onnx_binary(n, GRAPH_OP_MATMUL, group(a, left), share(a, right)));
}

static void write_mode(const attention *a, int64_t mode, graph_value_index x)
{
    if (a->mode == mode && onnx_has_output(a->n, 3))
        graph_add_node_to(a->n->graph, GRAPH_OP_IDENTITY, a->n->name, 1, &x, 1, &a->n->outputs[3],
                          0, NULL);
}

static graph_value_index infinity_like(onnx_node *n, graph_value_index like)
{
    return onnx_float_like(n, -INFINITY, like);
}

static graph_value_index where(onnx_node *n, graph_value_index condition, graph_value_index yes,
                               graph_value_index no)
{
    graph_value_index inputs[] = {condition, yes, no};
    return graph_add(n->graph, GRAPH_OP_WHERE, 3, inputs, 0, NULL);
}

/* A mask of truth values becomes 0 and -inf; keys beyond a short mask take no part. */
static status add_mask(const attention *a, graph_value_index *scores)
{
    onnx_node *n = a->n;
    graph_value_index mask = onnx_input(n, MASK), least = infinity_like(n, *scores);
    if (mask == GRAPH_NO_VALUE)
        return STATUS_OK;
    const graph_value *v = &n->graph->values[mask];
    if (!v->has_dtype)
        return onnx_fail(n, STATUS_UNSUPPORTED,
                         "the type of its mask is computed; supported: masks that are inputs or "
                         "constants");
    if (v->dtype == DTYPE_BOOL)
        mask = where(n, mask, onnx_float_like(n, 0, *scores), least);
    graph_value_index ends[] = {onnx_ints(n, 1, &(int64_t){0}),
                                onnx_binary(n, GRAPH_OP_SUB, dim(n, *scores, 3), dim(n, mask, -1))};
    graph_value_index pad[] = {mask, add(n, GRAPH_OP_CONCAT, 2, ends, "axis", 0), least,
                               onnx_ints(n, 1, &(int64_t){-1})};
    mask = graph_add(n->graph, GRAPH_OP_PAD, 4, pad, 0, NULL);
    *scores = onnx_binary(n, GRAPH_OP_ADD, *scores, mask);
    return STATUS_OK;
}

static graph_value_index range(onnx_node *n, graph_value_index length, int64_t axis)
{
    graph_value_index inputs[] = {onnx_int(n, 0), length, onnx_int(n, 1)};
    graph_value_index x = graph_add(n->graph, GRAPH_OP_RANGE, 3, inputs, 0, NULL);
    return onnx_binary(n, GRAPH_OP_UNSQUEEZE, x, onnx_ints(n, 1, &axis));
}

static void both(onnx_node *n, graph_value_index *all, graph_value_index more)
{
    *all = *all == GRAPH_NO_VALUE ? more : onnx_binary(n, GRAPH_OP_AND, *all, more);
}

/* Which keys a query may see, by position; GRAPH_NO_VALUE: all. */
static graph_value_index find_visible(const attention *a, bool is_causal, int64_t left,
                                      int64_t right)
{
    onnx_node *n = a->n;
    graph_value_index valid = onnx_input(n, VALID_KEYS), all = GRAPH_NO_VALUE;
    graph_value_index keys = range(n, scalar_dim(n, a->key, 2), 0);
    if (valid != GRAPH_NO_VALUE) {
        valid = onnx_cast(n, valid, dtype_to_onnx(DTYPE_I64));
        valid = reshape_to(n, valid, 4, (int64_t[]){-1, 1, 1, 1});
        all = onnx_binary(n, GRAPH_OP_LESS, keys, valid);
    }
    if (!is_causal && left < 0 && right < 0)
        return all;
    graph_value_index queries = range(n, scalar_dim(n, a->query, 2), 1), offset = GRAPH_NO_VALUE;
    if (onnx_input(n, PAST_KEY) != GRAPH_NO_VALUE)
        offset = scalar_dim(n, n->inputs[PAST_KEY], 2);
    else if (valid != GRAPH_NO_VALUE)
        offset = onnx_binary(n, GRAPH_OP_SUB, valid, scalar_dim(n, a->query, 2));
    if (offset != GRAPH_NO_VALUE)
        queries = onnx_binary(n, GRAPH_OP_ADD, queries, offset);
    graph_value_index back = onnx_binary(n, GRAPH_OP_SUB, queries, keys);
    if (is_causal)
        both(n, &all, onnx_binary(n, GRAPH_OP_GREATER_OR_EQUAL, back, onnx_int(n, 0)));
    if (left >= 0)
        both(n, &all, onnx_binary(n, GRAPH_OP_LESS_OR_EQUAL, back, onnx_int(n, left)));
    if (right >= 0)
        both(n, &all, onnx_binary(n, GRAPH_OP_GREATER_OR_EQUAL, back, onnx_int(n, -right)));
    return all;
}

/* Softmax over the keys; zeros for a query that sees none. */
static graph_value_index find_probabilities(onnx_node *n, graph_value_index scores, bool is_masked,
                                            int64_t precision)
{
    graph_value_index wide = precision != 0 ? onnx_cast(n, scores, (int)precision) : scores;
    graph_value_index p = add(n, GRAPH_OP_SOFTMAX, 1, &wide, "axis", -1);
    if (is_masked) {
        graph_value_index last[] = {wide, onnx_ints(n, 1, &(int64_t){-1})};
        graph_value_index most = graph_add(n->graph, GRAPH_OP_REDUCE_MAX, 2, last, 0, NULL);
        graph_value_index none = onnx_binary(n, GRAPH_OP_EQUAL, most, infinity_like(n, wide));
        p = where(n, none, onnx_float_like(n, 0, wide), p);
    }
    return precision != 0 ? onnx_binary(n, GRAPH_OP_CAST_LIKE, p, scores) : p;
}

static status open(onnx_node *n, attention *a)
{
    *a = (attention){.n = n,
                     .query_heads = onnx_pop_int(n, "q_num_heads", 0),
                     .key_heads = onnx_pop_int(n, "kv_num_heads", 0),
                     .mode = onnx_pop_int(n, "qk_matmul_output_mode", 0)};
    status s = onnx_check_inputs(n, 3, 7);
    if (s)
        return s;
    if (a->mode < MODE_SCORES || a->mode > MODE_PROBABILITIES)
        return onnx_fail(n, STATUS_UNSUPPORTED, "qk_matmul_output_mode %lld; supported: 0 to 3",
                         (long long)a->mode);
    int32_t rank = n->graph->values[n->inputs[Q]].shape.rank;
    if (rank == 4)
        a->query_heads = a->key_heads = 0;
    else if (a->query_heads < 1 || a->key_heads < 1 || a->query_heads % a->key_heads != 0)
        return onnx_fail(n, STATUS_UNSUPPORTED, "%lld heads of queries and %lld of keys",
                         (long long)a->query_heads, (long long)a->key_heads);
    a->is_grouped = a->query_heads != a->key_heads || a->query_heads == 0;
    a->query = split_heads(n, n->inputs[Q], a->query_heads);
    a->key = join_past(n, PAST_KEY, 1, split_heads(n, n->inputs[K], a->key_heads));
    a->value = join_past(n, PAST_VALUE, 2, split_heads(n, n->inputs[V], a->key_heads));
    return STATUS_OK;
}

status onnx_rewrite_standard_attention(onnx_node *n)
{
    attention a;
    status s = open(n, &a);
    if (s)
        return s;
    bool is_causal = onnx_pop_int(n, "is_causal", 0) != 0;
    int64_t left = onnx_pop_int(n, "left_window_size", -1);
    int64_t right = onnx_pop_int(n, "right_window_size", -1);
    int64_t precision = onnx_pop_int(n, "softmax_precision", 0);
    float cap = onnx_pop_float(n, "softcap", 0);
    graph_value_index scores = multiply_queries(&a, onnx_pop_float(n, "scale", 0));
    if ((s = onnx_check_no_attributes(n)))
        return s;
    write_mode(&a, MODE_SCORES, scores);
    if (cap > 0) {
        graph_value_index limit = onnx_float_like(n, cap, scores);
        scores = onnx_unary(n, GRAPH_OP_TANH, onnx_binary(n, GRAPH_OP_DIV, scores, limit));
        scores = onnx_binary(n, GRAPH_OP_MUL, scores, limit);
    }
    write_mode(&a, MODE_CAPPED, scores);
    if ((s = add_mask(&a, &scores)))
        return s;
    graph_value_index visible = find_visible(&a, is_causal, left, right);
    if (visible != GRAPH_NO_VALUE)
        scores = where(n, visible, scores, infinity_like(n, scores));
    write_mode(&a, MODE_BIASED, scores);
    bool is_masked = onnx_input(n, MASK) != GRAPH_NO_VALUE || visible != GRAPH_NO_VALUE;
    graph_value_index p = find_probabilities(n, scores, is_masked, precision);
    write_mode(&a, MODE_PROBABILITIES, p);
    graph_value_index y =
        ungroup(&a, onnx_binary(n, GRAPH_OP_MATMUL, group(&a, p), share(&a, a.value)));
    if (a.query_heads == 0) {
        onnx_finish_as(n, y);
        return STATUS_OK;
    }
    y = transpose(n, y, 4, (int64_t[]){0, 2, 1, 3});
    graph_value_index inputs[] = {y, onnx_ints(n, 3, (int64_t[]){0, 0, -1})};
    onnx_finish(n, GRAPH_OP_RESHAPE, 2, inputs, 0, NULL);
    return STATUS_OK;
}

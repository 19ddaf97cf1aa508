#include <string.h>

#include "graph/onnx/rewrite/rewrite.h"

/* Attention of ONNX Runtime's transformer optimiser (its ContribOperators.md), rewritten to the
 * matrix multiplications, additions and softmax that exporters write. */

/* The parts of one attention: projected tensors of [B,S,N*H], and masks to add to the scores. */
typedef struct attention {
    graph_value_index query, key, value;
    graph_value_index added; /* to the scores: broadcasts to [B,N,S,T], or GRAPH_NO_VALUE */
    int64_t heads;
    float scale; /* 0: 1 / sqrt(H) */
    bool is_causal;
} attention;

/* The rank of a value, from the file or from the nodes before it; -1: unknown. */
static int find_rank(const onnx_node *n, graph_value_index v)
{
    const graph *g = n->graph;
    for (int steps = 0; steps < 16 && v != GRAPH_NO_VALUE; steps++) {
        int32_t rank;
        if (g->values[v].constant != NULL)
            return g->values[v].constant->rank;
        if (g->values[v].shape.rank >= 0 && g->values[v].producer < 0)
            return g->values[v].shape.rank;
        if (g->values[v].name != NULL &&
            name_map_get(&n->importer->ranks, g->values[v].name, &rank))
            return rank;
        if (g->values[v].producer < 0)
            return -1;
        const graph_node *p = &g->nodes[g->values[v].producer];
        if (p->op == GRAPH_OP_REDUCE_SUM && graph_attribute_int(p, "keepdims", 1) == 0)
            return 1; /* the mask is a list of lengths */
        if (p->op != GRAPH_OP_CAST && p->op != GRAPH_OP_IDENTITY)
            return -1;
        v = p->inputs[0];
    }
    return -1;
}

static graph_value_index unsqueeze(onnx_node *n, graph_value_index x, int64_t count,
                                   const int64_t *axes)
{
    return onnx_binary(n, GRAPH_OP_UNSQUEEZE, x, onnx_ints(n, count, axes));
}

/* The indices along an axis of x: 0, 1, ... */
static graph_value_index count_along(onnx_node *n, graph_value_index x, int64_t axis)
{
    graph_value_index shape = onnx_unary(n, GRAPH_OP_SHAPE, x);
    graph_value_index range[] = {
        onnx_int(n, 0), onnx_binary(n, GRAPH_OP_GATHER, shape, onnx_int(n, axis)), onnx_int(n, 1)};
    return graph_add(n->graph, GRAPH_OP_RANGE, 3, range, 0, NULL);
}

/* (1 - valid) * fill, in the element type of `like`; `valid` holds 0 and 1. */
static graph_value_index penalise(onnx_node *n, graph_value_index valid, float fill,
                                  graph_value_index like)
{
    graph_value_index x = onnx_binary(n, GRAPH_OP_CAST_LIKE, valid, like);
    x = onnx_binary(n, GRAPH_OP_SUB, onnx_float_like(n, 1, like), x);
    return onnx_binary(n, GRAPH_OP_MUL, x, onnx_float_like(n, fill, like));
}

/* What a mask of keys adds to the scores. The mask is 0 and 1 as [B,T], [B,S,T] or [B,1,S,T], or
 * the number of keys that count, [B]. */
static status add_mask(onnx_node *n, attention *a, graph_value_index mask, float fill)
{
    static const int64_t lengths[] = {1}, keys[] = {1, 2}, pairs[] = {1};
    int rank = find_rank(n, mask);
    graph_value_index valid = mask;
    switch (rank) {
    case 1:
        valid = onnx_cast(n, mask, dtype_to_onnx(DTYPE_I64));
        valid = unsqueeze(n, valid, 1, lengths);
        valid = onnx_binary(n, GRAPH_OP_LESS, count_along(n, a->key, 1), valid);
        valid = unsqueeze(n, valid, 2, keys);
        break;
    case 2:
        valid = unsqueeze(n, mask, 2, keys);
        break;
    case 3:
        valid = unsqueeze(n, mask, 1, pairs);
        break;
    case 4:
        break;
    default:
        return onnx_fail(n, STATUS_UNSUPPORTED, "a mask of unknown rank");
    }
    graph_value_index penalty = penalise(n, valid, fill, a->query);
    a->added =
        a->added == GRAPH_NO_VALUE ? penalty : onnx_binary(n, GRAPH_OP_ADD, a->added, penalty);
    return STATUS_OK;
}

static graph_value_index transpose(onnx_node *n, graph_value_index x, const int64_t order[4])
{
    graph_attribute perm = graph_make_ints(n->graph, "perm", 4, order);
    return graph_add(n->graph, GRAPH_OP_TRANSPOSE, 1, &x, 1, &perm);
}

/* [B,S,N*H] to [B,S,N,H]. */
static graph_value_index split_heads(onnx_node *n, graph_value_index x, int64_t heads)
{
    const int64_t dims[] = {0, 0, heads, -1};
    return onnx_binary(n, GRAPH_OP_RESHAPE, x, onnx_ints(n, 4, dims));
}

static graph_value_index divide_by_root(onnx_node *n, graph_value_index scores,
                                        graph_value_index query)
{
    graph_value_index shape = onnx_unary(n, GRAPH_OP_SHAPE, query);
    graph_value_index width = onnx_binary(n, GRAPH_OP_GATHER, shape, onnx_int(n, 3));
    width = onnx_cast(n, width, dtype_to_onnx(DTYPE_F32));
    graph_value_index root =
        onnx_binary(n, GRAPH_OP_CAST_LIKE, onnx_unary(n, GRAPH_OP_SQRT, width), scores);
    return onnx_binary(n, GRAPH_OP_DIV, scores, root);
}

/* softmax(Q K' scale + added) V with concatenated heads, to output 0. */
static void finish_attention(onnx_node *n, attention *a)
{
    static const int64_t by_head[] = {0, 2, 1, 3}, turned[] = {0, 2, 3, 1};
    static const int64_t joined[] = {0, 0, -1};
    graph_value_index query = transpose(n, split_heads(n, a->query, a->heads), by_head);
    graph_value_index key = transpose(n, split_heads(n, a->key, a->heads), turned);
    graph_value_index value = transpose(n, split_heads(n, a->value, a->heads), by_head);
    graph_value_index scores = onnx_binary(n, GRAPH_OP_MATMUL, query, key);
    if (a->scale != 0)
        scores = onnx_binary(n, GRAPH_OP_MUL, scores, onnx_float_like(n, a->scale, scores));
    else
        scores = divide_by_root(n, scores, query);
    if (a->is_causal) {
        const int64_t column[] = {1};
        graph_value_index rows = unsqueeze(n, count_along(n, a->query, 1), 1, column);
        graph_value_index valid =
            onnx_binary(n, GRAPH_OP_LESS_OR_EQUAL, count_along(n, a->key, 1), rows);
        scores = onnx_binary(n, GRAPH_OP_ADD, scores, penalise(n, valid, -30000, scores));
    }
    if (a->added != GRAPH_NO_VALUE)
        scores = onnx_binary(n, GRAPH_OP_ADD, scores, a->added);
    graph_attribute axis = graph_make_int("axis", -1);
    graph_value_index weights = graph_add(n->graph, GRAPH_OP_SOFTMAX, 1, &scores, 1, &axis);
    graph_value_index mixed =
        transpose(n, onnx_binary(n, GRAPH_OP_MATMUL, weights, value), by_head);
    graph_value_index inputs[] = {mixed, onnx_ints(n, 3, joined)};
    onnx_finish(n, GRAPH_OP_RESHAPE, 2, inputs, 0, NULL);
}

static status reject_inputs(const onnx_node *n, int first, int end, const char *what)
{
    for (int i = first; i < end; i++)
        if (onnx_input(n, i) != GRAPH_NO_VALUE)
            return onnx_fail(n, STATUS_UNSUPPORTED, "input %d (%s) is not supported", i, what);
    return STATUS_OK;
}

static status read_attributes(onnx_node *n, attention *a, float *fill)
{
    a->added = GRAPH_NO_VALUE;
    a->heads = onnx_pop_int(n, "num_heads", 0);
    a->scale = onnx_pop_float(n, "scale", 0);
    a->is_causal = onnx_pop_int(n, "unidirectional", 0) != 0;
    *fill = onnx_pop_float(n, "mask_filter_value", -10000);
    onnx_pop_attribute(n, "past_present_share_buffer");
    if (onnx_pop_int(n, "do_rotary", 0) != 0)
        return onnx_fail(n, STATUS_UNSUPPORTED, "do_rotary = 1; supported: 0");
    onnx_pop_attribute(n, "rotary_embedding_dim");
    if (n->attribute_count > 0)
        return onnx_fail(n, STATUS_UNSUPPORTED, "attribute '%s' is not supported here",
                         n->attributes[0].name);
    if (a->heads < 1)
        return onnx_fail(n, STATUS_CORRUPT, "num_heads is missing");
    for (int i = 1; i < n->output_count; i++)
        if (onnx_has_output(n, i))
            return onnx_fail(n, STATUS_UNSUPPORTED,
                             "output %d (kept keys and values) is not supported", i);
    return onnx_has_output(n, 0) ? STATUS_OK
                                 : onnx_fail(n, STATUS_UNSUPPORTED, "output 0 is not used");
}

/* Columns [first, first + count) of a constant [rows, columns], as a constant. */
static graph_value_index take_columns(onnx_node *n, const tensor *t, int64_t first, int64_t count)
{
    int64_t columns = t->dims[t->rank - 1], rows = t->rank == 2 ? t->dims[0] : 1;
    int64_t dims[2] = {rows, count};
    tensor part = {0};
    size_t size = dtype_bytes(t->dtype);
    if (tensor_allocate(&part, &n->graph->memory, t->dtype, t->rank,
                        t->rank == 2 ? dims : dims + 1))
        return graph_lack_memory(n->graph);
    for (int64_t r = 0; r < rows; r++)
        memcpy((char *)part.data + (size_t)(r * count) * size,
               (const char *)t->data + (size_t)(r * columns + first) * size, (size_t)count * size);
    return graph_add_constant(n->graph, n->name, &part);
}

/* The three projections of x [B,S,D] by weights [D,3*N*H] and bias [3*N*H]: three matrix
 * multiplications, as exporters write them. */
static status project(onnx_node *n, attention *a)
{
    const tensor *weight = n->graph->values[n->inputs[1]].constant;
    graph_value_index bias = onnx_input(n, 2);
    const tensor *b = bias == GRAPH_NO_VALUE ? NULL : n->graph->values[bias].constant;
    if (weight == NULL || weight->data == NULL || weight->rank != 2 ||
        dtype_bytes(weight->dtype) < 2)
        return onnx_fail(n, STATUS_UNSUPPORTED, "weights that are not a constant matrix");
    if (bias != GRAPH_NO_VALUE && (b == NULL || b->data == NULL || b->rank != 1 ||
                                   b->dims[0] != weight->dims[1] || b->dtype != weight->dtype))
        return onnx_fail(n, STATUS_UNSUPPORTED, "a bias that is not a constant of %lld elements",
                         (long long)weight->dims[1]);
    int64_t sizes[3] = {weight->dims[1] / 3, weight->dims[1] / 3, weight->dims[1] / 3};
    const graph_attribute *given = onnx_pop_attribute(n, "qkv_hidden_sizes");
    if (given != NULL && given->kind == GRAPH_ATTRIBUTE_INTS && given->count == 3)
        memcpy(sizes, given->ints, sizeof sizes);
    tensor w = *weight, bias_copy = b != NULL ? *b : (tensor){0};
    graph_value_index *made[] = {&a->query, &a->key, &a->value};
    int64_t first = 0;
    for (int i = 0; i < 3; i++) {
        if (sizes[i] < 1 || sizes[i] > w.dims[1] - first)
            return onnx_fail(n, STATUS_CORRUPT, "its weights have %lld columns",
                             (long long)w.dims[1]);
        *made[i] =
            onnx_binary(n, GRAPH_OP_MATMUL, n->inputs[0], take_columns(n, &w, first, sizes[i]));
        if (b != NULL)
            *made[i] = onnx_binary(n, GRAPH_OP_ADD, *made[i],
                                   take_columns(n, &bias_copy, first, sizes[i]));
        first += sizes[i];
    }
    return first == w.dims[1] ? STATUS_OK
                              : onnx_fail(n, STATUS_CORRUPT, "its weights have %lld columns",
                                          (long long)w.dims[1]);
}

/* Inputs ("?": optional): x, weights, bias?, mask?, past?, attention bias?, past length?. */
status onnx_rewrite_attention(onnx_node *n)
{
    attention a = {0};
    float fill;
    if (n->input_count < 2 || n->input_count > 7 || n->inputs[1] == GRAPH_NO_VALUE)
        return onnx_fail(n, STATUS_CORRUPT, "an input is missing");
    status s = project(n, &a);
    if (s == STATUS_OK)
        s = read_attributes(n, &a, &fill);
    if (s == STATUS_OK)
        s = reject_inputs(n, 4, 5, "past keys and values");
    if (s == STATUS_OK)
        s = reject_inputs(n, 6, 7, "their length");
    if (s)
        return s;
    a.added = onnx_input(n, 5);
    if (onnx_input(n, 3) != GRAPH_NO_VALUE && (s = add_mask(n, &a, n->inputs[3], fill)))
        return s;
    finish_attention(n, &a);
    return STATUS_OK;
}

/* Inputs: query, key, value [B,S,N*H], bias?, mask of keys?, attention bias?, past ... */
status onnx_rewrite_multi_head_attention(onnx_node *n)
{
    attention a = {0};
    float fill;
    if (n->input_count < 3 || n->inputs[1] == GRAPH_NO_VALUE || n->inputs[2] == GRAPH_NO_VALUE)
        return onnx_fail(n, STATUS_UNSUPPORTED,
                         "query, key and value packed into one input; supported: three inputs");
    status s = read_attributes(n, &a, &fill);
    if (s == STATUS_OK)
        s = reject_inputs(n, 6, n->input_count, "past keys and values");
    for (int i = 0; i < 3 && s == STATUS_OK; i++) {
        int rank = find_rank(n, n->inputs[i]);
        if (rank >= 0 && rank != 3)
            s = onnx_fail(n, STATUS_UNSUPPORTED, "input %d of rank %d; supported: 3", i, rank);
    }
    if (s)
        return s;
    graph_value_index *parts[] = {&a.query, &a.key, &a.value}, bias = onnx_input(n, 3);
    const tensor *b = bias == GRAPH_NO_VALUE ? NULL : n->graph->values[bias].constant;
    if (bias != GRAPH_NO_VALUE && (b == NULL || b->data == NULL || b->rank != 1 || b->dims[0] % 3))
        return onnx_fail(n, STATUS_UNSUPPORTED, "a bias that is not a constant vector of 3 parts");
    tensor whole = b != NULL ? *b : (tensor){0};
    for (int i = 0; i < 3; i++) {
        *parts[i] = n->inputs[i];
        if (b != NULL)
            *parts[i] =
                onnx_binary(n, GRAPH_OP_ADD, *parts[i],
                            take_columns(n, &whole, i * (whole.dims[0] / 3), whole.dims[0] / 3));
    }
    a.added = onnx_input(n, 5);
    if (onnx_input(n, 4) != GRAPH_NO_VALUE && (s = add_mask(n, &a, n->inputs[4], fill)))
        return s;
    finish_attention(n, &a);
    return STATUS_OK;
}

#include "graph/quantise/lines.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "graph/build.h"
#include "graph/quantise/internal.h"

typedef struct lifting {
    const graph *g;
    graph *made;
    graph_value_index *line, *image; /* by value of g: as it is, and with a dim of 1 before the
                                        last; GRAPH_NO_VALUE: not written yet */
    graph_value_index *operands;
} lifting;

static const tensor *constant_of(const lifting *w, graph_value_index v)
{
    return v == GRAPH_NO_VALUE ? NULL : w->g->values[v].constant;
}

static int rank_of(const lifting *w, graph_value_index v)
{
    const tensor *t = constant_of(w, v);
    return t ? t->rank : w->g->values[v].shape.rank;
}

static bool is_floats(const lifting *w, graph_value_index v)
{
    const tensor *t = constant_of(w, v);
    return (t ? t->dtype : w->g->values[v].dtype) == DTYPE_F32;
}

static bool is_line(const lifting *w, graph_value_index v)
{
    return v != GRAPH_NO_VALUE && !constant_of(w, v) && rank_of(w, v) == 3;
}

static bool is_only_image(const lifting *w, graph_value_index v)
{
    return v != GRAPH_NO_VALUE && w->image[v] != GRAPH_NO_VALUE && w->line[v] == GRAPH_NO_VALUE;
}

static const graph_node *producer_of(const lifting *w, graph_value_index v)
{
    int32_t at = w->g->values[v].producer;
    return constant_of(w, v) || at < 0 ? NULL : &w->g->nodes[at];
}

/* Whose inputs behind the second are no lines. */
static bool is_convolving(graph_op op)
{
    return op == GRAPH_OP_CONV || op == GRAPH_OP_CONV_TRANSPOSE || op == GRAPH_OP_CONV_INTEGER ||
           op == GRAPH_OP_QLINEAR_CONV;
}

static int weights_input(graph_op op)
{
    return op == GRAPH_OP_QLINEAR_CONV ? 3 : 1;
}

/* A QuantizeLinear or DequantizeLinear of three dims. */
static bool is_scaling(const lifting *w, const graph_node *n)
{
    return (n->op == GRAPH_OP_QUANTIZE_LINEAR || n->op == GRAPH_OP_DEQUANTIZE_LINEAR) &&
           rank_of(w, n->inputs[0]) == 3 && graph_attribute_int(n, "block_size", 0) == 0;
}

/* Constants, or dequantised ones. */
static bool are_weights(const lifting *w, graph_value_index v, bool is_float)
{
    const graph_node *from = producer_of(w, v);
    const tensor *t = constant_of(w, v);
    if (is_float && from && from->op == GRAPH_OP_DEQUANTIZE_LINEAR && is_floats(w, v))
        return is_scaling(w, from) && constant_of(w, from->inputs[0]);
    return t && t->rank == 3 && (!is_float || t->dtype == DTYPE_F32);
}

/* A convolution by constant weights, of floats or of a quantised tensor. */
static bool is_convolution(const lifting *w, const graph_node *n)
{
    if (!is_convolving(n->op) || n->output_count != 1 || !is_line(w, n->inputs[0]) ||
        graph_find_attribute(n, "output_shape"))
        return false;
    bool is_float = n->op == GRAPH_OP_CONV || n->op == GRAPH_OP_CONV_TRANSPOSE;
    return are_weights(w, n->inputs[weights_input(n->op)], is_float) &&
           (!is_float || is_floats(w, n->inputs[0]));
}

static bool is_pooling(const lifting *w, const graph_node *n)
{
    if (n->op != GRAPH_OP_MAX_POOL && n->op != GRAPH_OP_AVERAGE_POOL &&
        n->op != GRAPH_OP_GLOBAL_AVERAGE_POOL)
        return false;
    return is_line(w, n->inputs[0]) && is_floats(w, n->inputs[0]) &&
           n->outputs[0] != GRAPH_NO_VALUE &&
           (n->output_count == 1 || n->outputs[1] == GRAPH_NO_VALUE);
}

/* Whether all operands can have a dim more. */
static bool can_broadcast(const lifting *w, const graph_node *n)
{
    bool has_image = false;
    for (int i = 0; i < n->input_count; i++) {
        graph_value_index v = n->inputs[i];
        if (v == GRAPH_NO_VALUE)
            continue;
        has_image |= is_only_image(w, v);
        if (!is_line(w, v) && rank_of(w, v) > 1 && !(constant_of(w, v) && rank_of(w, v) <= 3))
            return false;
    }
    return has_image && n->output_count == 1 && is_line(w, n->outputs[0]);
}

static bool is_pad(const lifting *w, const graph_node *n)
{
    const tensor *pads = n->op == GRAPH_OP_PAD ? constant_of(w, graph_input_of(n, 1)) : NULL;
    return pads && graph_input_of(n, 3) == GRAPH_NO_VALUE && tensor_count(pads) == 6 &&
           is_only_image(w, n->inputs[0]) && is_line(w, n->outputs[0]);
}

static bool is_concat(const lifting *w, const graph_node *n)
{
    bool has_image = false;
    for (int i = 0; n->op == GRAPH_OP_CONCAT && i < n->input_count; i++) {
        has_image |= is_only_image(w, n->inputs[i]);
        if (!is_line(w, n->inputs[i]))
            return false;
    }
    return has_image;
}

/* Exchanges channels and places. */
static bool is_exchange(const lifting *w, const graph_node *n)
{
    const graph_attribute *perm =
        n->op == GRAPH_OP_TRANSPOSE ? graph_find_attribute(n, "perm") : NULL;
    return perm && perm->count == 3 && is_line(w, n->inputs[0]) && is_floats(w, n->inputs[0]) &&
           perm->ints[0] == 0 && perm->ints[1] == 2 && perm->ints[2] == 1;
}

/* As the input, or as weights. */
static bool feeds_convolution(const lifting *w, graph_value_index v)
{
    for (int32_t i = 0; i < w->g->node_count; i++) {
        const graph_node *n = &w->g->nodes[i];
        if (n->input_count > 0 && is_convolution(w, n) &&
            (n->inputs[0] == v || n->inputs[weights_input(n->op)] == v))
            return true;
    }
    return false;
}

/* Scales beside a convolution are found where they lie beside it as an image. */
static bool is_scaling_of_image(const lifting *w, const graph_node *n)
{
    return is_scaling(w, n) &&
           (is_only_image(w, n->inputs[0]) || feeds_convolution(w, n->outputs[0]));
}

/* Dims of [N,C,L] as an image: `order` says which of them follow N; -1 is the new one. */
static void describe(lifting *w, graph_value_index at, graph_value_index v, bool is_image)
{
    const graph_value *from = &w->g->values[v];
    graph_value *to = &w->made->values[at];
    to->dtype = from->dtype;
    to->has_dtype = true;
    to->shape = from->shape;
    if (!is_image)
        return;
    to->shape.rank = 4;
    to->shape.dims[2] = graph_dim_constant(1);
    to->shape.dims[3] = from->shape.dims[2];
}

static graph_value_index reshape_to(lifting *w, graph_value_index from, dtype type, int rank,
                                    const int64_t *dims)
{
    graph_value_index out = graph_reshape(w->made, from, rank, dims);
    graph_value *to = &w->made->values[out];
    to->dtype = type;
    to->has_dtype = true;
    to->shape.rank = rank;
    for (int i = 0; i < rank; i++)
        to->shape.dims[i] = graph_dim_constant(dims[i]);
    return out;
}

static graph_value_index get_line(lifting *w, graph_value_index v)
{
    if (v == GRAPH_NO_VALUE || w->line[v] != GRAPH_NO_VALUE)
        return v == GRAPH_NO_VALUE ? v : w->line[v];
    const graph_value *is = &w->g->values[v];
    if (is->constant) {
        w->line[v] = graph_add_constant(w->made, is->name, is->constant);
        return w->line[v];
    }
    int64_t dims[TENSOR_RANK_MAX] = {0};
    for (int i = 0; i < is->shape.rank; i++)
        dims[i] = is->shape.dims[i].constant;
    w->line[v] = reshape_to(w, w->image[v], is->dtype, is->shape.rank, dims);
    return w->line[v];
}

static graph_value_index get_image(lifting *w, graph_value_index v)
{
    if (v == GRAPH_NO_VALUE || w->image[v] != GRAPH_NO_VALUE)
        return v == GRAPH_NO_VALUE ? v : w->image[v];
    const tensor *t = w->g->values[v].constant;
    if (rank_of(w, v) < 2) /* broadcasts as it is */
        return get_line(w, v);
    if (t) {
        tensor wide = *t;
        wide.dims[wide.rank++] = t->dims[t->rank - 1];
        wide.dims[t->rank - 1] = 1;
        w->image[v] = graph_add_constant(w->made, NULL, &wide);
        return w->image[v];
    }
    const graph_dim *d = w->g->values[v].shape.dims;
    w->image[v] = reshape_to(w, w->line[v], w->g->values[v].dtype, 4,
                             (int64_t[]){d[0].constant, d[1].constant, 1, d[2].constant});
    return w->image[v];
}

/* A list of one number for each dim: `first` stands for the new one. */
static graph_attribute widen_list(lifting *w, const graph_attribute *a, int64_t first)
{
    int64_t ints[4] = {first, a->ints[0], first, a->count > 1 ? a->ints[1] : 0};
    return graph_make_ints(w->made, a->name, 2 * a->count, ints);
}

static int write_attributes(lifting *w, const graph_node *n, graph_attribute *to)
{
    static const char *const lists[] = {"kernel_shape", "strides", "dilations", "output_padding",
                                        "pads"};
    static const int64_t otherwise[] = {1, 1, 1, 0, 0};
    int count = 0;
    for (int i = 0; i < n->attribute_count; i++, count++) {
        const graph_attribute *a = &n->attributes[i];
        to[count] = *a;
        for (size_t j = 0; j < sizeof lists / sizeof lists[0]; j++)
            if (strcmp(a->name, lists[j]) == 0 && (a->count == 1 || a->count == 2))
                to[count] = widen_list(w, a, otherwise[j]);
        if ((n->op == GRAPH_OP_CONCAT || is_scaling(w, n)) && strcmp(a->name, "axis") == 0) {
            int64_t axis = a->i < 0 ? a->i + 3 : a->i;
            to[count].i = axis == 2 ? 3 : axis;
        }
    }
    return count;
}

/* The pads of [N,C,L] with none for the new dim. */
static graph_value_index write_pads(lifting *w, const tensor *t)
{
    int64_t pads[8] = {0};
    for (int i = 0; i < 6; i++)
        pads[i / 3 * 4 + (i % 3 == 2 ? 3 : i % 3)] = tensor_get_integer(t, i);
    return graph_add_constant_i64(w->made, NULL, 1, (int64_t[]){8}, pads);
}

static void write_image(lifting *w, const graph_node *n)
{
    graph_attribute attributes[24];
    assert(n->attribute_count <= 24);
    int count = write_attributes(w, n, attributes);
    bool is_conv = is_convolving(n->op), has_parameters = n->op == GRAPH_OP_PAD || is_scaling(w, n);
    for (int i = 0; i < n->input_count; i++) {
        bool is_parameter = i > 0 && (has_parameters || (is_conv && i != weights_input(n->op)));
        w->operands[i] = is_parameter ? get_line(w, n->inputs[i]) : get_image(w, n->inputs[i]);
    }
    if (n->op == GRAPH_OP_PAD)
        w->operands[1] = write_pads(w, constant_of(w, n->inputs[1]));
    graph_value_index out = graph_add_value(w->made, NULL);
    describe(w, out, n->outputs[0], true);
    w->image[n->outputs[0]] = out;
    graph_add_node_to(w->made, n->op, n->name, n->input_count, w->operands, 1, &out, count,
                      attributes);
}

static graph_value_index write_transpose(lifting *w, const graph_node *n, graph_value_index in,
                                         const int64_t order[4])
{
    graph_attribute perm = graph_make_ints(w->made, "perm", 4, order);
    graph_value_index out = graph_add_value(w->made, NULL);
    graph_shape from = w->made->values[in].shape;
    graph_value *to = &w->made->values[out];
    to->dtype = DTYPE_F32;
    to->has_dtype = true;
    to->shape.rank = 4;
    for (int i = 0; i < 4; i++)
        to->shape.dims[i] = from.dims[order[i]];
    graph_add_node_to(w->made, GRAPH_OP_TRANSPOSE, n->name, 1, &in, 1, &out, 1, &perm);
    return out;
}

/* [N,C,1,L] to [N,1,L,C], where the channels may lie last already; without the dim of 1 that is the
 * result. */
static void write_exchange_out(lifting *w, const graph_node *n)
{
    graph_value_index v = n->outputs[0];
    const graph_dim *d = w->g->values[v].shape.dims;
    graph_value_index last =
        write_transpose(w, n, get_image(w, n->inputs[0]), (const int64_t[]){0, 2, 3, 1});
    w->line[v] =
        reshape_to(w, last, DTYPE_F32, 3, (int64_t[]){d[0].constant, d[1].constant, d[2].constant});
}

/* The other way round. */
static void write_exchange_in(lifting *w, const graph_node *n)
{
    const graph_dim *d = w->g->values[n->inputs[0]].shape.dims;
    graph_value_index last =
        reshape_to(w, get_line(w, n->inputs[0]), DTYPE_F32, 4,
                   (int64_t[]){d[0].constant, 1, d[1].constant, d[2].constant});
    w->image[n->outputs[0]] = write_transpose(w, n, last, (const int64_t[]){0, 3, 1, 2});
}

static void write_plain(lifting *w, const graph_node *n)
{
    graph_value_index *out = w->operands + n->input_count;
    for (int i = 0; i < n->input_count; i++)
        w->operands[i] = get_line(w, n->inputs[i]);
    for (int i = 0; i < n->output_count; i++) {
        graph_value_index v = n->outputs[i];
        out[i] = v == GRAPH_NO_VALUE ? v : graph_add_value(w->made, w->g->values[v].name);
        if (v == GRAPH_NO_VALUE)
            continue;
        describe(w, out[i], v, false);
        w->line[v] = out[i];
    }
    graph_add_node_to(w->made, n->op, n->name, n->input_count, w->operands, n->output_count, out,
                      n->attribute_count, n->attributes);
}

static void write_node(lifting *w, const graph_node *n)
{
    if (is_convolution(w, n) || is_pooling(w, n) || is_pad(w, n) || is_concat(w, n) ||
        is_scaling_of_image(w, n) ||
        ((fusion_is_elementwise(n->op) || n->op == GRAPH_OP_CAST) && can_broadcast(w, n)))
        write_image(w, n);
    else if (is_exchange(w, n) && is_only_image(w, n->inputs[0]))
        write_exchange_out(w, n);
    else if (is_exchange(w, n) && feeds_convolution(w, n->outputs[0]))
        write_exchange_in(w, n);
    else
        write_plain(w, n);
}

static bool has_work(const lifting *w)
{
    for (int32_t n = 0; n < w->g->node_count; n++)
        if (is_convolution(w, &w->g->nodes[n]) || is_pooling(w, &w->g->nodes[n]))
            return true;
    return false;
}

static status open_lifting(lifting *w)
{
    size_t values = (size_t)w->g->value_count + 1, most = 1;
    for (int32_t n = 0; n < w->g->node_count; n++) {
        size_t count = (size_t)(w->g->nodes[n].input_count + w->g->nodes[n].output_count);
        most = count > most ? count : most;
    }
    w->made = graph_create(w->g->name);
    w->line = malloc(values * sizeof w->line[0]);
    w->image = malloc(values * sizeof w->image[0]);
    w->operands = malloc(most * sizeof w->operands[0]);
    if (!w->made || !w->line || !w->image || !w->operands)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to fuse \"%s\"", w->g->name);
    for (size_t v = 0; v < values; v++)
        w->line[v] = w->image[v] = GRAPH_NO_VALUE;
    w->made->source = w->g->source;
    w->made->sequence_max = w->g->sequence_max;
    return STATUS_OK;
}

static void write_all(lifting *w)
{
    const graph *g = w->g;
    for (int i = 0; i < g->input_count; i++)
        w->line[g->inputs[i]] = graph_add_input_like(w->made, &g->values[g->inputs[i]]);
    for (int32_t n = 0; n < g->node_count; n++)
        write_node(w, &g->nodes[n]);
    for (int i = 0; i < g->output_count; i++)
        graph_add_output(w->made, get_line(w, g->outputs[i]), g->values[g->outputs[i]].name);
}

status graph_lift_lines(const graph *g, graph **out)
{
    lifting w = {.g = g};
    *out = NULL;
    if (!has_work(&w))
        return STATUS_OK;
    status s = open_lifting(&w);
    if (!s) {
        write_all(&w);
        s = graph_check_memory(w.made);
    }
    if (!s) {
        *out = w.made;
        w.made = NULL;
    }
    graph_destroy(w.made);
    free(w.line);
    free(w.image);
    free(w.operands);
    return s;
}

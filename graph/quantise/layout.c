#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "graph/quantise/internal.h"

/* Writes the graph: each value in the layout in which it is computed, and in the other one when
 * somebody asks. Nodes follow the source's order, so whatever is asked for exists already, but for
 * DequantizeLinear, which is written when it is asked for. */

#define OPERANDS_MAX 9

static graph_value_index want(quantised_work *w, graph_value_index v, quantised_layout layout);

static bool exists(const quantised_work *w, graph_value_index v, quantised_layout layout)
{
    return w->forms[v][layout] != GRAPH_NO_VALUE;
}

/* Computed with the channels last, and so far only there. */
static bool is_only_last(const quantised_work *w, graph_value_index v)
{
    if (v == GRAPH_NO_VALUE || w->g->values[v].constant)
        return false;
    const graph_node *n = quantised_producer(w, v);
    if (n && n->op == GRAPH_OP_DEQUANTIZE_LINEAR && !exists(w, v, LAYOUT_FIRST) &&
        !exists(w, v, LAYOUT_LAST))
        return is_only_last(w, n->inputs[0]);
    return exists(w, v, LAYOUT_LAST) && !exists(w, v, LAYOUT_FIRST);
}

/* Type and dims of `v` in that layout for value `at` of the made graph. */
static void describe(quantised_work *w, graph_value_index at, graph_value_index v,
                     quantised_layout layout)
{
    const graph_value *from = &w->g->values[v];
    graph_value *to = &w->made->values[at];
    to->dtype = w->is_shifted[v] ? DTYPE_U8 : from->dtype;
    to->has_dtype = true;
    to->shape = from->shape;
    if (layout == LAYOUT_LAST) {
        assert(from->shape.rank == 4);
        to->shape.dims[1] = from->shape.dims[2];
        to->shape.dims[2] = from->shape.dims[3];
        to->shape.dims[3] = from->shape.dims[1];
    }
}

/* A node that computes `v` in that layout. Inputs are values of the made graph. */
static graph_value_index write_node(quantised_work *w, graph_op op, const char *name,
                                    int input_count, const graph_value_index *inputs,
                                    graph_value_index v, quantised_layout layout,
                                    int attribute_count, const graph_attribute *attributes)
{
    graph_value_index out =
        graph_add_value(w->made, layout == LAYOUT_FIRST ? w->g->values[v].name : NULL);
    describe(w, out, v, layout);
    graph_add_node_to(w->made, op, name, input_count, inputs, 1, &out, attribute_count, attributes);
    w->forms[v][layout] = out;
    return out;
}

static graph_value_index write_constant(quantised_work *w, const tensor *t)
{
    return t ? graph_add_constant(w->made, NULL, t) : GRAPH_NO_VALUE;
}

static graph_value_index write_float(quantised_work *w, float x)
{
    return graph_add_constant_f32(w->made, NULL, 0, NULL, &x);
}

static graph_value_index write_zero(quantised_work *w, int32_t zero)
{
    tensor t;
    status s = tensor_allocate(&t, &w->made->memory, DTYPE_U8, 0, NULL);
    assert(s == STATUS_OK); /* as all of building: memory failures abort */
    *(uint8_t *)t.data = (uint8_t)zero;
    return graph_add_constant(w->made, NULL, &t);
}

static void write_dequantise(quantised_work *w, graph_value_index v, quantised_layout layout)
{
    const graph_node *n = quantised_producer(w, v);
    assert(n && n->op == GRAPH_OP_DEQUANTIZE_LINEAR);
    quantised_tensor is;
    graph_value_index x = n->inputs[0], inputs[3];
    bool has_one_scale = quantised_parameters(w, n, &is);
    if (!w->g->values[x].constant && has_one_scale && quantised_rank(w, v) == 4 &&
        !exists(w, x, layout) && exists(w, x, LAYOUT_LAST + LAYOUT_FIRST - layout))
        layout = LAYOUT_LAST + LAYOUT_FIRST - layout; /* the floats move, when they must */
    if (!has_one_scale)
        layout = LAYOUT_FIRST;
    inputs[0] = want(w, x, layout);
    inputs[1] = want(w, n->inputs[1], LAYOUT_FIRST);
    inputs[2] =
        w->is_shifted[x] ? write_zero(w, is.zero) : want(w, graph_input_of(n, 2), LAYOUT_FIRST);
    write_node(w, n->op, n->name, inputs[2] == GRAPH_NO_VALUE ? 2 : 3, inputs, v, layout,
               n->attribute_count, n->attributes);
}

/* Moves the channels of a value that exists in the other layout. */
static void write_transpose(quantised_work *w, graph_value_index v, quantised_layout layout)
{
    static const int64_t orders[LAYOUT_COUNT][4] = {{0, 3, 1, 2}, {0, 2, 3, 1}};
    graph_value_index inputs[2] = {w->forms[v][LAYOUT_LAST + LAYOUT_FIRST - layout]};
    assert(inputs[0] != GRAPH_NO_VALUE && quantised_rank(w, v) == 4);
    bool is_trivial =
        quantised_dim(w, v, 1) == 1 || quantised_dim(w, v, 2) * quantised_dim(w, v, 3) == 1;
    if (is_trivial) {
        int64_t dims[4];
        for (int i = 0; i < 4; i++)
            dims[i] = quantised_dim(w, v, layout == LAYOUT_LAST ? (int)orders[layout][i] : i);
        inputs[1] = graph_add_constant_i64(w->made, NULL, 1, (int64_t[]){4}, dims);
        write_node(w, GRAPH_OP_RESHAPE, w->g->values[v].name, 2, inputs, v, layout, 0, NULL);
        return;
    }
    graph_attribute order = graph_make_ints(w->made, "perm", 4, orders[layout]);
    write_node(w, GRAPH_OP_TRANSPOSE, w->g->values[v].name, 1, inputs, v, layout, 1, &order);
}

/* The value of the made graph for `v`. */
static graph_value_index want(quantised_work *w, graph_value_index v, quantised_layout layout)
{
    if (v == GRAPH_NO_VALUE)
        return v;
    if (!exists(w, v, LAYOUT_FIRST) && !exists(w, v, LAYOUT_LAST)) {
        if (w->g->values[v].constant)
            w->forms[v][LAYOUT_FIRST] =
                graph_add_constant(w->made, w->g->values[v].name, w->g->values[v].constant);
        else
            write_dequantise(w, v, layout);
    }
    if (!exists(w, v, layout))
        write_transpose(w, v, layout);
    return w->forms[v][layout];
}

/* Attributes of a product, with `activation` where that is not NULL; the number of them to *count.
 */
static graph_attribute *product_attributes(quantised_work *w, const quantised_product *p,
                                           const char *activation, int *count)
{
    int n = p->op == GRAPH_OP_FUSED_CONV ? p->anchor->attribute_count : 0;
    graph_attribute *attributes =
        arena_allocate_zeroed(&w->made->memory, (size_t)n + 2, sizeof attributes[0]);
    assert(attributes);
    for (int i = 0; i < n; i++)
        attributes[i] = p->anchor->attributes[i];
    if (p->is_transposed)
        attributes[n++] = graph_make_int("transB", 1);
    if (activation)
        attributes[n++] = graph_make_string("activation", activation);
    *count = n;
    return attributes;
}

/* The product in floats, as a value that only this file knows. */
static graph_value_index write_floats(quantised_work *w, const quantised_product *p,
                                      const graph_value_index in[OPERANDS_MAX], int count,
                                      int attribute_count, const graph_attribute *attributes,
                                      quantised_layout layout)
{
    graph_value_index made = graph_add_value(w->made, NULL);
    describe(w, made, p->out, layout);
    w->made->values[made].dtype = DTYPE_F32;
    graph_add_node_to(w->made, p->op, p->anchor->name, count, in, 1, &made, attribute_count,
                      attributes);
    return made;
}

static void write_product(quantised_work *w, const quantised_product *p)
{
    quantised_layout layout = p->op == GRAPH_OP_FUSED_CONV ? LAYOUT_LAST : LAYOUT_FIRST;
    graph_value_index in[OPERANDS_MAX] = {0};
    int count = 4, attribute_count;
    in[0] = want(w, p->x, layout);
    in[1] =
        p->weights_made ? write_constant(w, p->weights_made) : want(w, p->weights, LAYOUT_FIRST);
    in[2] = write_constant(w, p->bias_made);
    in[3] = want(w, p->residual, layout);
    if (p->is_quantised) {
        count = 7;
        in[4] = p->w_scale_is ? write_float(w, p->x_is.scale) : want(w, p->x_scale, LAYOUT_FIRST);
        in[5] = p->w_scale_is ? write_zero(w, p->x_is.zero) : want(w, p->x_zero, LAYOUT_FIRST);
        in[6] =
            p->w_scale_is ? write_constant(w, p->w_scale_is) : want(w, p->w_scale, LAYOUT_FIRST);
    }
    if (p->weights_rest) { /* the rest's product is the residual, with the real one in it */
        graph_value_index rest[OPERANDS_MAX];
        memcpy(rest, in, sizeof rest);
        rest[1] = write_constant(w, p->weights_rest);
        rest[2] = GRAPH_NO_VALUE;
        const graph_attribute *plain = product_attributes(w, p, NULL, &attribute_count);
        in[3] = write_floats(w, p, rest, count, attribute_count, plain, layout);
    }
    const graph_attribute *attributes = product_attributes(w, p, p->activation, &attribute_count);
    graph_value_index y_scale = GRAPH_NO_VALUE, y_zero = GRAPH_NO_VALUE;
    if (p->has_quantised_result) {
        y_scale = write_float(w, p->y_is.scale);
        y_zero = write_zero(w, p->y_is.zero);
    }
    if (p->has_quantised_result && p->weights_rest) { /* bytes have no residual */
        graph_value_index floats[] = {
            write_floats(w, p, in, count, attribute_count, attributes, layout), y_scale, y_zero};
        write_node(w, GRAPH_OP_QUANTIZE_LINEAR, p->anchor->name, 3, floats, p->out, layout, 0,
                   NULL);
        return;
    }
    if (p->has_quantised_result) {
        count = 9;
        in[7] = y_scale;
        in[8] = y_zero;
    }
    write_node(w, p->op, p->anchor->name, count, in, p->out, layout, attribute_count, attributes);
}

static void write_sum(quantised_work *w, const graph_node *n, const quantised_sum *s)
{
    bool is_last = is_only_last(w, s->a.bytes) || is_only_last(w, s->b.bytes);
    for (int i = 0; i < 4; i++) /* a part of a's shape has no channels to move */
        is_last = is_last && quantised_rank(w, s->a.bytes) == 4 &&
                  quantised_rank(w, s->b.bytes) == 4 &&
                  quantised_dim(w, s->a.bytes, i) == quantised_dim(w, s->b.bytes, i);
    quantised_layout layout = is_last ? LAYOUT_LAST : LAYOUT_FIRST;
    const quantised_tensor *three[3] = {&s->a, &s->b, &s->y};
    graph_value_index in[8] = {want(w, s->a.bytes, layout), want(w, s->b.bytes, layout)};
    for (int i = 0; i < 3; i++) {
        in[2 + 2 * i] = write_float(w, three[i]->scale);
        in[3 + 2 * i] = write_zero(w, three[i]->zero);
    }
    graph_attribute relu = graph_make_string("activation", "Relu");
    write_node(w, GRAPH_OP_FUSED_ADD, n->name, 8, in, n->outputs[0], layout, s->has_relu, &relu);
}

/* Max and average pooling of images, on channels last. */
static bool is_image_pool(const quantised_work *w, const graph_node *n, graph_value_index x)
{
    bool is_pool = n->op == GRAPH_OP_MAX_POOL || n->op == GRAPH_OP_AVERAGE_POOL ||
                   n->op == GRAPH_OP_GLOBAL_AVERAGE_POOL;
    if (!is_pool || n->outputs[0] == GRAPH_NO_VALUE || quantised_rank(w, x) != 4 ||
        quantised_count(w, n->outputs[0]) == 0 || quantised_count(w, x) == 0)
        return false;
    dtype type = w->is_shifted[x] ? DTYPE_U8 : w->g->values[x].dtype;
    switch (n->op) {
    case GRAPH_OP_MAX_POOL:
        return (n->output_count == 1 || n->outputs[1] == GRAPH_NO_VALUE) &&
               (type == DTYPE_F32 || type == DTYPE_U8);
    case GRAPH_OP_AVERAGE_POOL: /* a window that the image's end cuts counts otherwise there */
        return type == DTYPE_F32 && !(graph_attribute_int(n, "ceil_mode", 0) &&
                                      graph_attribute_int(n, "count_include_pad", 0));
    case GRAPH_OP_GLOBAL_AVERAGE_POOL:
        return type == DTYPE_F32;
    default:
        return false;
    }
}

static void write_pool(quantised_work *w, const graph_node *n, graph_value_index x,
                       graph_value_index out)
{
    graph_value_index in = want(w, x, LAYOUT_LAST);
    graph_attribute attributes[16];
    int count = 0;
    assert(n->attribute_count < 14);
    if (n->op == GRAPH_OP_GLOBAL_AVERAGE_POOL) {
        int64_t all[2] = {quantised_dim(w, x, 2), quantised_dim(w, x, 3)};
        attributes[count++] = graph_make_ints(w->made, "kernel_shape", 2, all);
    } else {
        for (; count < n->attribute_count; count++)
            attributes[count] = n->attributes[count];
    }
    attributes[count++] = graph_make_string("kind", n->op == GRAPH_OP_MAX_POOL ? "Max" : "Average");
    write_node(w, GRAPH_OP_FUSED_POOL, n->name, 1, &in, out, LAYOUT_LAST, count, attributes);
}

/* Operators that do the same to every element. */
static bool is_elementwise(graph_op op)
{
    switch (op) {
    case GRAPH_OP_RELU:
    case GRAPH_OP_SIGMOID:
    case GRAPH_OP_TANH:
    case GRAPH_OP_HARD_SWISH:
    case GRAPH_OP_HARD_SIGMOID:
    case GRAPH_OP_LEAKY_RELU:
    case GRAPH_OP_ELU:
    case GRAPH_OP_CLIP:
    case GRAPH_OP_GELU:
    case GRAPH_OP_MISH:
    case GRAPH_OP_SOFTPLUS:
    case GRAPH_OP_ABS:
    case GRAPH_OP_NEG:
    case GRAPH_OP_SQRT:
    case GRAPH_OP_EXP:
    case GRAPH_OP_ERF:
    case GRAPH_OP_ADD:
    case GRAPH_OP_SUB:
    case GRAPH_OP_MUL:
    case GRAPH_OP_DIV:
    case GRAPH_OP_MAX:
    case GRAPH_OP_MIN:
        return true;
    default:
        return false;
    }
}

/* A constant that broadcasts the same way with the channels last: one number, or one per channel.
 * Writes its dims there. */
static bool moves_along(const quantised_work *w, graph_value_index v, int *rank, int64_t dims[4])
{
    int from = quantised_rank(w, v);
    *rank = 0;
    if (quantised_count(w, v) == 1)
        return true;
    if (from < 3 || from > 4 || quantised_count(w, v) != quantised_dim(w, v, from - 3))
        return false;
    *rank = 1;
    dims[0] = quantised_count(w, v);
    return true;
}

static bool is_computed_image(const quantised_work *w, graph_value_index v)
{
    return !w->g->values[v].constant && quantised_rank(w, v) == 4;
}

/* Whether an elementwise node is best computed where its inputs are, with the channels last. */
static bool runs_last(const quantised_work *w, const graph_node *n)
{
    bool has_last = false;
    int rank;
    int64_t dims[4];
    if (!is_elementwise(n->op) || n->output_count != 1 || quantised_rank(w, n->outputs[0]) != 4)
        return false;
    for (int i = 0; i < n->input_count; i++) {
        graph_value_index v = n->inputs[i];
        if (v == GRAPH_NO_VALUE)
            continue;
        has_last |= is_only_last(w, v);
        if (!is_computed_image(w, v) &&
            !(w->g->values[v].constant && moves_along(w, v, &rank, dims)))
            return false;
    }
    return has_last && n->input_count <= OPERANDS_MAX;
}

static void write_last(quantised_work *w, const graph_node *n)
{
    graph_value_index in[OPERANDS_MAX];
    for (int i = 0; i < n->input_count; i++) {
        graph_value_index v = n->inputs[i];
        int rank;
        int64_t dims[4];
        if (v == GRAPH_NO_VALUE || is_computed_image(w, v)) {
            in[i] = want(w, v, LAYOUT_LAST);
            continue;
        }
        bool is_moved = moves_along(w, v, &rank, dims);
        assert(is_moved);
        tensor t = *w->g->values[v].constant;
        t.rank = rank;
        t.dims[0] = rank ? dims[0] : 1;
        in[i] = graph_add_constant(w->made, NULL, &t);
    }
    write_node(w, n->op, n->name, n->input_count, in, n->outputs[0], LAYOUT_LAST,
               n->attribute_count, n->attributes);
}

/* Joins channels of images, some of which are there with the channels last. */
static bool joins_last(const quantised_work *w, const graph_node *n)
{
    bool has_last = false;
    if (n->op != GRAPH_OP_CONCAT || quantised_rank(w, n->outputs[0]) != 4 ||
        (graph_attribute_int(n, "axis", 0) + 4) % 4 != 1)
        return false;
    for (int i = 0; i < n->input_count; i++) {
        if (!is_computed_image(w, n->inputs[i]))
            return false;
        has_last |= is_only_last(w, n->inputs[i]);
    }
    return has_last;
}

static status write_join(quantised_work *w, const graph_node *n)
{
    graph_value_index *in = calloc((size_t)n->input_count, sizeof in[0]);
    if (!in)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to fuse \"%s\"", w->g->name);
    for (int i = 0; i < n->input_count; i++)
        in[i] = want(w, n->inputs[i], LAYOUT_LAST);
    graph_attribute axis = graph_make_int("axis", 3);
    write_node(w, n->op, n->name, n->input_count, in, n->outputs[0], LAYOUT_LAST, 1, &axis);
    free(in);
    return STATUS_OK;
}

static void write_quantise(quantised_work *w, const graph_node *n)
{
    quantised_tensor is;
    graph_value_index x = n->inputs[0], out = n->outputs[0], in[3];
    bool has_one_scale = quantised_parameters(w, n, &is);
    quantised_layout layout = has_one_scale && is_only_last(w, x) ? LAYOUT_LAST : LAYOUT_FIRST;
    in[0] = want(w, x, layout);
    in[1] = want(w, n->inputs[1], LAYOUT_FIRST);
    in[2] =
        w->is_shifted[out] ? write_zero(w, is.zero) : want(w, graph_input_of(n, 2), LAYOUT_FIRST);
    write_node(w, n->op, n->name, in[2] == GRAPH_NO_VALUE ? 2 : 3, in, out, layout,
               w->is_shifted[out] ? 0 : n->attribute_count, n->attributes);
}

/* As it is, with the channels where the model has them. `first_input` stands for input 0. */
static status write_plain(quantised_work *w, const graph_node *n, graph_value_index first_input,
                          const graph_value_index *outputs)
{
    graph_value_index *places =
        calloc((size_t)(n->input_count + n->output_count) + 1, sizeof places[0]);
    if (!places)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to fuse \"%s\"", w->g->name);
    graph_value_index *out = places + n->input_count;
    for (int i = 0; i < n->input_count; i++)
        places[i] = want(w, i == 0 ? first_input : n->inputs[i], LAYOUT_FIRST);
    for (int i = 0; i < n->output_count; i++) {
        out[i] = GRAPH_NO_VALUE;
        if (outputs[i] == GRAPH_NO_VALUE)
            continue;
        out[i] = graph_add_value(w->made, w->g->values[outputs[i]].name);
        describe(w, out[i], outputs[i], LAYOUT_FIRST);
        w->forms[outputs[i]][LAYOUT_FIRST] = out[i];
    }
    graph_add_node_to(w->made, n->op, n->name, n->input_count, places, n->output_count, out,
                      n->attribute_count, n->attributes);
    free(places);
    return STATUS_OK;
}

static status write_one(quantised_work *w, int32_t at)
{
    const graph_node *n = &w->g->nodes[at];
    const quantised_role *role = &w->roles[at];
    if (role->is_absorbed || n->op == GRAPH_OP_DEQUANTIZE_LINEAR)
        return STATUS_OK;
    if (role->product)
        write_product(w, role->product);
    else if (role->sum)
        write_sum(w, n, role->sum);
    else if (role->moved != GRAPH_NO_VALUE) {
        const graph_node *move = quantised_producer(w, n->inputs[0]);
        if (!is_image_pool(w, move, role->moved))
            return write_plain(w, move, role->moved, n->outputs);
        write_pool(w, move, role->moved, n->outputs[0]);
    } else if (n->op == GRAPH_OP_QUANTIZE_LINEAR)
        write_quantise(w, n);
    else if (is_image_pool(w, n, n->inputs[0]))
        write_pool(w, n, n->inputs[0], n->outputs[0]);
    else if (runs_last(w, n))
        write_last(w, n);
    else if (joins_last(w, n))
        return write_join(w, n);
    else
        return write_plain(w, n, graph_input_of(n, 0), n->outputs);
    return STATUS_OK;
}

static void write_inputs(quantised_work *w)
{
    const graph *g = w->g;
    for (int i = 0; i < g->input_count; i++) {
        const graph_value *v = &g->values[g->inputs[i]];
        graph_value_index at =
            graph_add_input(w->made, v->name, v->dtype, v->shape.rank, v->shape.dims);
        w->made->values[at].constant = v->constant;
        w->forms[g->inputs[i]][LAYOUT_FIRST] = at;
    }
}

status quantised_emit(quantised_work *w)
{
    const graph *g = w->g;
    status s = STATUS_OK;
    write_inputs(w);
    for (int32_t n = 0; !s && n < g->node_count; n++)
        s = write_one(w, n);
    for (int i = 0; !s && i < g->output_count; i++)
        graph_add_output(w->made, want(w, g->outputs[i], LAYOUT_FIRST),
                         g->values[g->outputs[i]].name);
    return s;
}

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "graph/quantise/internal.h"

/* Writes the fused graph. Each value is written in the layout in which it is computed, and in the
 * other layout when a node needs it there. Nodes follow the source's order, so the inputs of a node
 * exist already; only DequantizeLinear is written on demand. */

#define OPERANDS_MAX 9

static bool exists(const fusion *w, graph_value_index v, channel_layout layout)
{
    return w->made_values[v][layout] != GRAPH_NO_VALUE;
}

bool fusion_is_only_last(const fusion *w, graph_value_index v)
{
    if (v == GRAPH_NO_VALUE || w->g->values[v].constant)
        return false;
    const graph_node *n = fusion_producer(w, v);
    if (n && n->op == GRAPH_OP_DEQUANTIZE_LINEAR && !exists(w, v, LAYOUT_FIRST) &&
        !exists(w, v, LAYOUT_LAST))
        return fusion_is_only_last(w, n->inputs[0]);
    return exists(w, v, LAYOUT_LAST) && !exists(w, v, LAYOUT_FIRST);
}

void fusion_describe(fusion *w, graph_value_index at, graph_value_index v, channel_layout layout)
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

graph_value_index fusion_write_node(fusion *w, graph_op op, const char *name, int input_count,
                                    const graph_value_index *inputs, graph_value_index v,
                                    channel_layout layout, int attribute_count,
                                    const graph_attribute *attributes)
{
    graph_value_index out =
        graph_add_value(w->made, layout == LAYOUT_FIRST ? w->g->values[v].name : NULL);
    fusion_describe(w, out, v, layout);
    graph_add_node_to(w->made, op, name, input_count, inputs, 1, &out, attribute_count, attributes);
    w->made_values[v][layout] = out;
    return out;
}

static graph_value_index write_constant(fusion *w, const tensor *t)
{
    return t ? graph_add_constant(w->made, NULL, t) : GRAPH_NO_VALUE;
}

static graph_value_index write_float(fusion *w, float x)
{
    return graph_add_constant_f32(w->made, NULL, 0, NULL, &x);
}

static graph_value_index write_zero_of(fusion *w, dtype type, int32_t zero)
{
    tensor t;
    if (tensor_allocate(&t, &w->made->memory, type, 0, NULL))
        return graph_lack_memory(w->made);
    *(uint8_t *)t.data = (uint8_t)zero;
    return graph_add_constant(w->made, NULL, &t);
}

static graph_value_index write_zero(fusion *w, int32_t zero)
{
    return write_zero_of(w, DTYPE_U8, zero);
}

static void write_dequantise(fusion *w, graph_value_index v, channel_layout layout)
{
    const graph_node *n = fusion_producer(w, v);
    assert(n && n->op == GRAPH_OP_DEQUANTIZE_LINEAR);
    quantised_tensor is;
    graph_value_index x = n->inputs[0], inputs[3];
    bool has_one_scale = fusion_read_parameters(w, n, &is);
    if (!w->g->values[x].constant && has_one_scale && fusion_rank(w, v) == 4 &&
        !exists(w, x, layout) && exists(w, x, LAYOUT_LAST + LAYOUT_FIRST - layout))
        layout = LAYOUT_LAST + LAYOUT_FIRST -
                 layout; /* floats are transposed later, where a node needs it */
    if (!has_one_scale)
        layout = LAYOUT_FIRST;
    inputs[0] = fusion_get_value(w, x, layout);
    inputs[1] = fusion_get_value(w, n->inputs[1], LAYOUT_FIRST);
    inputs[2] = w->is_shifted[x] ? write_zero(w, is.zero)
                                 : fusion_get_value(w, graph_input_of(n, 2), LAYOUT_FIRST);
    fusion_write_node(w, n->op, n->name, inputs[2] == GRAPH_NO_VALUE ? 2 : 3, inputs, v, layout,
                      n->attribute_count, n->attributes);
}

/* Moves the channels of a value that exists in the other layout. */
static void write_transpose(fusion *w, graph_value_index v, channel_layout layout)
{
    static const int64_t orders[LAYOUT_COUNT][4] = {{0, 3, 1, 2}, {0, 2, 3, 1}};
    graph_value_index inputs[2] = {w->made_values[v][LAYOUT_LAST + LAYOUT_FIRST - layout]};
    assert(inputs[0] != GRAPH_NO_VALUE && fusion_rank(w, v) == 4);
    bool is_trivial = fusion_dim(w, v, 1) == 1 || fusion_dim(w, v, 2) * fusion_dim(w, v, 3) == 1;
    if (is_trivial) {
        int64_t dims[4];
        for (int i = 0; i < 4; i++)
            dims[i] = fusion_dim(w, v, layout == LAYOUT_LAST ? (int)orders[layout][i] : i);
        inputs[1] = graph_add_constant_i64(w->made, NULL, 1, (int64_t[]){4}, dims);
        fusion_write_node(w, GRAPH_OP_RESHAPE, w->g->values[v].name, 2, inputs, v, layout, 0, NULL);
        return;
    }
    graph_attribute order = graph_make_ints(w->made, "perm", 4, orders[layout]);
    fusion_write_node(w, GRAPH_OP_TRANSPOSE, w->g->values[v].name, 1, inputs, v, layout, 1, &order);
}

graph_value_index fusion_get_value(fusion *w, graph_value_index v, channel_layout layout)
{
    if (v == GRAPH_NO_VALUE)
        return v;
    if (!exists(w, v, LAYOUT_FIRST) && !exists(w, v, LAYOUT_LAST)) {
        if (w->g->values[v].constant)
            w->made_values[v][LAYOUT_FIRST] =
                graph_add_constant(w->made, w->g->values[v].name, w->g->values[v].constant);
        else
            write_dequantise(w, v, layout);
    }
    if (!exists(w, v, layout))
        write_transpose(w, v, layout);
    return w->made_values[v][layout];
}

/* Attributes of a layer, with `activation` where that is not NULL; the number of them to *count.
 * None, and NULL, where memory is out. */
static graph_attribute *layer_attributes(fusion *w, const fused_layer *l, const char *activation,
                                         int *count)
{
    int n = l->op == GRAPH_OP_FUSED_DENSE ? 0 : l->anchor->attribute_count;
    graph_attribute *attributes =
        arena_allocate_zeroed(&w->made->memory, (size_t)n + 8, sizeof attributes[0]);
    *count = 0;
    if (!attributes) {
        graph_lack_memory(w->made);
        return NULL;
    }
    for (int i = 0; i < n; i++)
        attributes[i] = l->anchor->attributes[i];
    if (l->is_transposed)
        attributes[n++] = graph_make_int("transB", 1);
    if (l->weights_shift)
        attributes[n++] = graph_make_int("weights_shift", l->weights_shift);
    if (activation)
        attributes[n++] = graph_make_string("activation", activation);
    if (activation && l->is_late) {
        attributes[n++] = graph_make_float("alpha", l->a);
        attributes[n++] = graph_make_float("beta", l->b);
        attributes[n++] = graph_make_float("scale", l->scale);
        attributes[n++] = graph_make_float("shift", l->shift);
    }
    if (l->adds_last)
        attributes[n++] = graph_make_int("adds_last", 1);
    *count = n;
    return attributes;
}

/* The layer's result in floats, as a value that the source graph does not have. */
static graph_value_index write_floats(fusion *w, const fused_layer *l,
                                      const graph_value_index in[OPERANDS_MAX], int count,
                                      int attribute_count, const graph_attribute *attributes,
                                      channel_layout layout)
{
    graph_value_index made = graph_add_value(w->made, NULL);
    fusion_describe(w, made, l->out, layout);
    w->made->values[made].dtype = DTYPE_F32;
    graph_add_node_to(w->made, l->op, l->anchor->name, count, in, 1, &made, attribute_count,
                      attributes);
    return made;
}

/* int8 as uint8 with 128 added, or back: value `in` of `made`, which is `v` in that layout. */
static graph_value_index write_flipped(fusion *w, graph_value_index in, graph_value_index v,
                                       channel_layout layout, dtype type)
{
    graph_value_index out = graph_add_value(w->made, NULL), operands[2] = {in};
    operands[1] = write_zero(w, 128);
    fusion_describe(w, out, v, layout);
    w->made->values[out].dtype = type;
    graph_add_node_to(w->made, GRAPH_OP_BITWISE_XOR, w->g->values[v].name, 2, operands, 1, &out, 0,
                      NULL);
    return out;
}

/* Whether a layer takes or makes `v` as uint8, and the others do not. */
static bool is_flipped(const fusion *w, graph_value_index v)
{
    return fusion_type(w, v) == DTYPE_I8 && !w->is_shifted[v];
}

static void write_layer(fusion *w, const fused_layer *l)
{
    channel_layout layout = l->op == GRAPH_OP_FUSED_DENSE ? LAYOUT_FIRST : LAYOUT_LAST;
    graph_value_index in[OPERANDS_MAX] = {0};
    int count = 4, attribute_count;
    in[0] = fusion_get_value(w, l->x, layout);
    if (is_flipped(w, l->x))
        in[0] = write_flipped(w, in[0], l->x, layout, DTYPE_U8);
    in[1] = l->weights_made ? write_constant(w, l->weights_made)
                            : fusion_get_value(w, l->weights, LAYOUT_FIRST);
    in[2] =
        l->bias_made ? write_constant(w, l->bias_made) : fusion_get_value(w, l->bias, LAYOUT_FIRST);
    in[3] = fusion_get_value(w, l->residual, layout);
    if (l->is_quantised) {
        count = 7;
        in[4] = l->w_scale_is ? write_float(w, l->x_is.scale)
                              : fusion_get_value(w, l->x_scale, LAYOUT_FIRST);
        in[5] = l->w_scale_is ? write_zero(w, l->x_is.zero)
                              : fusion_get_value(w, l->x_zero, LAYOUT_FIRST);
        in[6] = l->w_scale_is ? write_constant(w, l->w_scale_is)
                              : fusion_get_value(w, l->w_scale, LAYOUT_FIRST);
    }
    if (l->weights_rest) { /* the result of the rest is the residual; the layer's own residual is
                              added to it */
        graph_value_index rest[OPERANDS_MAX];
        memcpy(rest, in, sizeof rest);
        rest[1] = write_constant(w, l->weights_rest);
        rest[2] = GRAPH_NO_VALUE;
        const graph_attribute *plain = layer_attributes(w, l, NULL, &attribute_count);
        in[3] = write_floats(w, l, rest, count, attribute_count, plain, layout);
    }
    const graph_attribute *attributes = layer_attributes(w, l, l->activation, &attribute_count);
    graph_value_index y_scale = GRAPH_NO_VALUE, y_zero = GRAPH_NO_VALUE;
    if (l->has_quantised_result) {
        y_scale = write_float(w, l->y_is.scale);
        y_zero = write_zero(w, l->y_is.zero);
    }
    if (l->has_quantised_result && l->weights_rest) { /* a quantised result takes no residual */
        graph_value_index floats[] = {
            write_floats(w, l, in, count, attribute_count, attributes, layout), y_scale,
            is_flipped(w, l->out) ? write_zero_of(w, DTYPE_I8, l->y_is.zero - 128) : y_zero};
        fusion_write_node(w, GRAPH_OP_QUANTIZE_LINEAR, l->anchor->name, 3, floats, l->out, layout,
                          0, NULL);
        return;
    }
    if (l->has_quantised_result) {
        count = 9;
        in[7] = y_scale;
        in[8] = y_zero;
    }
    if (is_flipped(w, l->out)) {
        graph_value_index made = graph_add_value(w->made, NULL);
        fusion_describe(w, made, l->out, layout);
        w->made->values[made].dtype = DTYPE_U8;
        graph_add_node_to(w->made, l->op, l->anchor->name, count, in, 1, &made, attribute_count,
                          attributes);
        w->made_values[l->out][layout] = write_flipped(w, made, l->out, layout, DTYPE_I8);
        return;
    }
    fusion_write_node(w, l->op, l->anchor->name, count, in, l->out, layout, attribute_count,
                      attributes);
}

static void write_sum(fusion *w, const graph_node *n, const fused_sum *s)
{
    bool is_last = fusion_is_only_last(w, s->a.value) || fusion_is_only_last(w, s->b.value);
    for (int i = 0; i < 4; i++) /* a trailing part of a's shape has no channels to move */
        is_last = is_last && fusion_rank(w, s->a.value) == 4 && fusion_rank(w, s->b.value) == 4 &&
                  fusion_dim(w, s->a.value, i) == fusion_dim(w, s->b.value, i);
    channel_layout layout = is_last ? LAYOUT_LAST : LAYOUT_FIRST;
    const quantised_tensor *three[3] = {&s->a, &s->b, &s->y};
    graph_value_index in[8] = {fusion_get_value(w, s->a.value, layout),
                               fusion_get_value(w, s->b.value, layout)};
    for (int i = 0; i < 3; i++) {
        in[2 + 2 * i] = write_float(w, three[i]->scale);
        in[3 + 2 * i] = write_zero(w, three[i]->zero);
    }
    graph_attribute relu = graph_make_string("activation", "Relu");
    fusion_write_node(w, GRAPH_OP_FUSED_ADD, n->name, 8, in, n->outputs[0], layout, s->has_relu,
                      &relu);
}

/* Max and average pooling of images, on channels last. */
static bool is_image_pool(const fusion *w, const graph_node *n, graph_value_index x)
{
    bool is_pool = n->op == GRAPH_OP_MAX_POOL || n->op == GRAPH_OP_AVERAGE_POOL ||
                   n->op == GRAPH_OP_GLOBAL_AVERAGE_POOL;
    if (!is_pool || n->outputs[0] == GRAPH_NO_VALUE || fusion_rank(w, x) != 4 ||
        fusion_count(w, n->outputs[0]) == 0 || fusion_count(w, x) == 0)
        return false;
    dtype type = w->is_shifted[x] ? DTYPE_U8 : w->g->values[x].dtype;
    if (type == DTYPE_F32 && !exists(w, x, LAYOUT_LAST)) /* planes are pooled as well as pixels */
        return false;
    switch (n->op) {
    case GRAPH_OP_MAX_POOL:
        return (n->output_count == 1 || n->outputs[1] == GRAPH_NO_VALUE) &&
               (type == DTYPE_F32 || type == DTYPE_U8);
    case GRAPH_OP_AVERAGE_POOL: /* ceil_mode counts the padding of a cut window differently */
        return type == DTYPE_F32 && !(graph_attribute_int(n, "ceil_mode", 0) &&
                                      graph_attribute_int(n, "count_include_pad", 0));
    case GRAPH_OP_GLOBAL_AVERAGE_POOL:
        return type == DTYPE_F32;
    default:
        return false;
    }
}

static void write_pool(fusion *w, const graph_node *n, graph_value_index x, graph_value_index out)
{
    graph_value_index in = fusion_get_value(w, x, LAYOUT_LAST);
    graph_attribute attributes[16];
    int count = 0;
    assert(n->attribute_count < 14);
    if (n->op == GRAPH_OP_GLOBAL_AVERAGE_POOL) {
        int64_t all[2] = {fusion_dim(w, x, 2), fusion_dim(w, x, 3)};
        attributes[count++] = graph_make_ints(w->made, "kernel_shape", 2, all);
    } else {
        for (; count < n->attribute_count; count++)
            attributes[count] = n->attributes[count];
    }
    attributes[count++] = graph_make_string("kind", n->op == GRAPH_OP_MAX_POOL ? "Max" : "Average");
    fusion_write_node(w, GRAPH_OP_FUSED_POOL, n->name, 1, &in, out, LAYOUT_LAST, count, attributes);
}

static void write_quantise(fusion *w, const graph_node *n)
{
    quantised_tensor is;
    graph_value_index x = n->inputs[0], out = n->outputs[0], in[3];
    bool has_one_scale = fusion_read_parameters(w, n, &is);
    channel_layout layout = has_one_scale && fusion_is_only_last(w, x) ? LAYOUT_LAST : LAYOUT_FIRST;
    in[0] = fusion_get_value(w, x, layout);
    in[1] = fusion_get_value(w, n->inputs[1], LAYOUT_FIRST);
    in[2] = w->is_shifted[out] ? write_zero(w, is.zero)
                               : fusion_get_value(w, graph_input_of(n, 2), LAYOUT_FIRST);
    fusion_write_node(w, n->op, n->name, in[2] == GRAPH_NO_VALUE ? 2 : 3, in, out, layout,
                      w->is_shifted[out] ? 0 : n->attribute_count, n->attributes);
}

/* Weights of a convolution that is no layer are dequantised here, and packed: not in every run. */
static graph_value_index get_plain(fusion *w, const graph_node *n, int input, graph_value_index v)
{
    bool is_conv = n->op == GRAPH_OP_CONV || n->op == GRAPH_OP_CONV_TRANSPOSE;
    const tensor *made =
        is_conv && input > 0 && !fusion_constant(w, v) ? fusion_float_constant(w, v) : NULL;
    return made ? write_constant(w, made) : fusion_get_value(w, v, LAYOUT_FIRST);
}

/* Copies the node, in the model's own layout. `first_input` replaces input 0. */
static status write_plain(fusion *w, const graph_node *n, graph_value_index first_input,
                          const graph_value_index *outputs)
{
    graph_value_index *places =
        calloc((size_t)(n->input_count + n->output_count) + 1, sizeof places[0]);
    if (!places)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to fuse \"%s\"", w->g->name);
    graph_value_index *out = places + n->input_count;
    for (int i = 0; i < n->input_count; i++)
        places[i] = get_plain(w, n, i, i == 0 ? first_input : n->inputs[i]);
    for (int i = 0; i < n->output_count; i++) {
        out[i] = GRAPH_NO_VALUE;
        if (outputs[i] == GRAPH_NO_VALUE)
            continue;
        out[i] = graph_add_value(w->made, w->g->values[outputs[i]].name);
        fusion_describe(w, out[i], outputs[i], LAYOUT_FIRST);
        w->made_values[outputs[i]][LAYOUT_FIRST] = out[i];
    }
    graph_add_node_to(w->made, n->op, n->name, n->input_count, places, n->output_count, out,
                      n->attribute_count, n->attributes);
    free(places);
    return STATUS_OK;
}

/* A Transpose of the model between the two layouts: the other layout of its operand is the result,
 * or the operand is the other layout of the result. */
static bool write_exchange(fusion *w, const graph_node *n)
{
    static const int64_t to_last[4] = {0, 2, 3, 1}, to_first[4] = {0, 3, 1, 2};
    const graph_attribute *perm =
        n->op == GRAPH_OP_TRANSPOSE ? graph_find_attribute(n, "perm") : NULL;
    graph_value_index x = n->inputs[0], out = n->outputs[0];
    if (!perm || perm->count != 4 || w->g->values[x].constant)
        return false;
    bool is_to_last = memcmp(perm->ints, to_last, sizeof to_last) == 0;
    channel_layout from = is_to_last ? LAYOUT_LAST : LAYOUT_FIRST;
    if (!is_to_last && memcmp(perm->ints, to_first, sizeof to_first) != 0)
        return false;
    if (!exists(w, x, from))
        return false;
    fusion_write_node(w, GRAPH_OP_IDENTITY, n->name, 1, &w->made_values[x][from], out,
                      is_to_last ? LAYOUT_FIRST : LAYOUT_LAST, 0, NULL);
    return true;
}

/* With the channels where x has them. */
static void write_silu(fusion *w, const graph_node *n)
{
    const graph_node *gate = fusion_producer(w, n->inputs[0]);
    bool is_gate = gate && gate->op == GRAPH_OP_SIGMOID && gate->inputs[0] == n->inputs[1];
    graph_value_index x = n->inputs[is_gate];
    channel_layout layout = fusion_is_only_last(w, x) ? LAYOUT_LAST : LAYOUT_FIRST;
    graph_value_index in = fusion_get_value(w, x, layout);
    fusion_write_node(w, GRAPH_OP_FUSED_SILU, n->name, 1, &in, n->outputs[0], layout, 0, NULL);
}

static status write_one(fusion *w, int32_t at)
{
    const graph_node *n = &w->g->nodes[at];
    const fusion_role *role = &w->roles[at];
    if (role->is_absorbed || n->op == GRAPH_OP_DEQUANTIZE_LINEAR)
        return STATUS_OK;
    if (role->layer)
        write_layer(w, role->layer);
    else if (role->sum)
        write_sum(w, n, role->sum);
    else if (role->is_silu)
        write_silu(w, n);
    else if (role->moved != GRAPH_NO_VALUE) {
        const graph_node *move = fusion_producer(w, n->inputs[0]);
        if (!is_image_pool(w, move, role->moved))
            return write_plain(w, move, role->moved, n->outputs);
        write_pool(w, move, role->moved, n->outputs[0]);
    } else if (n->op == GRAPH_OP_QUANTIZE_LINEAR)
        write_quantise(w, n);
    else if (is_image_pool(w, n, n->inputs[0]))
        write_pool(w, n, n->inputs[0], n->outputs[0]);
    else if (fusion_runs_last(w, n))
        return fusion_write_last(w, n);
    else if (!write_exchange(w, n))
        return write_plain(w, n, graph_input_of(n, 0), n->outputs);
    return STATUS_OK;
}

status fusion_emit(fusion *w)
{
    const graph *g = w->g;
    status s = STATUS_OK;
    for (int i = 0; i < g->input_count; i++)
        w->made_values[g->inputs[i]][LAYOUT_FIRST] =
            graph_add_input_like(w->made, &g->values[g->inputs[i]]);
    for (int32_t n = 0; !s && n < g->node_count; n++)
        s = write_one(w, n);
    for (int i = 0; !s && i < g->output_count; i++)
        graph_add_output(w->made, fusion_get_value(w, g->outputs[i], LAYOUT_FIRST),
                         g->values[g->outputs[i]].name);
    return s ? s : graph_check_memory(w->made);
}

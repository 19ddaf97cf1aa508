#include "graph/stablehlo/operand.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Constants up to this size are written into the text: remains of shape arithmetic, scalars, small
 * tables. Larger ones are arguments. */
#define LITERAL_BYTES_MAX 256

bool emit_has_input(const graph_node *n, int i)
{
    return graph_input_of(n, i) != GRAPH_NO_VALUE;
}

const tensor *emit_constant(const emitter *e, const graph_node *n, int i)
{
    graph_value_index v = graph_input_of(n, i);
    return v == GRAPH_NO_VALUE ? NULL : e->graph->values[v].constant;
}

static bool is_matrix_transpose(const graph_node *n, const tensor *x)
{
    const graph_attribute *perm = graph_find_attribute(n, "perm");
    return n->op == GRAPH_OP_TRANSPOSE && x != NULL && x->rank == 2 &&
           (perm == NULL || perm->ints[0] != 0);
}

bool emit_defer_transpose(emitter *e, const graph_node *n)
{
    if (!is_matrix_transpose(n, emit_constant(e, n, 0)))
        return false;
    e->transposed_weights[n->outputs[0]] = n;
    return true;
}

const tensor *emit_transposed_constant(const emitter *e, const graph_node *n, int i)
{
    graph_value_index v = graph_input_of(n, i);
    const graph_node *transpose = v == GRAPH_NO_VALUE ? NULL : e->transposed_weights[v];
    return transpose == NULL ? NULL : emit_constant(e, transpose, 0);
}

ssa emit_value_type(const emitter *e, graph_value_index index)
{
    const graph_value *v = &e->graph->values[index];
    ssa type = {.dtype = v->dtype, .rank = v->shape.rank};
    assert(v->has_dtype && v->shape.rank >= 0);
    for (int i = 0; i < v->shape.rank; i++) {
        assert(graph_dim_is_constant(v->shape.dims[i]));
        type.dims[i] = v->shape.dims[i].constant;
    }
    return type;
}

ssa emit_output_type(const emitter *e, const graph_node *n, int i)
{
    return emit_value_type(e, n->outputs[i]);
}

/* Appends an argument; returns its index. */
static int add_argument(emitter *e, stablehlo_argument a)
{
    stablehlo_program *p = e->program;
    if (p->argument_count == e->argument_capacity) {
        e->argument_capacity = e->argument_capacity ? 2 * e->argument_capacity : 64;
        p->arguments = realloc(p->arguments, (size_t)e->argument_capacity * sizeof *p->arguments);
        assert(p->arguments != NULL);
    }
    p->arguments[p->argument_count] = a;
    return p->argument_count++;
}

ssa emit_argument(const emitter *e, int i)
{
    const stablehlo_argument *a = &e->program->arguments[i];
    ssa v = ssa_of(a->dtype, a->rank, a->dims);
    v.number = STABLEHLO_ARGUMENT_NUMBER + i;
    return v;
}

void emit_graph_input(emitter *e, int i)
{
    graph_value_index v = e->graph->inputs[i];
    ssa type = emit_value_type(e, v);
    stablehlo_argument a = {.input = i, .dtype = type.dtype, .rank = type.rank};
    memcpy(a.dims, type.dims, sizeof a.dims);
    e->values[v] = emit_argument(e, add_argument(e, a));
}

static bool is_turned(stablehlo_transform t)
{
    return t == STABLEHLO_TO_BF16_TURNED || t == STABLEHLO_TO_S8_TURNED;
}

ssa emit_weight(emitter *e, const tensor *constant, stablehlo_transform transform, int axis)
{
    return emit_weight_for(e, constant, transform, axis, NULL);
}

ssa emit_weight_for(emitter *e, const tensor *constant, stablehlo_transform transform, int axis,
                    const quantise_channels *channels)
{
    const quantise_channels of = channels != NULL ? *channels : (quantise_channels){0};
    stablehlo_program *p = e->program;
    for (int i = 0; i < p->argument_count; i++)
        if (p->arguments[i].input < 0 && p->arguments[i].constant->data == constant->data &&
            p->arguments[i].transform == transform && p->arguments[i].axis == axis &&
            p->arguments[i].channels.factors == of.factors &&
            tensor_same_shape(p->arguments[i].constant, constant))
            return emit_argument(e, i);
    stablehlo_argument a = {.input = -1,
                            .constant = constant,
                            .transform = transform,
                            .axis = axis,
                            .channels = of,
                            .dtype = constant->dtype,
                            .rank = constant->rank};
    memcpy(a.dims, constant->dims, sizeof a.dims);
    if (transform == STABLEHLO_TO_BF16 || transform == STABLEHLO_TO_BF16_TURNED)
        a.dtype = DTYPE_BF16;
    if (is_turned(transform)) {
        a.dims[0] = constant->dims[1];
        a.dims[1] = constant->dims[0];
    }
    if (transform == STABLEHLO_TO_S8 || transform == STABLEHLO_TO_S8_TURNED)
        a.dtype = DTYPE_I8;
    if (transform == STABLEHLO_TO_S8_SCALES || transform == STABLEHLO_TO_S8_SHIFTS) {
        a.dtype = DTYPE_F32;
        a.rank = 1;
        a.dims[0] = constant->dims[axis];
    }
    return emit_argument(e, add_argument(e, a));
}

ssa emit_value(emitter *e, graph_value_index index)
{
    ssa *known = &e->values[index];
    if (known->number != 0)
        return *known;
    const graph_node *transpose = e->transposed_weights[index];
    if (transpose != NULL)
        return *known = hlo_transpose(e, emit_input(e, transpose, 0), (int[]){1, 0});
    const graph_value *v = &e->graph->values[index];
    assert(v->constant != NULL); /* nodes are in topological order */
    ssa made = tensor_bytes(v->constant) <= LITERAL_BYTES_MAX || tensor_count(v->constant) <= 1
                   ? hlo_literal(e, v->constant)
                   : emit_weight(e, v->constant, STABLEHLO_AS_IS, 0);
    return *known = made;
}

ssa emit_input(emitter *e, const graph_node *n, int i)
{
    assert(emit_has_input(n, i));
    return emit_value(e, n->inputs[i]);
}

void emit_output(emitter *e, const graph_node *n, int i, ssa v)
{
    if (i >= n->output_count || n->outputs[i] == GRAPH_NO_VALUE)
        return;
    ssa want = emit_output_type(e, n, i);
    assert(want.dtype == v.dtype && want.rank == v.rank &&
           memcmp(want.dims, v.dims, (size_t)v.rank * sizeof v.dims[0]) == 0);
    e->values[n->outputs[i]] = v;
}

ssa emit_rounded(emitter *e, ssa v)
{
    return v.dtype == DTYPE_F32 ? hlo_convert(e, hlo_convert(e, v, DTYPE_BF16), DTYPE_F32) : v;
}

ssa emit_rounded_apart(emitter *e, ssa v)
{
    assert(v.dtype == DTYPE_F32);
    return hlo_convert(e, hlo_barrier(e, hlo_convert(e, v, DTYPE_BF16)), DTYPE_F32);
}

int emit_axis(const graph_node *n, const char *name, int64_t otherwise, int rank)
{
    int64_t axis = graph_attribute_int(n, name, otherwise);
    return (int)(axis < 0 ? axis + rank : axis);
}

void emit_window_pads(const graph_node *n, int spatial, const int64_t *in, const int64_t *out,
                      const int64_t *kernel, const int64_t *strides, const int64_t *dilations,
                      int64_t *low, int64_t *high)
{
    const graph_attribute *pads = graph_find_attribute(n, "pads");
    const char *automatic = graph_attribute_string(n, "auto_pad", "NOTSET");
    for (int i = 0; i < spatial; i++) {
        low[i] = high[i] = 0;
        if (strcmp(automatic, "NOTSET") == 0) {
            low[i] = pads != NULL ? pads->ints[i] : 0;
            high[i] = pads != NULL ? pads->ints[i + spatial] : 0;
        } else if (strncmp(automatic, "SAME", 4) == 0) {
            int64_t total = (out[i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 - in[i];
            total = total < 0 ? 0 : total;
            low[i] = strcmp(automatic, "SAME_UPPER") == 0 ? total / 2 : total - total / 2;
            high[i] = total - low[i];
        }
    }
}

void emit_ints(const graph_node *n, const char *name, int count, int64_t otherwise, int64_t *out)
{
    const graph_attribute *a = graph_find_attribute(n, name);
    for (int i = 0; i < count; i++)
        out[i] = a != NULL && (size_t)i < a->count ? a->ints[i] : otherwise;
}

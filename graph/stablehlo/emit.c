#include "graph/stablehlo/emit.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/stablehlo/operators.h"

/* Constants up to this size are written into the text: shape arithmetic left over, scalars, small
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

static ssa type_of_value(const graph_value *v)
{
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
    return type_of_value(&e->graph->values[n->outputs[i]]);
}

/* Arguments are numbered %1 ... in program order, before the body's values. */
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

/* Arguments live in another number range than the body: their count is not known until the end. */
static ssa argument_value(const stablehlo_argument *a, int index)
{
    ssa v = ssa_of(a->dtype, a->rank, a->dims);
    v.number = STABLEHLO_ARGUMENT_NUMBER + index;
    return v;
}

ssa emit_weight(emitter *e, const tensor *constant, stablehlo_transform transform, int axis)
{
    stablehlo_program *p = e->program;
    for (int i = 0; i < p->argument_count; i++)
        if (p->arguments[i].input < 0 && p->arguments[i].constant->data == constant->data &&
            p->arguments[i].transform == transform && p->arguments[i].axis == axis &&
            tensor_same_shape(p->arguments[i].constant, constant))
            return argument_value(&p->arguments[i], i);
    stablehlo_argument a = {.input = -1,
                            .constant = constant,
                            .transform = transform,
                            .axis = axis,
                            .dtype = constant->dtype,
                            .rank = constant->rank};
    memcpy(a.dims, constant->dims, sizeof a.dims);
    if (transform == STABLEHLO_TO_BF16)
        a.dtype = DTYPE_BF16;
    if (transform == STABLEHLO_TO_S8)
        a.dtype = DTYPE_I8;
    if (transform == STABLEHLO_TO_S8_SCALES) {
        a.dtype = DTYPE_F32;
        a.rank = 1;
        a.dims[0] = constant->dims[axis];
    }
    return argument_value(&a, add_argument(e, a));
}

static ssa value_of(emitter *e, graph_value_index index)
{
    ssa *known = &e->values[index];
    if (known->number != 0)
        return *known;
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
    return value_of(e, n->inputs[i]);
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

int emit_axis(const graph_node *n, const char *name, int64_t otherwise, int rank)
{
    int64_t axis = graph_attribute_int(n, name, otherwise);
    return (int)(axis < 0 ? axis + rank : axis);
}

static status emit_node(emitter *e, const graph_node *n)
{
    emit_fn (*const families[])(graph_op) = {emit_find_elementwise, emit_find_shape,
                                             emit_find_dense, emit_find_reduce, emit_find_quantise};
    for (int i = 0; i < n->output_count; i++)
        if (n->outputs[i] != GRAPH_NO_VALUE && e->graph->values[n->outputs[i]].dtype == DTYPE_BYTES)
            return status_fail(STATUS_UNSUPPORTED, "devices take no strings");
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        emit_fn emit = families[i](n->op);
        if (emit != NULL)
            return emit(e, n);
    }
    return status_fail(STATUS_UNSUPPORTED,
                       "it has no StableHLO form here; the model runs on the CPU");
}

static void write_module(emitter *e)
{
    stablehlo_program *p = e->program;
    char *body = e->body;
    size_t body_bytes = e->body_bytes;
    e->body = NULL;
    e->body_bytes = e->body_capacity = 0;
    stablehlo_append(e, "module @penstock {\n  func.func public @main(");
    for (int i = 0; i < p->argument_count; i++) {
        ssa v = argument_value(&p->arguments[i], i);
        stablehlo_append(e, "%s%%%d: ", i ? ", " : "", v.number);
        stablehlo_append_type(e, &v);
    }
    stablehlo_append(e, ") -> (");
    for (int i = 0; i < e->graph->output_count; i++) {
        ssa v = type_of_value(&e->graph->values[e->graph->outputs[i]]);
        stablehlo_append(e, i ? ", " : "");
        stablehlo_append_type(e, &v);
    }
    stablehlo_append(e, ") {\n%.*s    return ", (int)body_bytes, body ? body : "");
    for (int i = 0; i < e->graph->output_count; i++)
        stablehlo_append(e, "%s%%%d", i ? ", " : "", e->values[e->graph->outputs[i]].number);
    stablehlo_append(e, " : ");
    for (int i = 0; i < e->graph->output_count; i++) {
        stablehlo_append(e, i ? ", " : "");
        stablehlo_append_type(e, &e->values[e->graph->outputs[i]]);
    }
    stablehlo_append(e, "\n  }\n}\n");
    free(body);
}

status graph_emit_stablehlo(const graph *g, stablehlo_precision precision, stablehlo_program *out)
{
    stablehlo_program program = {.output_count = g->output_count};
    emitter e = {.graph = g, .precision = precision, .program = &program};
    e.values = calloc((size_t)g->value_count + 1, sizeof *e.values);
    assert(e.values != NULL);
    status s = STATUS_OK;
    /* Every graph input is an argument, used or not: callers then need not know which are. */
    for (int i = 0; i < g->input_count; i++) {
        ssa type = type_of_value(&g->values[g->inputs[i]]);
        if (type.dtype == DTYPE_BYTES) {
            s = status_fail(STATUS_UNSUPPORTED, "input \"%s\": devices take no strings",
                            g->values[g->inputs[i]].name);
            goto done;
        }
        stablehlo_argument a = {.input = i, .dtype = type.dtype, .rank = type.rank};
        memcpy(a.dims, type.dims, sizeof a.dims);
        e.values[g->inputs[i]] = argument_value(&a, add_argument(&e, a));
    }
    for (int32_t i = 0; i < g->node_count; i++) {
        const graph_node *n = &g->nodes[i];
        s = emit_node(&e, n);
        if (s) {
            s = status_prefix(s, "node \"%s\" (%s)", n->name, graph_op_name(n->op));
            goto done;
        }
    }
    for (int i = 0; i < g->output_count; i++)
        value_of(&e, g->outputs[i]); /* an output may be a folded constant */
    write_module(&e);
    program.text = e.body;
    program.bytes = e.body_bytes;
    e.body = NULL;
    *out = program;
done:
    free(e.values);
    free(e.body);
    if (s)
        stablehlo_program_dispose(&program);
    return s;
}

void stablehlo_program_dispose(stablehlo_program *p)
{
    free(p->text);
    free(p->arguments);
    *p = (stablehlo_program){0};
}

/* --- argument data --- */

/* A 2-D weight seen as [channels][depth] with strides. */
static float weight_at(const tensor *w, int axis, int64_t channel, int64_t depth)
{
    int64_t index = axis == 1 ? depth * w->dims[1] + channel : channel * w->dims[1] + depth;
    return ((const float *)w->data)[index];
}

static float scale_of(const tensor *w, int axis, int64_t channel)
{
    float largest = 0;
    for (int64_t k = 0; k < w->dims[1 - axis]; k++)
        largest = fmaxf(largest, fabsf(weight_at(w, axis, channel, k)));
    return largest > 0 ? largest / 127.0f : 1.0f;
}

static void to_s8(const tensor *w, int axis, tensor *out)
{
    for (int64_t n = 0; n < w->dims[axis]; n++) {
        float inverse = 1.0f / scale_of(w, axis, n);
        for (int64_t k = 0; k < w->dims[1 - axis]; k++) {
            int64_t index = axis == 1 ? k * w->dims[1] + n : n * w->dims[1] + k;
            ((int8_t *)out->data)[index] = (int8_t)nearbyintf(weight_at(w, axis, n, k) * inverse);
        }
    }
}

status stablehlo_argument_data(const stablehlo_argument *argument, arena *a, tensor *out)
{
    const tensor *w = argument->constant;
    assert(argument->input < 0);
    if (argument->transform == STABLEHLO_AS_IS) {
        *out = *w;
        return STATUS_OK;
    }
    assert(w->dtype == DTYPE_F32);
    status s = tensor_allocate(out, a, argument->dtype, argument->rank, argument->dims);
    if (s)
        return s;
    if (argument->transform == STABLEHLO_TO_S8)
        to_s8(w, argument->axis, out);
    else if (argument->transform == STABLEHLO_TO_S8_SCALES)
        for (int64_t n = 0; n < w->dims[argument->axis]; n++)
            ((float *)out->data)[n] = scale_of(w, argument->axis, n);
    else
        for (int64_t i = 0, count = tensor_count(w); i < count; i++)
            ((uint16_t *)out->data)[i] = dtype_f32_to_bf16(((const float *)w->data)[i]);
    return STATUS_OK;
}

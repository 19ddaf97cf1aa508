#include "graph/quantise/widen.h"

#include <stdlib.h>

#include "graph/build.h"

typedef struct widening {
    const graph *g;
    graph *made;
    graph_value_index *same, *wide; /* by value of g: as it is, and as F32; GRAPH_NO_VALUE: not
                                       written yet */
    graph_widen_constant widen;
    void *context;
} widening;

static dtype type_of(const graph *g, graph_value_index v)
{
    return g->values[v].constant ? g->values[v].constant->dtype : g->values[v].dtype;
}

static bool is_half(const graph *g, graph_value_index v)
{
    return v != GRAPH_NO_VALUE && (type_of(g, v) == DTYPE_F16 || type_of(g, v) == DTYPE_BF16);
}

/* Operators that only move elements: they take what their operands are. */
static bool moves_only(graph_op op)
{
    switch (op) {
    case GRAPH_OP_CONCAT:
    case GRAPH_OP_SPLIT:
    case GRAPH_OP_SLICE:
    case GRAPH_OP_PAD:
    case GRAPH_OP_TRANSPOSE:
    case GRAPH_OP_RESHAPE:
    case GRAPH_OP_FLATTEN:
    case GRAPH_OP_SQUEEZE:
    case GRAPH_OP_UNSQUEEZE:
    case GRAPH_OP_EXPAND:
    case GRAPH_OP_IDENTITY:
        return true;
    default:
        return false;
    }
}

/* Operators that mean the same when all their halves are F32. Their F32 operands, such as the
 * scales of a Resize, stay. */
static bool is_generic(graph_op op)
{
    switch (op) {
    case GRAPH_OP_CONV:
    case GRAPH_OP_CONV_TRANSPOSE:
    case GRAPH_OP_MATMUL:
    case GRAPH_OP_GEMM:
    case GRAPH_OP_MAX_POOL:
    case GRAPH_OP_AVERAGE_POOL:
    case GRAPH_OP_GLOBAL_AVERAGE_POOL:
    case GRAPH_OP_RESIZE:
    case GRAPH_OP_UPSAMPLE:
    case GRAPH_OP_BATCH_NORMALIZATION:
    case GRAPH_OP_LAYER_NORMALIZATION:
    case GRAPH_OP_INSTANCE_NORMALIZATION:
    case GRAPH_OP_SOFTMAX:
    case GRAPH_OP_RELU:
    case GRAPH_OP_LEAKY_RELU:
    case GRAPH_OP_PRELU:
    case GRAPH_OP_SIGMOID:
    case GRAPH_OP_TANH:
    case GRAPH_OP_HARD_SWISH:
    case GRAPH_OP_HARD_SIGMOID:
    case GRAPH_OP_ELU:
    case GRAPH_OP_GELU:
    case GRAPH_OP_MISH:
    case GRAPH_OP_SOFTPLUS:
    case GRAPH_OP_CLIP:
    case GRAPH_OP_ERF:
    case GRAPH_OP_EXP:
    case GRAPH_OP_LOG:
    case GRAPH_OP_FLOOR:
    case GRAPH_OP_CEIL:
    case GRAPH_OP_ROUND:
    case GRAPH_OP_RECIPROCAL:
    case GRAPH_OP_THRESHOLDED_RELU:
    case GRAPH_OP_SELU:
    case GRAPH_OP_CELU:
    case GRAPH_OP_SOFTSIGN:
    case GRAPH_OP_SIN:
    case GRAPH_OP_COS:
    case GRAPH_OP_MAX:
    case GRAPH_OP_MIN:
    case GRAPH_OP_EQUAL:
    case GRAPH_OP_LESS:
    case GRAPH_OP_LESS_OR_EQUAL:
    case GRAPH_OP_GREATER:
    case GRAPH_OP_GREATER_OR_EQUAL:
    case GRAPH_OP_ARG_MAX:
    case GRAPH_OP_ARG_MIN:
    case GRAPH_OP_SQRT:
    case GRAPH_OP_ABS:
    case GRAPH_OP_NEG:
    case GRAPH_OP_ADD:
    case GRAPH_OP_SUB:
    case GRAPH_OP_MUL:
    case GRAPH_OP_DIV:
    case GRAPH_OP_POW:
    case GRAPH_OP_REDUCE_MEAN:
    case GRAPH_OP_REDUCE_SUM:
    case GRAPH_OP_REDUCE_MAX:
        return true;
    default:
        return moves_only(op);
    }
}

static void describe(widening *w, graph_value_index at, graph_value_index v, dtype type)
{
    graph_value *to = &w->made->values[at];
    to->dtype = type;
    to->has_dtype = true;
    to->shape = w->g->values[v].shape;
}

static graph_value_index cast_to(widening *w, graph_value_index from, graph_value_index v,
                                 dtype type)
{
    graph_value_index out = graph_cast(w->made, from, type);
    describe(w, out, v, type);
    return out;
}

/* `v` in its own type. */
static graph_value_index get_same(widening *w, graph_value_index v)
{
    if (v == GRAPH_NO_VALUE)
        return v;
    if (w->same[v] == GRAPH_NO_VALUE && w->g->values[v].constant)
        w->same[v] = graph_add_constant(w->made, NULL, w->g->values[v].constant);
    else if (w->same[v] == GRAPH_NO_VALUE)
        w->same[v] = cast_to(w, w->wide[v], v, type_of(w->g, v));
    return w->same[v];
}

/* A half as F32. */
static graph_value_index get_wide(widening *w, graph_value_index v)
{
    if (w->wide[v] != GRAPH_NO_VALUE)
        return w->wide[v];
    if (w->g->values[v].constant) {
        tensor t = *w->g->values[v].constant;
        const float *floats = w->widen(w->context, &t);
        if (floats == NULL)
            graph_lack_memory(w->made);
        t.dtype = DTYPE_F32;
        t.data = (void *)(uintptr_t)floats;
        w->wide[v] = graph_add_constant(w->made, NULL, &t);
    } else {
        w->wide[v] = cast_to(w, w->same[v], v, DTYPE_F32);
    }
    return w->wide[v];
}

static bool is_widening_cast(const widening *w, const graph_node *n)
{
    return n->op == GRAPH_OP_CAST && is_half(w->g, n->inputs[0]) &&
           type_of(w->g, n->outputs[0]) == DTYPE_F32;
}

/* Moves of halves that nothing has widened yet are cheaper as they are. */
static bool runs_wide(const widening *w, const graph_node *n)
{
    if (!is_generic(n->op))
        return false;
    if (!moves_only(n->op))
        return true;
    for (int i = 0; i < n->input_count; i++)
        if (is_half(w->g, n->inputs[i]) && w->wide[n->inputs[i]] != GRAPH_NO_VALUE)
            return true;
    return false;
}

static void write_node(widening *w, const graph_node *n, graph_value_index *operands)
{
    bool is_wide = runs_wide(w, n);
    graph_value_index *out = operands + n->input_count;
    if (is_widening_cast(w, n)) {
        w->same[n->outputs[0]] = get_wide(w, n->inputs[0]);
        return;
    }
    for (int i = 0; i < n->input_count; i++)
        operands[i] = is_wide && is_half(w->g, n->inputs[i]) ? get_wide(w, n->inputs[i])
                                                             : get_same(w, n->inputs[i]);
    for (int i = 0; i < n->output_count; i++) {
        graph_value_index v = n->outputs[i];
        out[i] = v == GRAPH_NO_VALUE ? v : graph_add_value(w->made, w->g->values[v].name);
        if (v == GRAPH_NO_VALUE)
            continue;
        bool is_widened = is_wide && is_half(w->g, v);
        describe(w, out[i], v, is_widened ? DTYPE_F32 : type_of(w->g, v));
        *(is_widened ? &w->wide[v] : &w->same[v]) = out[i];
    }
    graph_add_node_to(w->made, n->op, n->name, n->input_count, operands, n->output_count, out,
                      n->attribute_count, n->attributes);
}

static status write_all(widening *w)
{
    const graph *g = w->g;
    int most = 1;
    for (int32_t n = 0; n < g->node_count; n++) {
        int count = g->nodes[n].input_count + g->nodes[n].output_count;
        most = count > most ? count : most;
    }
    graph_value_index *operands = calloc((size_t)most, sizeof *operands);
    if (!operands)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to widen \"%s\"", g->name);
    for (int i = 0; i < g->input_count; i++)
        w->same[g->inputs[i]] = graph_add_input_like(w->made, &g->values[g->inputs[i]]);
    for (int32_t n = 0; n < g->node_count; n++)
        write_node(w, &g->nodes[n], operands);
    for (int i = 0; i < g->output_count; i++)
        graph_add_output(w->made, get_same(w, g->outputs[i]), g->values[g->outputs[i]].name);
    free(operands);
    return graph_check_memory(w->made);
}

/* Whether any node would be computed in F32. */
static bool has_halves(const graph *g)
{
    for (int32_t n = 0; n < g->node_count; n++)
        for (int i = 0; is_generic(g->nodes[n].op) && i < g->nodes[n].input_count; i++)
            if (is_half(g, g->nodes[n].inputs[i]))
                return true;
    return false;
}

status graph_widen_halves(const graph *g, graph_widen_constant widen, void *context, graph **out)
{
    widening w = {.g = g, .widen = widen, .context = context};
    *out = NULL;
    if (!has_halves(g))
        return STATUS_OK;
    size_t values = (size_t)g->value_count + 1;
    w.made = graph_create(g->name);
    w.same = malloc(values * sizeof w.same[0]);
    w.wide = malloc(values * sizeof w.wide[0]);
    status s = STATUS_OK;
    if (!w.made || !w.same || !w.wide)
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory to widen \"%s\"", g->name);
    for (size_t v = 0; !s && v < values; v++)
        w.same[v] = w.wide[v] = GRAPH_NO_VALUE;
    if (!s) {
        w.made->source = g->source;
        w.made->sequence_max = g->sequence_max;
        s = write_all(&w);
    }
    if (!s)
        *out = w.made;
    else
        graph_destroy(w.made);
    free(w.same);
    free(w.wide);
    return s;
}

#include "graph/encoder/match.h"

#include <stdlib.h>
#include <string.h>

#define TRACE_STEPS_MAX 48
#define TRACE_BYTES_MAX ((size_t)1 << 30) /* of the traced value; its indices take more */

static bool is_float_cast(const match *m, const graph_node *n)
{
    return n->op == GRAPH_OP_CAST && dtype_is_float(m->g->values[n->inputs[0]].dtype) &&
           dtype_is_float(m->g->values[n->outputs[0]].dtype);
}

static const graph_node *direct_producer(const match *m, graph_value_index v)
{
    if (v == GRAPH_NO_VALUE || m->g->values[v].producer < 0)
        return NULL;
    return &m->g->nodes[m->g->values[v].producer];
}

/* Whether `n` gathers rows of a float table by a computed index. */
static bool reads_table(const graph *g, const graph_node *n)
{
    if (n->op != GRAPH_OP_GATHER)
        return false;
    const tensor *table = g->values[n->inputs[0]].constant;
    return table != NULL && table->rank == 2 && dtype_is_float(table->dtype) &&
           g->values[n->inputs[1]].constant == NULL;
}

status match_open(match *m, const graph *g, const graph_budget *budget, graph_evaluate_fn evaluate)
{
    *m = (match){.g = g, .budget = budget, .evaluate = evaluate};
    m->is_hidden = calloc((size_t)g->value_count + 1, sizeof m->is_hidden[0]);
    if (m->is_hidden == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to match patterns in \"%s\"", g->name);
    for (int32_t i = 0; i < g->node_count; i++) {
        const graph_node *n = &g->nodes[i];
        bool is_hidden = reads_table(g, n);
        for (int k = 0; k < n->input_count; k++)
            is_hidden |= n->inputs[k] != GRAPH_NO_VALUE && m->is_hidden[n->inputs[k]];
        for (int k = 0; k < n->output_count; k++)
            if (n->outputs[k] != GRAPH_NO_VALUE)
                m->is_hidden[n->outputs[k]] = is_hidden;
    }
    return STATUS_OK;
}

void match_close(match *m)
{
    free(m->is_hidden);
    m->is_hidden = NULL;
}

graph_value_index match_skip_casts(const match *m, graph_value_index v)
{
    const graph_node *n;
    while ((n = direct_producer(m, v)) != NULL &&
           (n->op == GRAPH_OP_IDENTITY || is_float_cast(m, n)))
        v = n->inputs[0];
    return v;
}

graph_value_index match_skip_views(const match *m, graph_value_index v)
{
    for (;;) {
        v = match_skip_casts(m, v);
        const graph_node *n = direct_producer(m, v);
        if (n == NULL || (n->op != GRAPH_OP_RESHAPE && n->op != GRAPH_OP_FLATTEN &&
                          n->op != GRAPH_OP_SQUEEZE && n->op != GRAPH_OP_UNSQUEEZE))
            return v;
        if (match_dim(m, v, -1) != match_dim(m, n->inputs[0], -1))
            return v;
        v = n->inputs[0];
    }
}

const graph_node *match_producer(const match *m, graph_value_index v)
{
    return direct_producer(m, match_skip_casts(m, v));
}

const tensor *match_constant(const match *m, graph_value_index v)
{
    return v == GRAPH_NO_VALUE ? NULL : m->g->values[match_skip_casts(m, v)].constant;
}

bool match_scalar(const match *m, graph_value_index v, double *out)
{
    const tensor *t = match_constant(m, v);
    if (t == NULL || tensor_count(t) != 1 || t->dtype == DTYPE_BYTES)
        return false;
    *out = tensor_get_number(t, 0);
    return true;
}

bool match_one_constant(const match *m, const graph_node *n, const tensor **constant,
                        graph_value_index *other)
{
    if (n->input_count != 2)
        return false;
    for (int side = 0; side < 2; side++) {
        const tensor *t = match_constant(m, n->inputs[side]);
        if (t == NULL)
            continue;
        *constant = t;
        *other = n->inputs[1 - side];
        return true;
    }
    return false;
}

int64_t match_dim(const match *m, graph_value_index v, int axis)
{
    const graph_shape *s = &m->g->values[v].shape;
    if (m->g->values[v].constant != NULL) {
        const tensor *t = m->g->values[v].constant;
        axis = axis < 0 ? axis + t->rank : axis;
        return axis >= 0 && axis < t->rank ? t->dims[axis] : -1;
    }
    axis = axis < 0 ? axis + s->rank : axis;
    return axis >= 0 && axis < s->rank ? s->dims[axis].constant : -1;
}

int64_t match_count(const match *m, graph_value_index v)
{
    if (m->g->values[v].constant != NULL)
        return tensor_count(m->g->values[v].constant);
    int64_t count = 1;
    for (int i = 0; i < m->g->values[v].shape.rank; i++)
        count *= m->g->values[v].shape.dims[i].constant;
    return count;
}

static bool is_among(graph_value_index v, int count, const graph_value_index *values)
{
    for (int i = 0; i < count; i++)
        if (values[i] == v)
            return true;
    return false;
}

uint32_t match_cone(const match *m, graph_value_index target, int cut_count,
                    const graph_value_index *cut, bool *needed)
{
    const graph *g = m->g;
    memset(needed, 0, (size_t)g->value_count * sizeof needed[0]);
    needed[target] = true;
    for (int32_t i = g->values[target].producer; i >= 0; i--) {
        const graph_node *n = &g->nodes[i];
        bool is_needed = false;
        for (int k = 0; k < n->output_count; k++)
            is_needed |= n->outputs[k] != GRAPH_NO_VALUE && needed[n->outputs[k]] &&
                         !is_among(n->outputs[k], cut_count, cut);
        for (int k = 0; is_needed && k < n->input_count; k++)
            if (n->inputs[k] != GRAPH_NO_VALUE)
                needed[n->inputs[k]] = true;
    }
    uint32_t inputs = 0;
    for (int i = 0; i < g->input_count; i++)
        if (needed[g->inputs[i]] && !is_among(g->inputs[i], cut_count, cut))
            inputs |= 1u << (i < 31 ? i : 31);
    return inputs;
}

static void shape_of(const match *m, graph_value_index v, tensor *t)
{
    const graph_value *value = &m->g->values[v];
    *t = (tensor){.dtype = value->dtype, .rank = value->shape.rank};
    for (int i = 0; i < t->rank; i++)
        t->dims[i] = value->shape.dims[i].constant;
}

/* Allocates the outputs, if the budget allows it, and evaluates the node. */
static status evaluate(const match *m, arena *memory, const graph_node *n, const tensor *const *in,
                       tensor *out, graph_spent *spent)
{
    status s = graph_cost_charge(m->budget, n, in, out, spent);
    for (int k = 0; s == STATUS_OK && k < n->output_count; k++)
        if (n->outputs[k] != GRAPH_NO_VALUE) {
            tensor shape = out[k];
            s = tensor_allocate(&out[k], memory, shape.dtype, shape.rank, shape.dims);
        }
    return s ? s : m->evaluate(n, in, out, m->budget != NULL ? m->budget->cancel : NULL);
}

/* Evaluates one node on known tensors; its outputs are allocated in `memory`. */
static status run_node(const match *m, arena *memory, const graph_node *n, tensor *values,
                       graph_spent *spent)
{
    const tensor **in = arena_allocate_zeroed(memory, (size_t)n->input_count + 1, sizeof in[0]);
    tensor *out = arena_allocate_zeroed(memory, (size_t)n->output_count + 1, sizeof out[0]);
    if (in == NULL || out == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for an experiment");
    for (int k = 0; k < n->input_count; k++)
        in[k] = n->inputs[k] == GRAPH_NO_VALUE ? NULL : &values[n->inputs[k]];
    for (int k = 0; k < n->output_count; k++)
        if (n->outputs[k] != GRAPH_NO_VALUE)
            shape_of(m, n->outputs[k], &out[k]);
    status s = evaluate(m, memory, n, in, out, spent);
    if (s)
        return status_prefix(s, "node \"%s\" (%s)", n->name, graph_op_title(n->op));
    for (int k = 0; k < n->output_count; k++)
        if (n->outputs[k] != GRAPH_NO_VALUE)
            values[n->outputs[k]] = out[k];
    return STATUS_OK;
}

status match_experiment(const match *m, arena *memory, int bound_count,
                        const graph_value_index *bound, const tensor *given,
                        graph_value_index target, tensor *out)
{
    const graph *g = m->g;
    size_t count = (size_t)g->value_count + 1;
    graph_spent spent = {0};
    bool *needed = arena_allocate_zeroed(memory, count, sizeof needed[0]);
    tensor *values = arena_allocate_zeroed(memory, count, sizeof values[0]);
    if (needed == NULL || values == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for an experiment");
    match_cone(m, target, bound_count, bound, needed);
    for (int i = 0; i < g->input_count; i++)
        if (needed[g->inputs[i]] && !is_among(g->inputs[i], bound_count, bound))
            return status_fail(STATUS_UNSUPPORTED, "it depends on input \"%s\"",
                               g->values[g->inputs[i]].name);
    for (int32_t v = 0; v < g->value_count; v++)
        if (needed[v] && g->values[v].constant != NULL)
            values[v] = *g->values[v].constant;
    for (int i = 0; i < bound_count; i++)
        values[bound[i]] = given[i];
    for (int32_t i = 0; i <= g->values[target].producer; i++) {
        const graph_node *n = &g->nodes[i];
        bool is_needed = false;
        for (int k = 0; k < n->output_count; k++)
            is_needed |= n->outputs[k] != GRAPH_NO_VALUE && needed[n->outputs[k]] &&
                         !is_among(n->outputs[k], bound_count, bound);
        for (int k = 0; is_needed && k < n->input_count; k++)
            is_needed = n->inputs[k] == GRAPH_NO_VALUE || needed[n->inputs[k]];
        status s = is_needed ? run_node(m, memory, n, values, &spent) : STATUS_OK;
        if (s)
            return s;
    }
    *out = values[target];
    return STATUS_OK;
}

static bool is_move(const match *m, const graph_node *n)
{
    switch (n->op) {
    case GRAPH_OP_RESHAPE:
    case GRAPH_OP_FLATTEN:
    case GRAPH_OP_SQUEEZE:
    case GRAPH_OP_UNSQUEEZE:
    case GRAPH_OP_TRANSPOSE:
    case GRAPH_OP_SPLIT:
    case GRAPH_OP_SLICE:
    case GRAPH_OP_GATHER:
        break;
    default:
        return false;
    }
    if (m->g->values[n->inputs[0]].constant != NULL)
        return false;
    for (int k = 1; k < n->input_count; k++)
        if (n->inputs[k] != GRAPH_NO_VALUE && m->g->values[n->inputs[k]].constant == NULL)
            return false;
    return true;
}

/* The value that `n` scales, or GRAPH_NO_VALUE. */
static graph_value_index scaled_value(const match *m, const graph_node *n, double *factor)
{
    double scalar;
    if (n->op == GRAPH_OP_DIV && match_scalar(m, n->inputs[1], &scalar) && scalar != 0) {
        *factor = 1 / scalar;
        return n->inputs[0];
    }
    for (int side = 0; n->op == GRAPH_OP_MUL && side < 2; side++)
        if (match_scalar(m, n->inputs[side], factor))
            return n->inputs[1 - side];
    return GRAPH_NO_VALUE;
}

/* Applies one move to element indices instead of elements. */
static status move_indices(const match *m, arena *memory, const graph_node *n, graph_value_index to,
                           tensor *indices, graph_spent *spent)
{
    tensor seen;
    const tensor **in = arena_allocate_zeroed(memory, (size_t)n->input_count + 1, sizeof in[0]);
    tensor *out = arena_allocate_zeroed(memory, (size_t)n->output_count + 1, sizeof out[0]);
    if (in == NULL || out == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for an experiment");
    /* Scaling may have added leading dims of 1. */
    shape_of(m, n->inputs[0], &seen);
    seen.dtype = DTYPE_I64;
    seen.data = indices->data;
    in[0] = &seen;
    for (int k = 1; k < n->input_count; k++)
        in[k] = n->inputs[k] == GRAPH_NO_VALUE ? NULL : m->g->values[n->inputs[k]].constant;
    for (int k = 0; k < n->output_count; k++) {
        if (n->outputs[k] == GRAPH_NO_VALUE)
            continue;
        shape_of(m, n->outputs[k], &out[k]);
        out[k].dtype = DTYPE_I64;
    }
    status s = evaluate(m, memory, n, in, out, spent);
    if (s)
        return s;
    for (int k = 0; k < n->output_count; k++)
        if (n->outputs[k] == to)
            *indices = out[k];
    return STATUS_OK;
}

status match_trace_back(const match *m, arena *memory, graph_value_index v, match_trace *out)
{
    const graph_node *moves[TRACE_STEPS_MAX];
    graph_value_index made[TRACE_STEPS_MAX];
    int count = 0;
    out->scale = 1;
    while (count < TRACE_STEPS_MAX) {
        double factor;
        v = match_skip_casts(m, v);
        const graph_node *n = direct_producer(m, v);
        graph_value_index scaled = n == NULL ? GRAPH_NO_VALUE : scaled_value(m, n, &factor);
        if (scaled != GRAPH_NO_VALUE && match_count(m, scaled) == match_count(m, v)) {
            out->scale *= factor;
            v = scaled;
        } else if (n != NULL && is_move(m, n)) {
            moves[count] = n;
            made[count++] = v;
            v = n->inputs[0];
        } else {
            break;
        }
    }
    tensor indices, shape;
    graph_spent spent = {0};
    shape_of(m, v, &shape);
    if (m->g->values[v].constant != NULL)
        shape = *m->g->values[v].constant;
    if (tensor_bytes(&shape) > TRACE_BYTES_MAX)
        return status_fail(STATUS_UNSUPPORTED, "\"%s\" is too large to trace its elements",
                           m->g->values[v].name);
    status s = tensor_allocate(&indices, memory, DTYPE_I64, shape.rank, shape.dims);
    if (s)
        return s;
    for (int64_t i = 0; i < tensor_count(&indices); i++)
        ((int64_t *)indices.data)[i] = i;
    while (count-- > 0)
        if ((s = move_indices(m, memory, moves[count], made[count], &indices, &spent)))
            return s;
    out->base = v;
    out->map = indices.data;
    out->count = tensor_count(&indices);
    return STATUS_OK;
}

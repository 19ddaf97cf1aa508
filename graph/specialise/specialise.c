#include "graph/specialise/specialise.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "graph/shapes/infer.h"
#include "graph/shapes/rules.h"
#include "graph/specialise/internal.h"

/* What becomes of a node of the source graph. */
typedef enum node_state { STATE_UNUSED, STATE_FOLDED, STATE_KEPT } node_state;

/* The state of one specialisation. Arrays are indexed by the values and nodes of the source. */
typedef struct specialiser {
    const graph *source;
    graph *made;
    specialise_folder folder;
    tensor *values;           /* data is non-NULL where known */
    graph_value_index *alias; /* the value that holds the same tensor, or itself */
    int32_t *deferred;        /* node that can be folded, but is not worth it so far; or -1 */
    graph_value_index *moved; /* index in `made`; GRAPH_NO_VALUE: not there yet */
    uint8_t *states;          /* by node */
    const tensor **in;
    tensor *out; /* as wide as the widest node */
    int widest;
    bool *needed; /* by value */
    bool
        *invalid; /* by value: its node does not fit its inputs; allowed while no output needs it */
    bool has_branches;
    bool is_partial; /* nodes whose shapes depend on values stay, their outputs without a shape */
} specialiser;

/* Data of a known tensor without elements: not NULL, and never read. */
static int64_t nothing;

static status open_specialiser(specialiser *w)
{
    const graph *g = w->source;
    w->widest = 1;
    for (int32_t n = 0; n < g->node_count; n++) {
        const graph_node *node = &g->nodes[n];
        w->widest = node->input_count > w->widest ? node->input_count : w->widest;
        w->widest = node->output_count > w->widest ? node->output_count : w->widest;
        w->has_branches |= node->op == GRAPH_OP_IF;
    }
    size_t values = (size_t)g->value_count + 1;
    w->values = calloc(values, sizeof w->values[0]);
    w->alias = calloc(values, sizeof w->alias[0]);
    w->deferred = malloc(values * sizeof w->deferred[0]);
    w->moved = malloc(values * sizeof w->moved[0]);
    w->needed = calloc(values, sizeof w->needed[0]);
    w->invalid = calloc(values, sizeof w->invalid[0]);
    w->states = calloc((size_t)g->node_count + 1, sizeof w->states[0]);
    w->in = calloc((size_t)w->widest, sizeof w->in[0]);
    w->out = calloc((size_t)w->widest, sizeof w->out[0]);
    w->made = graph_create(g->name);
    if (!w->values || !w->alias || !w->deferred || !w->moved || !w->needed || !w->invalid ||
        !w->states || !w->in || !w->out || !w->made)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to specialise \"%s\"", g->name);
    for (int32_t v = 0; v < g->value_count; v++) {
        w->alias[v] = v;
        w->deferred[v] = -1;
        w->moved[v] = GRAPH_NO_VALUE;
    }
    w->made->source = g->source;
    return STATUS_OK;
}

static void close_specialiser(specialiser *w)
{
    free(w->values);
    free(w->alias);
    free(w->deferred);
    free(w->moved);
    free(w->needed);
    free(w->invalid);
    free(w->states);
    free(w->in);
    free(w->out);
    graph_destroy(w->made);
}

/* Marks what the outputs need, from the last node to the first; through aliases if `resolve`. */
static void mark_needed(specialiser *w, bool resolve)
{
    const graph *g = w->source;
    memset(w->needed, 0, (size_t)g->value_count * sizeof w->needed[0]);
    for (int i = 0; i < g->output_count; i++)
        w->needed[resolve ? w->alias[g->outputs[i]] : g->outputs[i]] = true;
    for (int32_t n = g->node_count - 1; n >= 0; n--) {
        const graph_node *node = &g->nodes[n];
        if (w->states[n] == STATE_FOLDED)
            continue;
        bool is_needed = false;
        for (int i = 0; i < node->output_count; i++)
            is_needed |= node->outputs[i] != GRAPH_NO_VALUE && w->needed[node->outputs[i]];
        w->states[n] = is_needed ? STATE_KEPT : STATE_UNUSED;
        for (int i = 0; is_needed && i < node->input_count; i++)
            if (node->inputs[i] != GRAPH_NO_VALUE)
                w->needed[resolve ? w->alias[node->inputs[i]] : node->inputs[i]] = true;
    }
}

static status place_inputs(specialiser *w, const graph_binding *binding)
{
    const graph *g = w->source;
    for (int32_t v = 0; v < g->value_count; v++) {
        const tensor *constant = g->values[v].constant;
        if (constant == NULL)
            continue;
        w->values[v] = *constant;
        if (w->values[v].data == NULL)
            w->values[v].data = &nothing;
    }
    for (int i = 0; i < g->input_count; i++) {
        graph_value_index v = g->inputs[i];
        const tensor *given = &binding->inputs[i];
        dtype type = g->values[v].has_dtype ? g->values[v].dtype : given->dtype;
        status s = infer_set(&w->values[v], type, given->rank, given->dims);
        if (s)
            return status_prefix(s, "input \"%s\"", g->values[v].name);
        if (g->values[v].shape.rank >= 0 && g->values[v].shape.rank != given->rank)
            return status_fail(STATUS_INVALID_ARGUMENT, "input \"%s\" of rank %d is bound to %s",
                               g->values[v].name, g->values[v].shape.rank, infer_text(given));
        if (given->data == NULL)
            continue;
        if (given->dtype != type)
            return status_fail(STATUS_INVALID_ARGUMENT, "input \"%s\" of type %s is bound to %s",
                               g->values[v].name, dtype_name(type), infer_text(given));
        if (w->is_partial) { /* its constants are borrowed */
            w->values[v].data = given->data;
            continue;
        }
        if ((s = tensor_allocate(&w->values[v], &w->made->memory, type, given->rank, given->dims)))
            return s;
        memcpy(w->values[v].data, given->data, tensor_bytes(given));
    }
    return STATUS_OK;
}

/* A graph input that value `v` is computed from: the first one found. */
static graph_value_index find_origin(const specialiser *w, graph_value_index v)
{
    const graph *g = w->source;
    for (int32_t steps = 0; steps <= g->node_count; steps++) {
        int32_t n = g->values[v].producer;
        if (n < 0)
            return v;
        graph_value_index next = GRAPH_NO_VALUE;
        for (int i = 0; i < g->nodes[n].input_count && next == GRAPH_NO_VALUE; i++) {
            graph_value_index x = g->nodes[n].inputs[i];
            if (x != GRAPH_NO_VALUE && w->values[x].data == NULL)
                next = x;
        }
        if (next == GRAPH_NO_VALUE)
            return v;
        v = next;
    }
    return v;
}

static status explain_unknown(const specialiser *w, const graph_node *node, status s)
{
    if (s != STATUS_UNSUPPORTED)
        return s;
    uint32_t mask = specialise_shape_inputs(node->op);
    for (int i = 0; i < node->input_count && i < 32; i++) {
        graph_value_index v = node->inputs[i];
        if (!(mask >> i & 1) || v == GRAPH_NO_VALUE || w->values[v].data != NULL)
            continue;
        graph_value_index origin = find_origin(w, v);
        const char *name = w->source->values[origin].name;
        if (w->source->values[origin].producer >= 0)
            return s;
        char text[STATUS_MESSAGE_BYTES_MAX];
        strcpy(text, status_message());
        return status_fail(s, "%.700s; bind input \"%.200s\"", text, name);
    }
    return s;
}

static bool all_known(const specialiser *w, const graph_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] != GRAPH_NO_VALUE && w->values[node->inputs[i]].data == NULL)
            return false;
    return true;
}

/* Records the data of evaluated outputs. */
static void set_known(specialiser *w, const graph_node *node, const tensor *outputs)
{
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == GRAPH_NO_VALUE)
            continue;
        w->values[node->outputs[i]] = outputs[i];
        w->deferred[node->outputs[i]] = -1;
    }
}

/* Folds deferred nodes now that a shape depends on their value. */
static status demand(specialiser *w, graph_value_index v)
{
    status s;
    if (v != GRAPH_NO_VALUE && w->alias[v] != v) {
        if ((s = demand(w, w->alias[v])))
            return s;
        w->values[v].data = w->values[w->alias[v]].data;
        return STATUS_OK;
    }
    int32_t n = v == GRAPH_NO_VALUE ? -1 : w->deferred[v];
    if (n < 0)
        return STATUS_OK;
    const graph_node *node = &w->source->nodes[n];
    /* Inputs of a deferred node may be deferred as well: recursion is as deep as their chain. */
    for (int i = 0; i < node->input_count; i++)
        if ((s = demand(w, node->inputs[i])))
            return s;
    const tensor **in = calloc((size_t)node->input_count + 1, sizeof in[0]);
    tensor *out = calloc((size_t)node->output_count + 1, sizeof out[0]);
    if (in == NULL || out == NULL) {
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory to fold \"%s\"", node->name);
        goto done;
    }
    specialise_gather(node, w->values, in);
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != GRAPH_NO_VALUE)
            out[i] = w->values[node->outputs[i]];
    if ((s = specialise_evaluate(&w->folder, node, in, out)))
        goto done;
    set_known(w, node, out);
    w->states[n] = STATE_FOLDED;
done:
    free(in);
    free(out);
    return s;
}

/* Whether every input is known or deferred: then the outputs can be deferred as well. */
static bool is_deferrable(const specialiser *w, const graph_node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        graph_value_index v = node->inputs[i];
        if (v != GRAPH_NO_VALUE && w->values[v].data == NULL && w->deferred[v] < 0)
            return false;
    }
    return true;
}

/* Replaces the outputs of an If by those of the branch that its condition selects; nothing needs
 * the other branch any more. */
static status select_branch(specialiser *w, int32_t n)
{
    const graph_node *node = &w->source->nodes[n];
    graph_value_index condition = node->inputs[0];
    status s = demand(w, condition);
    if (s)
        return s;
    const tensor *t = &w->values[condition];
    if (t->data == NULL)
        return status_fail(STATUS_UNSUPPORTED,
                           "node \"%s\" (If): its condition \"%s\" depends on the values of a "
                           "request; supported: conditions on constants and shapes",
                           node->name, w->source->values[condition].name);
    if (t->dtype != DTYPE_BOOL || tensor_count(t) != 1)
        return status_fail(STATUS_INVALID_ARGUMENT, "node \"%s\": If: its condition is %s",
                           node->name, infer_text(t));
    int first = *(const bool *)t->data ? 1 : 1 + node->output_count;
    for (int i = 0; i < node->output_count; i++) {
        graph_value_index v = node->outputs[i], from = node->inputs[first + i];
        if (v == GRAPH_NO_VALUE)
            continue;
        w->values[v] = w->values[from];
        w->alias[v] = w->alias[from];
        w->deferred[v] = w->deferred[from];
        w->invalid[v] = w->invalid[from];
    }
    w->states[n] = STATE_FOLDED;
    return STATUS_OK;
}

static status visit(specialiser *w, int32_t n)
{
    if (w->source->nodes[n].op == GRAPH_OP_IF)
        return select_branch(w, n);
    const graph_node *node = &w->source->nodes[n];
    uint32_t mask = specialise_shape_inputs(node->op);
    status s;
    for (int i = 0; mask >> i != 0 && i < node->input_count; i++)
        if (mask >> i & 1 && (s = demand(w, node->inputs[i])))
            return s;
    specialise_gather(node, w->values, w->in);
    memset(w->out, 0, (size_t)node->output_count * sizeof w->out[0]);
    if ((s = graph_infer_node(node, w->in, w->out)))
        return explain_unknown(w, node, s);
    bool needs_no_value = node->op == GRAPH_OP_SHAPE || node->op == GRAPH_OP_SIZE;
    bool is_view = node->output_count == 1 && specialise_is_view(node, w->in, w->out);
    bool is_foldable = needs_no_value || all_known(w, node);
    bool is_worth_folding = is_view || needs_no_value ||
                            (specialise_is_worth_folding(node, w->in, w->out) &&
                             !specialise_is_transposed_matrix(node, w->in));
    if (is_foldable && is_worth_folding) {
        s = specialise_evaluate(&w->folder, node, w->in, w->out);
        if (s == STATUS_OK) {
            set_known(w, node, w->out);
            w->states[n] = STATE_FOLDED;
            return STATUS_OK;
        }
        if (s != STATUS_UNSUPPORTED)
            return status_prefix(s, "folding node \"%s\"", node->name);
        is_foldable = false; /* the evaluator does not support it; a device may */
    } else {
        is_foldable = is_foldable || is_deferrable(w, node);
    }
    for (int i = 0; i < node->output_count; i++) {
        graph_value_index v = node->outputs[i];
        if (v == GRAPH_NO_VALUE)
            continue;
        w->out[i].data = tensor_count(&w->out[i]) == 0 ? &nothing : NULL;
        w->values[v] = w->out[i];
        w->deferred[v] = is_foldable ? n : -1;
        if (is_view && tensor_same_shape(w->in[0], &w->out[i])) {
            w->alias[v] = w->alias[node->inputs[0]];
            w->deferred[v] = w->deferred[node->inputs[0]];
            w->states[n] = STATE_FOLDED;
        }
    }
    return STATUS_OK;
}

static bool reads_invalid(const specialiser *w, const graph_node *node)
{
    int count = node->op == GRAPH_OP_IF ? 1 : node->input_count;
    for (int i = 0; i < count; i++)
        if (node->inputs[i] != GRAPH_NO_VALUE && w->invalid[node->inputs[i]])
            return true;
    return false;
}

static bool is_invalid(const specialiser *w, const graph_node *node)
{
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != GRAPH_NO_VALUE && w->invalid[node->outputs[i]])
            return true;
    return false;
}

/* Fails when an output needs a node that does not fit its inputs. An If with an unknown condition
 * is reported first: its branches are needed only because of it. */
static status reject_invalid(specialiser *w)
{
    const graph *g = w->source;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t n = 0; n < g->node_count; n++) {
            const graph_node *node = &g->nodes[n];
            if (w->states[n] != STATE_KEPT || !is_invalid(w, node) || reads_invalid(w, node) ||
                (pass == 0 && node->op != GRAPH_OP_IF))
                continue;
            status s = visit(w, n); /* again, for its message */
            return s ? s
                     : status_fail(STATUS_INTERNAL, "node \"%s\" does not fit its inputs",
                                   node->name);
        }
    }
    return STATUS_OK;
}

/* The shapes of an If whose condition is not known: those that both branches have. */
static void join_branches(specialiser *w, const graph_node *node)
{
    for (int i = 0; i < node->output_count; i++) {
        graph_value_index v = node->outputs[i], a = node->inputs[1 + i],
                          b = node->inputs[1 + node->output_count + i];
        if (v == GRAPH_NO_VALUE)
            continue;
        w->invalid[v] = w->invalid[a] || w->invalid[b] ||
                        w->values[a].dtype != w->values[b].dtype ||
                        !tensor_same_shape(&w->values[a], &w->values[b]);
        if (w->invalid[v])
            continue;
        w->values[v] = w->values[a];
        w->values[v].data = NULL;
    }
}

/* Visits every node. In a graph with an If, a node may fit its inputs only where its branch is
 * selected (Squeeze of a dim that is 1 there); it fails at the end, if something still needs it. */
static status visit_all(specialiser *w)
{
    const graph *g = w->source;
    bool may_stay = w->has_branches || w->is_partial;
    for (int32_t n = 0; n < g->node_count; n++) {
        const graph_node *node = &g->nodes[n];
        if (w->states[n] == STATE_UNUSED)
            continue;
        status s = STATUS_OK;
        bool is_cut = may_stay && reads_invalid(w, node);
        bool is_fatal = !is_cut && (s = visit(w, n)) &&
                        (!may_stay || s == STATUS_OUT_OF_MEMORY || cancel_is_end(s));
        if (is_fatal)
            return s;
        if ((is_cut || s) && w->is_partial && node->op == GRAPH_OP_IF) {
            join_branches(w, node);
            continue;
        }
        for (int i = 0; (is_cut || s) && i < node->output_count; i++)
            if (node->outputs[i] != GRAPH_NO_VALUE)
                w->invalid[node->outputs[i]] = true;
    }
    /* Folding, aliases and unselected branches leave nodes that nothing needs. */
    mark_needed(w, true);
    return w->has_branches && !w->is_partial ? reject_invalid(w) : STATUS_OK;
}

static void describe(graph *made, graph_value_index at, const tensor *t)
{
    graph_value *v = &made->values[at];
    v->dtype = t->dtype;
    v->has_dtype = true;
    v->shape.rank = t->rank;
    for (int i = 0; i < t->rank; i++)
        v->shape.dims[i] = graph_dim_constant(t->dims[i]);
}

/* The value in `made` for a value of the source; constants are added when first needed. */
static graph_value_index move_value(specialiser *w, graph_value_index v)
{
    if (v == GRAPH_NO_VALUE)
        return v;
    v = w->alias[v];
    if (w->moved[v] == GRAPH_NO_VALUE) {
        assert(w->values[v].data != NULL);
        w->moved[v] = graph_add_constant(w->made, w->source->values[v].name, &w->values[v]);
    }
    return w->moved[v];
}

static void emit_inputs(specialiser *w)
{
    const graph *g = w->source;
    for (int i = 0; i < g->input_count; i++) {
        graph_value_index v = g->inputs[i];
        graph_dim dims[TENSOR_RANK_MAX];
        const tensor *t = &w->values[v];
        for (int d = 0; d < t->rank; d++)
            dims[d] = graph_dim_constant(t->dims[d]);
        w->moved[v] = graph_add_input(w->made, g->values[v].name, t->dtype, t->rank, dims);
        if (t->data == NULL)
            continue;
        tensor *bound = arena_allocate(&w->made->memory, sizeof *bound);
        if (bound == NULL) {
            graph_lack_memory(w->made);
            return;
        }
        *bound = *t;
        w->made->values[w->moved[v]].constant = bound;
    }
}

static void emit_node(specialiser *w, const graph_node *node, graph_value_index *inputs,
                      graph_value_index *outputs)
{
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = move_value(w, node->inputs[i]);
    for (int i = 0; i < node->output_count; i++) {
        graph_value_index v = node->outputs[i];
        outputs[i] = GRAPH_NO_VALUE;
        /* An output that nothing reads is not computed. */
        if (v == GRAPH_NO_VALUE || !w->needed[v])
            continue;
        outputs[i] = w->moved[v] = graph_add_value(w->made, w->source->values[v].name);
        if (!w->invalid[v])
            describe(w->made, outputs[i], &w->values[v]);
    }
    graph_add_node_to(w->made, node->op, node->name, node->input_count, inputs, node->output_count,
                      outputs, node->attribute_count, node->attributes);
}

static status emit(specialiser *w)
{
    const graph *g = w->source;
    graph_value_index *places = calloc(2 * (size_t)w->widest, sizeof places[0]);
    if (places == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to specialise \"%s\"", g->name);
    emit_inputs(w);
    for (int32_t n = 0; n < g->node_count; n++)
        if (w->states[n] == STATE_KEPT)
            emit_node(w, &g->nodes[n], places, places + w->widest);
    for (int i = 0; i < g->output_count; i++)
        graph_add_output(w->made, move_value(w, g->outputs[i]), g->values[g->outputs[i]].name);
    free(places);
    return graph_check_memory(w->made);
}

/* Gives every value that is needed its shape, with the inputs as `binding` says. */
static status visit_bound(specialiser *w, const graph_binding *binding, graph_evaluate_fn evaluate)
{
    specialise_open_folder(&w->folder, w->source, binding->budget, evaluate, &w->made->memory);
    status s = cancel_check(w->folder.budget.cancel);
    if (!s)
        s = place_inputs(w, binding);
    if (s)
        return s;
    mark_needed(w, false);
    return visit_all(w);
}

static status make(specialiser *w, const graph_binding *binding, graph_evaluate_fn evaluate,
                   graph **out)
{
    assert(w->source != NULL && binding != NULL && evaluate != NULL);
    status s = open_specialiser(w);
    if (s)
        goto fail;
    if ((s = visit_bound(w, binding, evaluate)))
        goto fail;
    if ((s = emit(w)))
        goto fail;
    *out = w->made;
    w->made = NULL;
fail:
    close_specialiser(w);
    return s;
}

status graph_specialise(const graph *source, const graph_binding *binding,
                        graph_evaluate_fn evaluate, graph **out)
{
    return make(&(specialiser){.source = source}, binding, evaluate, out);
}

status graph_specialise_partly(const graph *source, const graph_binding *binding,
                               graph_evaluate_fn evaluate, graph **out)
{
    return make(&(specialiser){.source = source, .is_partial = true}, binding, evaluate, out);
}

/* The values that some run of the specialiser has given a shape. */
static void take_values(specialiser *w, graph_trace *out)
{
    const graph *g = w->source;
    for (int32_t v = 0; v < g->value_count; v++)
        if (w->invalid[v])
            w->values[v].rank = -1;
    *out = (graph_trace){.values = w->values, .owner = w->made};
    w->values = NULL;
    w->made = NULL;
}

status graph_trace_values(const graph *source, const graph_binding *binding,
                          graph_evaluate_fn evaluate, graph_trace *out)
{
    assert(source != NULL && binding != NULL && evaluate != NULL);
    specialiser w = {.source = source};
    status s = open_specialiser(&w);
    if (s)
        goto fail;
    for (int32_t v = 0; v < source->value_count; v++)
        w.values[v].rank = -1;
    if ((s = visit_bound(&w, binding, evaluate)))
        goto fail;
    take_values(&w, out);
fail:
    close_specialiser(&w);
    return s;
}

void graph_trace_dispose(graph_trace *t)
{
    free(t->values);
    graph_destroy(t->owner);
    *t = (graph_trace){0};
}

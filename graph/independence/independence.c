#include "graph/independence/independence.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/independence/rules.h"

static const char reason_no_rule[] = "has no rule that says what it does with rows";
static const char reason_input[] = "an input has no axis of its own for rows";
static const char reason_output[] = "an output has no axis of its own for rows";
static const char reason_empty[] = "makes tensors without elements";
static const char reason_branch[] = "takes another branch for another number of rows";

/* The state of one examination: arrays by value, as wide as the widest node. */
typedef struct walk {
    const graph *g;
    int64_t rows;      /* or tokens */
    bool is_of_tokens; /* the tokens of one row take the part of the rows */
    graph_trace one, many;
    row_value *values;
    bool *needed;
    const row_value **in;
    row_value *out;
} walk;

static status open_walk(walk *w)
{
    const graph *g = w->g;
    size_t widest = 1, values = (size_t)g->value_count + 1;
    for (int32_t n = 0; n < g->node_count; n++) {
        const graph_node *node = &g->nodes[n];
        widest = (size_t)node->input_count > widest ? (size_t)node->input_count : widest;
        widest = (size_t)node->output_count > widest ? (size_t)node->output_count : widest;
    }
    w->values = calloc(values, sizeof w->values[0]);
    w->needed = calloc(values, sizeof w->needed[0]);
    w->in = calloc(widest, sizeof w->in[0]);
    w->out = calloc(widest, sizeof w->out[0]);
    if (!w->values || !w->needed || !w->in || !w->out)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to examine \"%s\"", g->name);
    return STATUS_OK;
}

static void close_walk(walk *w)
{
    free(w->values);
    free(w->needed);
    free(w->in);
    free(w->out);
    graph_trace_dispose(&w->one);
    graph_trace_dispose(&w->many);
}

static void mark_needed(walk *w)
{
    const graph *g = w->g;
    for (int i = 0; i < g->output_count; i++)
        w->needed[g->outputs[i]] = true;
    for (int32_t n = g->node_count - 1; n >= 0; n--) {
        const graph_node *node = &g->nodes[n];
        bool is_needed = false;
        for (int i = 0; i < node->output_count; i++)
            is_needed |= node->outputs[i] != GRAPH_NO_VALUE && w->needed[node->outputs[i]];
        for (int i = 0; is_needed && i < node->input_count; i++)
            if (node->inputs[i] != GRAPH_NO_VALUE)
                w->needed[node->inputs[i]] = true;
    }
}

static bool has_elements(const row_value *v)
{
    return tensor_count(&v->one) > 0 && tensor_count(&v->many) > 0;
}

/* Both values are known: are they the same, or do they depend on the number of rows? */
static row_relation relate_known(const row_value *v)
{
    bool is_same = tensor_same_shape(&v->one, &v->many) && v->one.dtype == v->many.dtype;
    if (is_same && (v->one.data == v->many.data || !has_elements(v)))
        return rows_same();
    is_same = is_same && v->one.dtype != DTYPE_BYTES &&
              memcmp(v->one.data, v->many.data, tensor_bytes(&v->one)) == 0;
    return is_same ? rows_same() : (row_relation){.kind = ROWS_COUNTED};
}

/* Rows are along axis 0, tokens along any one axis. */
static row_relation split_input(const walk *w, const row_value *v)
{
    int axis = 0;
    while (w->is_of_tokens && axis + 1 < v->one.rank && v->one.dims[axis] == v->many.dims[axis])
        axis++;
    bool has_axis = v->one.rank > 0 && v->many.dims[axis] == w->rows * v->one.dims[axis];
    for (int d = 0; d < v->one.rank; d++)
        has_axis &= d == axis || v->one.dims[d] == v->many.dims[d];
    if (!has_axis)
        return rows_undecided(reason_input);
    return (row_relation){.kind = ROWS_SPLIT, .outer = rows_product(v->one.dims, 0, axis)};
}

static void place_values(walk *w)
{
    const graph *g = w->g;
    for (int32_t v = 0; v < g->value_count; v++) {
        w->values[v].one = w->one.values[v];
        w->values[v].many = w->many.values[v];
    }
    for (int i = 0; i < g->input_count; i++) {
        row_value *v = &w->values[g->inputs[i]];
        v->relation = w->is_of_tokens && tensor_same_shape(&v->one, &v->many) ? rows_same()
                                                                              : split_input(w, v);
        v->relation.node = -1;
    }
}

/* The relation that ends the proof, if an input of the node has one. */
static const row_relation *find_blamed(const walk *w, const graph_node *node)
{
    const row_relation *found = NULL;
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == GRAPH_NO_VALUE)
            continue;
        const row_relation *r = &w->values[node->inputs[i]].relation;
        if (r->kind != ROWS_MIXED && r->kind != ROWS_UNDECIDED)
            continue;
        if (found == NULL || (r->kind == ROWS_MIXED && found->kind != ROWS_MIXED))
            found = r;
    }
    return found;
}

/* The branch that both runs take, as it is. */
static row_relation follow_branch(walk *w, const graph_node *node, int output)
{
    const row_value *condition = &w->values[node->inputs[0]];
    if (condition->one.data == NULL || condition->many.data == NULL)
        return rows_undecided(reason_branch);
    bool taken = *(const bool *)condition->one.data;
    if (taken != *(const bool *)condition->many.data)
        return rows_mixed(reason_branch);
    return w->values[node->inputs[(taken ? 1 : 1 + node->output_count) + output]].relation;
}

/* `blamed`: of the node's inputs, or NULL. */
static row_relation relate_output(const walk *w, const row_call *call, const row_relation *blamed,
                                  int output)
{
    const graph_node *node = call->node;
    const row_value *v = &w->out[output];
    bool all_same = true, all_full = has_elements(v);
    if (v->one.data != NULL && v->many.data != NULL)
        return relate_known(v);
    if (blamed != NULL)
        return *blamed;
    for (int i = 0; i < node->input_count; i++) {
        all_same &= rows_is_same(call->in[i]);
        all_full &= rows_is_same(call->in[i]) || has_elements(call->in[i]);
    }
    if (all_same)
        return rows_same();
    if (!all_full)
        return rows_undecided(reason_empty);
    row_rule rule = independence_rule_of(node->op);
    return rule != NULL ? rule(call, output) : rows_undecided(reason_no_rule);
}

/* Moves the inputs that add elements to a Concat, in one run at least, to the front; returns how
 * many those are. What nothing reads has no shapes, and is left as it is. */
static int drop_empty(walk *w, int count)
{
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (w->in[i]->one.rank < 0 || w->in[i]->many.rank < 0)
            return count;
    for (int i = 0; i < count; i++)
        if (tensor_count(&w->in[i]->one) > 0 || tensor_count(&w->in[i]->many) > 0)
            w->in[kept++] = w->in[i];
    return kept > 0 ? kept : count;
}

static void visit(walk *w, int32_t n)
{
    const graph_node *node = &w->g->nodes[n];
    for (int i = 0; i < node->input_count; i++)
        w->in[i] = node->inputs[i] == GRAPH_NO_VALUE ? NULL : &w->values[node->inputs[i]];
    for (int i = 0; i < node->output_count; i++)
        w->out[i] =
            node->outputs[i] == GRAPH_NO_VALUE ? (row_value){0} : w->values[node->outputs[i]];
    graph_node full = *node;
    if (node->op == GRAPH_OP_CONCAT)
        full.input_count = drop_empty(w, node->input_count);
    row_call call = {&full, w->rows, w->in, w->out};
    const row_relation *blamed = find_blamed(w, node);
    for (int i = 0; i < node->output_count; i++) {
        graph_value_index v = node->outputs[i];
        /* A branch that is not taken may have no shapes. */
        if (v == GRAPH_NO_VALUE || !w->needed[v] || w->one.values[v].rank < 0 ||
            w->many.values[v].rank < 0)
            continue;
        row_relation found = node->op == GRAPH_OP_IF ? follow_branch(w, node, i)
                                                     : relate_output(w, &call, blamed, i);
        bool is_new = (found.kind == ROWS_MIXED || found.kind == ROWS_UNDECIDED) &&
                      (blamed == NULL || blamed->reason != found.reason);
        if (is_new)
            found.node = n;
        w->values[v].relation = found;
    }
}

/* Every output must be rows along axis 0; or one element for each token along an axis, or the same
 * for all tokens. */
static bool is_separate(const walk *w, const row_call *call, const row_value *v)
{
    int axis = 0;
    if (w->is_of_tokens && v->relation.kind == ROWS_SAME)
        return true;
    while (w->is_of_tokens && axis + 1 < v->one.rank && v->one.dims[axis] == v->many.dims[axis])
        axis++;
    return v->one.rank > 0 && v->one.dims[axis] == 1 && rows_lie(call, v, (row_axis){axis, 1});
}

static void judge(const walk *w, graph_independence *out)
{
    const graph *g = w->g;
    row_call call = {.rows = w->rows};
    *out = (graph_independence){.verdict = GRAPH_INDEPENDENT, .is_of_tokens = w->is_of_tokens};
    for (int i = 0; i < g->output_count && out->verdict != GRAPH_MIXED; i++) {
        const row_value *v = &w->values[g->outputs[i]];
        row_relation r = v->relation;
        if (r.kind < ROWS_MIXED && !is_separate(w, &call, v)) {
            r = rows_undecided(reason_output);
            r.node = g->values[g->outputs[i]].producer;
        }
        if (r.kind < ROWS_MIXED || (r.kind == ROWS_UNDECIDED && out->reason != NULL))
            continue;
        out->verdict = r.kind == ROWS_MIXED ? GRAPH_MIXED : GRAPH_UNDECIDED;
        out->reason = r.reason;
        out->node = r.node < 0 ? NULL : g->nodes[r.node].name;
        out->op = r.node < 0 ? GRAPH_OP_COUNT : g->nodes[r.node].op;
    }
}

static status trace(const graph *g, int64_t batch, int64_t sequence, const graph_budget *budget,
                    graph_evaluate_fn evaluate, graph_trace *out)
{
    tensor *inputs = calloc((size_t)g->input_count + 1, sizeof inputs[0]);
    if (inputs == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to examine \"%s\"", g->name);
    status s = graph_bind(g, batch, sequence, inputs);
    if (s == STATUS_OK)
        s = graph_trace_values(g, &(graph_binding){inputs, budget}, evaluate, out);
    free(inputs);
    return s;
}

/* Compares a run of `many` with one of one row, or token. */
static status examine(walk *w, const int64_t one[2], const int64_t many[2],
                      const graph_budget *budget, graph_evaluate_fn evaluate,
                      graph_independence *out)
{
    status s = open_walk(w);
    if (s)
        goto fail;
    if ((s = trace(w->g, one[0], one[1], budget, evaluate, &w->one)))
        goto fail;
    if ((s = trace(w->g, many[0], many[1], budget, evaluate, &w->many)))
        goto fail;
    mark_needed(w);
    place_values(w);
    for (int32_t n = 0; n < w->g->node_count; n++)
        visit(w, n);
    judge(w, out);
fail:
    close_walk(w);
    return s;
}

status graph_examine_independence(const graph *g, int64_t batch, int64_t sequence,
                                  const graph_budget *budget, graph_evaluate_fn evaluate,
                                  graph_independence *out)
{
    assert(batch >= 2 && sequence >= 0);
    walk w = {.g = g, .rows = batch};
    return examine(&w, (int64_t[]){1, sequence}, (int64_t[]){batch, sequence}, budget, evaluate,
                   out);
}

status graph_examine_tokens(const graph *g, int64_t sequence, const graph_budget *budget,
                            graph_evaluate_fn evaluate, graph_independence *out)
{
    assert(sequence >= 2);
    walk w = {.g = g, .rows = sequence, .is_of_tokens = true};
    return examine(&w, (int64_t[]){1, 1}, (int64_t[]){1, sequence}, budget, evaluate, out);
}

/* The reason, with "tokens" for "rows". */
static void put_reason(char *text, size_t bytes, const graph_independence *found)
{
    const char *from = found->reason, *word;
    size_t at = strlen(text);
    while (found->is_of_tokens && (word = strstr(from, "rows")) != NULL) {
        snprintf(text + at, bytes - at, "%.*stokens", (int)(word - from), from);
        at = strlen(text);
        from = word + strlen("rows");
    }
    snprintf(text + at, bytes - at, "%s", from);
}

const char *graph_independence_text(char text[512], const graph_independence *found)
{
    text[0] = 0;
    if (found->verdict == GRAPH_INDEPENDENT)
        return text;
    if (found->node != NULL)
        snprintf(text, 512, "node \"%.300s\" (%s) ", found->node, graph_op_title(found->op));
    put_reason(text, 512, found);
    return text;
}

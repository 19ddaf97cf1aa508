#include <assert.h>
#include <stdlib.h>

#include "devices/cpu/dynamic/run.h"
#include "devices/cpu/ops/op.h"

/* Runs what the outputs need, and nothing else: a node runs when somebody asks for its value, so
 * only the branch that an If selects is computed. A value is released when its last reader has run.
 */

/* A run of more nodes ends: a Loop may go on forever. */
#define NODES_MAX ((int64_t)1 << 22)

typedef struct frame {
    dynamic_run *run;
    const graph *graph;
    item *values;
    int32_t *readers; /* left, by value; outputs of the graph count */
    int32_t *wanted;  /* stack of nodes that are to run */
    size_t wanted_count, wanted_max;
} frame;

static status open_frame(frame *f, const item *inputs)
{
    const graph *g = f->graph;
    f->values = calloc((size_t)g->value_count + 1, sizeof f->values[0]);
    f->readers = calloc((size_t)g->value_count + 1, sizeof f->readers[0]);
    if (!f->values || !f->readers)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to run \"%s\"", g->name);
    for (int32_t v = 0; v < g->value_count; v++)
        if (g->values[v].constant)
            f->values[v] = item_borrow(g->values[v].constant);
    for (int i = 0; i < g->input_count; i++)
        f->values[g->inputs[i]] = item_retain(&inputs[i]);
    for (int32_t n = 0; n < g->node_count; n++)
        for (int i = 0; i < g->nodes[n].input_count; i++)
            if (g->nodes[n].inputs[i] != GRAPH_NO_VALUE)
                f->readers[g->nodes[n].inputs[i]]++;
    for (int i = 0; i < g->output_count; i++)
        f->readers[g->outputs[i]]++;
    return STATUS_OK;
}

static void close_frame(frame *f)
{
    for (int32_t v = 0; f->values && v < f->graph->value_count; v++)
        item_release(&f->values[v]);
    free(f->values);
    free(f->readers);
    free(f->wanted);
}

static status want(frame *f, graph_value_index v)
{
    if (v == GRAPH_NO_VALUE || f->values[v].kind != ITEM_NONE)
        return STATUS_OK;
    if (f->graph->values[v].producer < 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "input \"%s\" of a body is absent",
                           f->graph->values[v].name);
    if (f->wanted_count == f->wanted_max) {
        size_t most = f->wanted_max ? 2 * f->wanted_max : 64;
        int32_t *more = realloc(f->wanted, most * sizeof more[0]);
        if (!more)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory to run \"%s\"", f->graph->name);
        f->wanted = more;
        f->wanted_max = most;
    }
    f->wanted[f->wanted_count++] = f->graph->values[v].producer;
    return STATUS_OK;
}

/* The branch that the condition of an If selects: the first of its values among the inputs. */
static status find_branch(const frame *f, const graph_node *node, int *first)
{
    int64_t condition;
    status s = dynamic_read_integer(node, &f->values[node->inputs[0]], 0, &condition);
    *first = condition ? 1 : 1 + node->output_count;
    return s;
}

/* Asks for the inputs that are missing; none, and the node can run. */
static status want_inputs(frame *f, const graph_node *node)
{
    int first = 0, count = node->input_count;
    status s = STATUS_OK;
    if (node->op == GRAPH_OP_IF) {
        if (f->values[node->inputs[0]].kind == ITEM_NONE)
            return want(f, node->inputs[0]);
        s = find_branch(f, node, &first);
        count = first + node->output_count;
    }
    for (int i = first; !s && i < count; i++)
        if (node->op != GRAPH_OP_IF || node->outputs[i - first] != GRAPH_NO_VALUE)
            s = want(f, node->inputs[i]);
    return s;
}

static status select_branch(const frame *f, const graph_node *node, item *outputs)
{
    int first;
    status s = find_branch(f, node, &first);
    for (int i = 0; !s && i < node->output_count; i++)
        if (node->outputs[i] != GRAPH_NO_VALUE)
            outputs[i] = item_retain(&f->values[node->inputs[first + i]]);
    return s;
}

static status dispatch(frame *f, const graph_node *node, const item *inputs, item *outputs)
{
    dynamic_fn sequence = dynamic_find_sequence(node->op);
    if (node->op == GRAPH_OP_IF)
        return select_branch(f, node, outputs);
    if (node->op == GRAPH_OP_LOOP)
        return dynamic_run_loop(f->run, node, inputs, outputs);
    if (node->op == GRAPH_OP_SCAN)
        return dynamic_run_scan(f->run, node, inputs, outputs);
    if (node->op == GRAPH_OP_IDENTITY && inputs[0].kind != ITEM_NONE) {
        outputs[0] = item_retain(&inputs[0]);
        return STATUS_OK;
    }
    return sequence ? sequence(f->run, node, inputs, outputs)
                    : dynamic_run_operator(f->run, node, inputs, outputs);
}

static void drop_reader(frame *f, graph_value_index v)
{
    if (v != GRAPH_NO_VALUE && --f->readers[v] == 0)
        item_release(&f->values[v]);
}

static status run_node(frame *f, const graph_node *node)
{
    int count = node->input_count + node->output_count;
    item *items = calloc((size_t)count + 1, sizeof items[0]), *outputs = items + node->input_count;
    if (!items)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to run \"%s\"", node->name);
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] != GRAPH_NO_VALUE)
            items[i] = f->values[node->inputs[i]];
    status s = cancel_check(f->run->program->budget.cancel);
    if (!s && ++f->run->nodes > NODES_MAX)
        s = status_fail(STATUS_TOO_LARGE, "a run of more than %lld nodes", (long long)NODES_MAX);
    if (!s)
        s = dispatch(f, node, items, outputs);
    for (int i = 0; i < node->output_count; i++) {
        graph_value_index v = node->outputs[i];
        if (s || v == GRAPH_NO_VALUE || f->readers[v] == 0)
            item_release(&outputs[i]);
        else
            f->values[v] = outputs[i];
    }
    free(items);
    for (int i = 0; !s && i < node->input_count; i++)
        drop_reader(f, node->inputs[i]);
    return s;
}

static status compute(frame *f, graph_value_index output)
{
    status s = want(f, output);
    while (!s && f->wanted_count > 0) {
        size_t before = f->wanted_count;
        const graph_node *node = &f->graph->nodes[f->wanted[before - 1]];
        bool is_done = false;
        for (int i = 0; i < node->output_count && !is_done; i++)
            is_done =
                node->outputs[i] != GRAPH_NO_VALUE && f->values[node->outputs[i]].kind != ITEM_NONE;
        if (!is_done && (s = want_inputs(f, node)))
            break;
        if (f->wanted_count > before)
            continue;
        f->wanted_count--;
        if (!is_done)
            s = run_node(f, node);
    }
    return s;
}

status dynamic_run_graph(dynamic_run *r, const graph *g, const item *inputs, item *outputs)
{
    frame f = {.run = r, .graph = g};
    status s = open_frame(&f, inputs);
    for (int i = 0; i < g->output_count; i++)
        outputs[i] = (item){0};
    for (int i = 0; !s && i < g->output_count; i++) {
        s = compute(&f, g->outputs[i]);
        if (!s)
            outputs[i] = item_retain(&f.values[g->outputs[i]]);
    }
    for (int i = 0; s && i < g->output_count; i++)
        item_release(&outputs[i]);
    close_frame(&f);
    return s;
}

static status copy_output(const graph *g, int index, const item *from, arena *results, tensor *to)
{
    if (from->kind != ITEM_TENSOR)
        return status_fail(STATUS_UNSUPPORTED, "output \"%s\" is no tensor",
                           g->values[g->outputs[index]].name);
    tensor made = from->tensor;
    size_t bytes = tensor_bytes(&made);
    made.data = arena_allocate_aligned(results, bytes ? bytes : 1, 64);
    if (!made.data)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a result of %zu bytes", bytes);
    if (bytes)
        __builtin_memcpy(made.data, from->tensor.data, bytes);
    *to = made;
    return STATUS_OK;
}

status cpu_dynamic_run(const cpu_dynamic *program, const tensor *inputs, tensor *outputs,
                       arena *results)
{
    const graph *g = program->graph;
    dynamic_run r = {.program = program};
    arena_init(&r.prepared, 0);
    item *items = calloc((size_t)(g->input_count + g->output_count) + 1, sizeof items[0]);
    status s = items ? STATUS_OK : status_fail(STATUS_OUT_OF_MEMORY, "no memory to run a model");
    for (int i = 0; !s && i < g->input_count; i++)
        items[i] = item_borrow(&inputs[i]);
    item *made = items + g->input_count;
    if (!s)
        s = dynamic_run_graph(&r, g, items, made);
    for (int i = 0; !s && i < g->output_count; i++)
        s = copy_output(g, i, &made[i], results, &outputs[i]);
    for (int i = 0; items && i < g->output_count; i++)
        item_release(&made[i]);
    assert(r.memory.bytes == 0);
    free(items);
    free(r.scratch);
    arena_dispose(&r.prepared);
    return s;
}

status cpu_dynamic_check(const graph *g)
{
    status s = STATUS_OK;
    for (int32_t n = 0; !s && n < g->node_count; n++) {
        const graph_node *node = &g->nodes[n];
        const graph_attribute *body = graph_find_attribute(node, "body");
        if (body && body->kind == GRAPH_ATTRIBUTE_GRAPH)
            s = cpu_dynamic_check(body->graph);
        else if (node->op != GRAPH_OP_IF && !dynamic_find_sequence(node->op) &&
                 !cpu_op_find(node->op))
            s = status_fail(STATUS_UNSUPPORTED, "node \"%s\": the CPU has no operator %s",
                            node->name, graph_op_name(node->op));
    }
    return s;
}

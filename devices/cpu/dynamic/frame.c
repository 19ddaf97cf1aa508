#include <stdlib.h>
#include <string.h>

#include "devices/cpu/dynamic/run.h"

/* Runs what the outputs need, and nothing else: a unit runs when somebody asks for its value, so
 * only the branch that an If selects is computed. A value is released when its last reader has run.
 */

/* A run of more nodes ends: a Loop may go on forever. */
#define NODES_MAX ((int64_t)1 << 22)

typedef struct frame {
    dynamic_run *run;
    const dynamic_form *form;
    item *values;     /* by slot */
    int32_t *readers; /* left, by slot; outputs of the graph count */
    int32_t *wanted;  /* stack of units that are to run */
    item *operands;   /* of the unit that runs */
    size_t wanted_count, wanted_max;
} frame;

static status fail_memory(const frame *f)
{
    return status_fail(STATUS_OUT_OF_MEMORY, "no memory to run \"%s\"", f->form->graph->name);
}

static status open_frame(frame *f, const item *inputs)
{
    const dynamic_form *form = f->form;
    size_t slots = (size_t)form->slot_count + 1;
    f->values = malloc((slots + (size_t)form->widest) * sizeof f->values[0]);
    f->readers = malloc(slots * sizeof f->readers[0]);
    if (!f->values || !f->readers) {
        free(f->values);
        f->values = NULL;
        return fail_memory(f);
    }
    memcpy(f->values, form->initial, slots * sizeof f->values[0]);
    memcpy(f->readers, form->readers, slots * sizeof f->readers[0]);
    f->operands = f->values + slots;
    for (int i = 0; i < form->graph->input_count; i++)
        f->values[form->inputs[i]] = item_retain(&inputs[i]);
    return STATUS_OK;
}

static void close_frame(frame *f)
{
    for (int v = 0; f->values && v < f->form->slot_count; v++)
        item_release(&f->values[v]);
    free(f->values);
    free(f->readers);
    free(f->wanted);
}

static status want(frame *f, int32_t slot)
{
    if (slot < 0 || f->values[slot].kind != ITEM_NONE)
        return STATUS_OK;
    if (f->form->producers[slot] < 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "input \"%s\" of a body is absent",
                           f->form->names[slot]);
    if (f->wanted_count == f->wanted_max) {
        size_t most = f->wanted_max ? 2 * f->wanted_max : 64;
        int32_t *more = realloc(f->wanted, most * sizeof more[0]);
        if (!more)
            return fail_memory(f);
        f->wanted = more;
        f->wanted_max = most;
    }
    f->wanted[f->wanted_count++] = f->form->producers[slot];
    return STATUS_OK;
}

static bool is_if(const dynamic_unit *unit)
{
    return unit->node && unit->node->op == GRAPH_OP_IF;
}

/* The branch that the condition of an If selects: the first of its values among the inputs. */
static status find_branch(const frame *f, const dynamic_unit *unit, int *first)
{
    int64_t condition;
    status s = dynamic_read_integer(unit->node, &f->values[unit->inputs[0]], 0, &condition);
    *first = condition ? 1 : 1 + unit->output_count;
    return s;
}

/* Asks for the inputs that are missing; none, and the unit can run. */
static status want_inputs(frame *f, const dynamic_unit *unit)
{
    int first = 0, count = unit->input_count;
    status s = STATUS_OK;
    if (is_if(unit)) {
        if (f->values[unit->inputs[0]].kind == ITEM_NONE)
            return want(f, unit->inputs[0]);
        s = find_branch(f, unit, &first);
        count = first + unit->output_count;
    }
    for (int i = first; !s && i < count; i++)
        if (!is_if(unit) || unit->outputs[i - first] >= 0)
            s = want(f, unit->inputs[i]);
    return s;
}

static status select_branch(const frame *f, const dynamic_unit *unit, item *outputs)
{
    int first;
    status s = find_branch(f, unit, &first);
    for (int i = 0; !s && i < unit->output_count; i++)
        if (unit->outputs[i] >= 0)
            outputs[i] = item_retain(&f->values[unit->inputs[first + i]]);
    return s;
}

static status count_operations(dynamic_run *r, const dynamic_island *island)
{
    r->spent.operations = graph_cost_add(r->spent.operations, island->operations);
    if (r->spent.operations <= r->budget.operations_max)
        return STATUS_OK;
    return status_fail(STATUS_TOO_LARGE, "one run takes %.3g operations; the limit is %.3g",
                       (double)r->spent.operations, (double)r->budget.operations_max);
}

static status run_island(dynamic_run *r, const dynamic_unit *unit, const item *inputs,
                         item *outputs)
{
    const dynamic_island *island = unit->island;
    const graph *g = island->graph;
    status s = dynamic_reserve_operands(r, (size_t)(unit->input_count + unit->output_count));
    if (!s)
        s = count_operations(r, island);
    tensor *in = r->operands, *out = in + unit->input_count;
    for (int i = 0; !s && i < unit->input_count; i++)
        in[i] = inputs[i].tensor;
    for (int i = 0; !s && i < unit->output_count; i++) {
        const tensor shape = graph_value_tensor(&g->values[g->outputs[i]]);
        s = item_allocate(&r->memory, &shape, &outputs[i]);
        out[i] = outputs[i].tensor;
    }
    if (!s)
        s = dynamic_reserve(r, cpu_plan_workspace_bytes(island->plan));
    r->nodes += island->node_count - 1;
    return s ? s
             : cpu_plan_run_with(island->plan, in, out, r->caller->memory->workspace,
                                 r->caller->team, r->caller->cancel);
}

static status dispatch(frame *f, const dynamic_unit *unit, const item *inputs, item *outputs)
{
    const graph_node *node = unit->node;
    if (unit->island)
        return run_island(f->run, unit, inputs, outputs);
    dynamic_fn sequence = dynamic_find_sequence(node->op);
    if (node->op == GRAPH_OP_IF)
        return select_branch(f, unit, outputs);
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

static void drop_reader(frame *f, int32_t slot)
{
    if (slot >= 0 && --f->readers[slot] == 0)
        item_release(&f->values[slot]);
}

static status run_unit(frame *f, const dynamic_unit *unit)
{
    item *items = f->operands, *outputs = items + unit->input_count;
    memset(items, 0, (size_t)(unit->input_count + unit->output_count) * sizeof items[0]);
    for (int i = 0; i < unit->input_count; i++)
        if (unit->inputs[i] >= 0)
            items[i] = f->values[unit->inputs[i]];
    status s = cancel_check(f->run->caller->cancel);
    if (!s && ++f->run->nodes > NODES_MAX)
        s = status_fail(STATUS_TOO_LARGE, "a run of more than %lld nodes", (long long)NODES_MAX);
    if (!s)
        s = dispatch(f, unit, items, outputs);
    for (int i = 0; i < unit->output_count; i++) {
        int32_t slot = unit->outputs[i];
        if (s || slot < 0 || f->readers[slot] == 0)
            item_release(&outputs[i]);
        else
            f->values[slot] = outputs[i];
    }
    for (int i = 0; !s && i < unit->input_count; i++)
        drop_reader(f, unit->inputs[i]);
    return s;
}

static status compute(frame *f, int32_t output)
{
    status s = want(f, output);
    while (!s && f->wanted_count > 0) {
        size_t before = f->wanted_count;
        const dynamic_unit *unit = &f->form->units[f->wanted[before - 1]];
        bool is_done = false;
        for (int i = 0; i < unit->output_count && !is_done; i++)
            is_done = unit->outputs[i] >= 0 && f->values[unit->outputs[i]].kind != ITEM_NONE;
        if (!is_done && (s = want_inputs(f, unit)))
            break;
        if (f->wanted_count > before)
            continue;
        f->wanted_count--;
        if (!is_done)
            s = run_unit(f, unit);
    }
    return s;
}

status dynamic_run_form(dynamic_run *r, const dynamic_form *form, const item *inputs, item *outputs)
{
    frame f = {.run = r, .form = form};
    int count = form->graph->output_count;
    status s = open_frame(&f, inputs);
    for (int i = 0; i < count; i++)
        outputs[i] = (item){0};
    for (int i = 0; !s && i < count; i++) {
        s = compute(&f, form->outputs[i]);
        if (!s)
            outputs[i] = item_retain(&f.values[form->outputs[i]]);
    }
    for (int i = 0; s && i < count; i++)
        item_release(&outputs[i]);
    close_frame(&f);
    return s;
}

#include "devices/cpu/dynamic/dynamic.h"

#include <assert.h>
#include <stdlib.h>

#include "base/large_memory.h"
#include "devices/cpu/dynamic/run.h"
#include "devices/cpu/ops/op.h"

/* A program: the forms of its graph and bodies, and its runs. */

static const graph *body_of(const graph_node *node)
{
    const graph_attribute *body = graph_find_attribute(node, "body");
    return body && body->kind == GRAPH_ATTRIBUTE_GRAPH ? body->graph : NULL;
}

static int count_graphs(const graph *g)
{
    int count = 1;
    for (int32_t n = 0; n < g->node_count; n++) {
        const graph *body = body_of(&g->nodes[n]);
        count += body ? count_graphs(body) : 0;
    }
    return count;
}

static status add_forms(cpu_dynamic *p, const graph *g)
{
    status s = dynamic_forms_init(&p->forms[p->forms_count++], g);
    for (int32_t n = 0; !s && n < g->node_count; n++) {
        const graph *body = body_of(&g->nodes[n]);
        s = body ? add_forms(p, body) : STATUS_OK;
    }
    return s;
}

status cpu_dynamic_create(const cpu_dynamic_options *options, cpu_dynamic **out)
{
    status s = cpu_dynamic_check(options->graph);
    if (s)
        return s;
    cpu_dynamic *p = calloc(1, sizeof *p);
    if (p)
        p->forms = calloc((size_t)count_graphs(options->graph), sizeof p->forms[0]);
    if (!p || !p->forms) {
        free(p);
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a program");
    }
    p->budget = options->budget ? *options->budget : graph_budget_default;
    p->budget.cancel = NULL; /* it belongs to the load, which ends before */
    p->options = *options;
    p->options.budget = &p->budget;
    s = add_forms(p, options->graph);
    if (!s)
        *out = p;
    else
        cpu_dynamic_destroy(p);
    return s;
}

void cpu_dynamic_destroy(cpu_dynamic *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->forms_count; i++)
        dynamic_forms_dispose(&p->forms[i]);
    free(p->forms);
    free(p);
}

dynamic_forms *dynamic_forms_of(const cpu_dynamic *p, const graph *g)
{
    int i = 0;
    while (i < p->forms_count && p->forms[i].graph != g)
        i++;
    assert(i < p->forms_count);
    return &p->forms[i];
}

status dynamic_find_form(dynamic_run *r, dynamic_forms *of, const item *inputs, int fixed,
                         dynamic_form **out)
{
    int count = of->graph->input_count;
    tensor *shapes = calloc((size_t)count + 1, sizeof shapes[0]);
    bool are_tensors = true;
    *out = NULL;
    if (!shapes)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to run \"%s\"", of->graph->name);
    for (int i = 0; i < count; i++) {
        are_tensors = are_tensors && inputs[i].kind == ITEM_TENSOR;
        shapes[i] = inputs[i].tensor;
        if (i < fixed || !cpu_weights_has_constant(r->options.weights, shapes[i].data))
            shapes[i].data = NULL;
    }
    status s = are_tensors ? dynamic_forms_acquire(of, &r->options, shapes, out) : STATUS_OK;
    free(shapes);
    /* Node by node, the failure names its node if it is reached. */
    return s == STATUS_OUT_OF_MEMORY || cancel_is_end(s) ? s : STATUS_OK;
}

status dynamic_reserve(dynamic_run *r, size_t bytes)
{
    cpu_dynamic_memory *m = r->caller->memory;
    if (r->memory.bytes + (int64_t)bytes > r->budget.activation_bytes_max)
        return status_fail(STATUS_TOO_LARGE,
                           "a run takes %lld bytes at one time; the limit is "
                           "%lld",
                           (long long)r->memory.bytes + (long long)bytes,
                           (long long)r->budget.activation_bytes_max);
    if (bytes <= m->bytes)
        return STATUS_OK;
    free(m->workspace);
    m->workspace = large_memory_allocate(bytes);
    m->bytes = m->workspace ? bytes : 0;
    return m->workspace
               ? STATUS_OK
               : status_fail(STATUS_OUT_OF_MEMORY, "no memory for %zu bytes of workspace", bytes);
}

void cpu_dynamic_memory_trim(cpu_dynamic_memory *m, size_t keep_bytes)
{
    if (m->bytes <= keep_bytes)
        return;
    free(m->workspace);
    *m = (cpu_dynamic_memory){0};
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

static status run_items(dynamic_run *r, const item *inputs, item *outputs)
{
    dynamic_forms *of = &r->program->forms[0];
    dynamic_form *form;
    status s = dynamic_find_form(r, of, inputs, of->graph->input_count, &form);
    if (!s)
        s = dynamic_run_form(r, form ? form : of->single, inputs, outputs);
    dynamic_forms_release(of, form);
    return s;
}

status cpu_dynamic_run(cpu_dynamic *p, const tensor *inputs, tensor *outputs, arena *results,
                       const cpu_dynamic_caller *caller)
{
    const graph *g = p->options.graph;
    dynamic_run r = {.program = p, .caller = caller, .options = p->options, .budget = p->budget};
    r.budget.cancel = caller->cancel;
    r.options.budget = &r.budget;
    arena_init(&r.prepared, 0);
    item *items = calloc((size_t)(g->input_count + g->output_count) + 1, sizeof items[0]);
    status s = items ? STATUS_OK : status_fail(STATUS_OUT_OF_MEMORY, "no memory to run a model");
    for (int i = 0; !s && i < g->input_count; i++)
        items[i] = item_borrow(&inputs[i]);
    item *made = items + g->input_count;
    if (!s)
        s = run_items(&r, items, made);
    for (int i = 0; !s && i < g->output_count; i++)
        s = copy_output(g, i, &made[i], results, &outputs[i]);
    for (int i = 0; items && i < g->output_count; i++)
        item_release(&made[i]);
    assert(r.memory.bytes == 0);
    free(items);
    free(r.operands);
    arena_dispose(&r.prepared);
    return s;
}

status cpu_dynamic_check(const graph *g)
{
    status s = STATUS_OK;
    for (int32_t n = 0; !s && n < g->node_count; n++) {
        const graph_node *node = &g->nodes[n];
        const graph *body = body_of(node);
        if (body)
            s = cpu_dynamic_check(body);
        else if (node->op != GRAPH_OP_IF && !dynamic_find_sequence(node->op) &&
                 !cpu_op_find(node->op))
            s = status_fail(STATUS_UNSUPPORTED, "node \"%s\": the CPU has no operator %s",
                            node->name, graph_op_title(node->op));
    }
    return s;
}

status cpu_dynamic_describe(cpu_dynamic *p, const tensor *inputs, cpu_dynamic_facts *out)
{
    tensor *shapes = calloc((size_t)p->options.graph->input_count + 1, sizeof shapes[0]);
    dynamic_form *f;
    if (!shapes)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to describe a program");
    for (int i = 0; i < p->options.graph->input_count; i++) {
        shapes[i] = inputs[i];
        shapes[i].data = NULL;
    }
    status s = dynamic_forms_acquire(&p->forms[0], &p->options, shapes, &f);
    free(shapes);
    if (s)
        return s;
    *out = (cpu_dynamic_facts){0};
    for (int u = 0; u < f->unit_count; u++) {
        const dynamic_island *island = f->units[u].island;
        out->plan_count += island != NULL;
        out->planned_node_count += island ? island->node_count : 0;
        out->single_node_count += island == NULL;
    }
    dynamic_forms_release(&p->forms[0], f);
    return STATUS_OK;
}

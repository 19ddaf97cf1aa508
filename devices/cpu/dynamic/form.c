#include "devices/cpu/dynamic/form.h"

#include <stdlib.h>
#include <string.h>

#include "devices/cpu/dynamic/islands.h"

/* While a form is made. Arrays by value or node of its graph. */
typedef struct maker {
    const cpu_dynamic_options *options;
    dynamic_form *form;
    const graph *g;
    int32_t *island_of;
    bool *is_outer; /* by value: read outside of the island that makes it, or an output */
    graph_value_index *moved, *back; /* to the graph of the island that is being made, and back */
    int32_t *slots;
} maker;

static status fail_memory(const graph *g)
{
    return status_fail(STATUS_OUT_OF_MEMORY, "no memory to prepare \"%s\"", g->name);
}

static void mark_outer(maker *m)
{
    const graph *g = m->g;
    for (int i = 0; i < g->output_count; i++)
        m->is_outer[g->outputs[i]] = true;
    for (int32_t n = 0; n < g->node_count; n++)
        for (int i = 0; i < g->nodes[n].input_count; i++) {
            graph_value_index v = g->nodes[n].inputs[i];
            int32_t from = v == GRAPH_NO_VALUE ? -1 : g->values[v].producer;
            if (from >= 0 && m->island_of[from] != m->island_of[n])
                m->is_outer[v] = true;
        }
}

static graph_value_index move_input(maker *m, graph *made, graph_value_index v)
{
    if (v == GRAPH_NO_VALUE)
        return v;
    const graph_value *value = &m->g->values[v];
    if (m->moved[v] == GRAPH_NO_VALUE)
        m->moved[v] = value->constant ? graph_add_constant(made, value->name, value->constant)
                                      : graph_add_input(made, value->name, value->dtype,
                                                        value->shape.rank, value->shape.dims);
    return m->moved[v];
}

static graph_value_index move_output(maker *m, graph *made, graph_value_index v)
{
    if (v == GRAPH_NO_VALUE)
        return v;
    graph_value_index to = m->moved[v] = graph_add_value(made, m->g->values[v].name);
    made->values[to].dtype = m->g->values[v].dtype;
    made->values[to].has_dtype = true;
    made->values[to].shape = m->g->values[v].shape;
    return to;
}

/* The graph of one island. */
static status cut(maker *m, int32_t island, graph_value_index *places, graph **out)
{
    const graph *g = m->g;
    graph *made = graph_create(g->name);
    if (!made)
        return fail_memory(g);
    for (int32_t v = 0; v < g->value_count; v++)
        m->moved[v] = GRAPH_NO_VALUE;
    for (int32_t n = 0; n < g->node_count; n++) {
        const graph_node *node = &g->nodes[n];
        if (m->island_of[n] != island)
            continue;
        graph_value_index *outputs = places + node->input_count;
        for (int i = 0; i < node->input_count; i++)
            places[i] = move_input(m, made, node->inputs[i]);
        for (int i = 0; i < node->output_count; i++)
            outputs[i] = move_output(m, made, node->outputs[i]);
        graph_add_node_to(made, node->op, node->name, node->input_count, places, node->output_count,
                          outputs, node->attribute_count, node->attributes);
        m->form->islands[island].node_count++;
    }
    for (int32_t v = 0; v < g->value_count; v++) {
        int32_t from = g->values[v].producer;
        if (m->moved[v] != GRAPH_NO_VALUE && m->is_outer[v] && from >= 0 &&
            m->island_of[from] == island)
            graph_add_output(made, m->moved[v], NULL);
    }
    *out = made;
    return graph_check_memory(made);
}

/* The slots of an island's inputs or outputs. */
static const int32_t *find_ports(maker *m, const graph *made, const graph_value_index *ports,
                                 int count)
{
    int32_t *slots = arena_allocate_zeroed(&m->form->memory, (size_t)count + 1, sizeof slots[0]);
    for (int32_t v = 0; v < m->g->value_count; v++)
        if (m->moved[v] != GRAPH_NO_VALUE && m->moved[v] < made->value_count)
            m->back[m->moved[v]] = v;
    for (int i = 0; slots && i < count; i++)
        slots[i] = m->back[ports[i]];
    return slots;
}

/* An island that no plan can be made of is none: its nodes run alone, and fail if they are reached.
 */
static status make_island(maker *m, int32_t island, graph_value_index *places)
{
    dynamic_form *f = m->form;
    dynamic_island *made = &f->islands[island];
    dynamic_unit *unit = &f->units[f->unit_count];
    graph_spent cost;
    status s = cut(m, island, places, &made->graph);
    if (!s)
        s = graph_cost_measure(made->graph, m->options->budget, &cost);
    if (!s)
        s = cpu_plan_create_for(made->graph, m->options->kernels, m->options->weights,
                                m->options->threads, &made->plan);
    if (s == STATUS_OUT_OF_MEMORY || cancel_is_end(s))
        return s;
    for (int32_t n = 0; s && n < m->g->node_count; n++)
        if (m->island_of[n] == island)
            m->island_of[n] = -1;
    if (s)
        return STATUS_OK;
    made->operations = cost.operations;
    *unit = (dynamic_unit){.island = made,
                           .input_count = made->graph->input_count,
                           .output_count = made->graph->output_count};
    unit->inputs = find_ports(m, made->graph, made->graph->inputs, unit->input_count);
    unit->outputs = find_ports(m, made->graph, made->graph->outputs, unit->output_count);
    f->unit_count++;
    return unit->inputs && unit->outputs ? STATUS_OK : fail_memory(m->g);
}

static status make_islands(maker *m)
{
    int widest = 1;
    for (int32_t n = 0; n < m->g->node_count; n++) {
        int count = m->g->nodes[n].input_count + m->g->nodes[n].output_count;
        widest = count > widest ? count : widest;
    }
    graph_value_index *places = calloc((size_t)widest, sizeof places[0]);
    status s = places ? STATUS_OK : fail_memory(m->g);
    for (int32_t k = 0; !s && k < m->form->island_count; k++)
        s = make_island(m, k, places);
    free(places);
    return s;
}

static void make_single(maker *m)
{
    dynamic_form *f = m->form;
    for (int32_t n = 0; n < m->g->node_count; n++) {
        const graph_node *node = &m->g->nodes[n];
        if (m->island_of[n] < 0)
            f->units[f->unit_count++] = (dynamic_unit){.node = node,
                                                       .input_count = node->input_count,
                                                       .output_count = node->output_count,
                                                       .inputs = node->inputs,
                                                       .outputs = node->outputs};
    }
}

/* From here on only values that units have in common are there, in slots. */
static const int32_t *number(maker *m, const graph_value_index *values, int count)
{
    dynamic_form *f = m->form;
    int32_t *slots = arena_allocate_zeroed(&f->memory, (size_t)count + 1, sizeof slots[0]);
    for (int i = 0; slots && i < count; i++) {
        graph_value_index v = values[i];
        if (v != GRAPH_NO_VALUE && m->slots[v] < 0) {
            int32_t slot = m->slots[v] = f->slot_count++;
            f->names[slot] = m->g->values[v].name;
            f->producers[slot] = -1;
            if (m->g->values[v].constant)
                f->initial[slot] = item_borrow(m->g->values[v].constant);
        }
        slots[i] = v == GRAPH_NO_VALUE ? -1 : m->slots[v];
    }
    return slots;
}

static status number_slots(maker *m)
{
    dynamic_form *f = m->form;
    size_t values = (size_t)m->g->value_count + 1;
    f->initial = arena_allocate_zeroed(&f->memory, values, sizeof f->initial[0]);
    f->readers = arena_allocate_zeroed(&f->memory, values, sizeof f->readers[0]);
    f->producers = arena_allocate_zeroed(&f->memory, values, sizeof f->producers[0]);
    f->names = arena_allocate_zeroed(&f->memory, values, sizeof f->names[0]);
    if (!f->initial || !f->readers || !f->producers || !f->names)
        return fail_memory(m->g);
    for (size_t v = 0; v < values; v++)
        m->slots[v] = -1;
    f->inputs = number(m, m->g->inputs, m->g->input_count);
    f->outputs = number(m, m->g->outputs, m->g->output_count);
    for (int i = 0; f->outputs && i < m->g->output_count; i++)
        f->readers[f->outputs[i]]++;
    for (int32_t u = 0; u < f->unit_count; u++) {
        dynamic_unit *unit = &f->units[u];
        unit->inputs = number(m, unit->inputs, unit->input_count);
        unit->outputs = number(m, unit->outputs, unit->output_count);
        if (!unit->inputs || !unit->outputs)
            return fail_memory(m->g);
        for (int i = 0; i < unit->input_count; i++)
            if (unit->inputs[i] >= 0)
                f->readers[unit->inputs[i]]++;
        for (int i = 0; i < unit->output_count; i++)
            if (unit->outputs[i] >= 0)
                f->producers[unit->outputs[i]] = u;
        int wide = unit->input_count + unit->output_count;
        f->widest = wide > f->widest ? wide : f->widest;
    }
    return f->inputs && f->outputs ? STATUS_OK : fail_memory(m->g);
}

static status open_maker(maker *m)
{
    size_t values = (size_t)m->g->value_count + 1, nodes = (size_t)m->g->node_count + 1;
    dynamic_form *f = m->form;
    f->graph = m->g;
    m->island_of = malloc(nodes * sizeof m->island_of[0]);
    m->is_outer = calloc(values, sizeof m->is_outer[0]);
    m->moved = calloc(values, sizeof m->moved[0]);
    m->back = calloc(values + 1, sizeof m->back[0]);
    m->slots = calloc(values, sizeof m->slots[0]);
    f->units = arena_allocate_zeroed(&f->memory, nodes, sizeof f->units[0]);
    f->islands = arena_allocate_zeroed(&f->memory, nodes, sizeof f->islands[0]);
    if (!m->island_of || !m->is_outer || !m->moved || !m->back || !m->slots || !f->units ||
        !f->islands)
        return fail_memory(m->g);
    memset(m->island_of, 0xff, nodes * sizeof m->island_of[0]); /* -1: alone */
    return STATUS_OK;
}

static void close_maker(maker *m)
{
    free(m->island_of);
    free(m->is_outer);
    free(m->moved);
    free(m->back);
    free(m->slots);
}

/* With islands where `options` is given. */
static status make(dynamic_form *f, const graph *g, const cpu_dynamic_options *options)
{
    maker m = {.options = options, .form = f, .g = g};
    status s = open_maker(&m);
    if (!s && options && !(s = dynamic_find_islands(g, m.island_of, &f->island_count))) {
        mark_outer(&m);
        s = make_islands(&m);
    }
    if (!s) {
        make_single(&m);
        s = number_slots(&m);
    }
    close_maker(&m);
    return s;
}

static dynamic_form *create_empty(void)
{
    dynamic_form *f = calloc(1, sizeof *f);
    if (f)
        arena_init(&f->memory, 0);
    return f;
}

status dynamic_form_create_single(const graph *g, dynamic_form **out)
{
    dynamic_form *f = create_empty();
    status s = f ? make(f, g, NULL) : fail_memory(g);
    if (!s)
        *out = f;
    else
        dynamic_form_destroy(f);
    return s;
}

status dynamic_form_create(const graph *g, const cpu_dynamic_options *options, const tensor *inputs,
                           dynamic_form **out)
{
    dynamic_form *f = create_empty();
    if (!f)
        return fail_memory(g);
    size_t bytes = (size_t)g->input_count * sizeof inputs[0];
    status s = STATUS_OK;
    if (!(f->shapes = arena_allocate(&f->memory, bytes + 1)))
        s = fail_memory(g);
    if (!s && bytes)
        memcpy(f->shapes, inputs, bytes);
    if (!s)
        s = graph_specialise_partly(g, &(graph_binding){f->shapes, options->budget},
                                    options->evaluate, &f->owned);
    if (!s)
        s = make(f, f->owned, options);
    if (!s) {
        f->bytes = arena_held_bytes(&f->owned->memory);
        *out = f;
    } else {
        dynamic_form_destroy(f);
    }
    return s;
}

void dynamic_form_destroy(dynamic_form *f)
{
    if (!f)
        return;
    for (int k = 0; k < f->island_count; k++) {
        cpu_plan_destroy(f->islands[k].plan);
        graph_destroy(f->islands[k].graph);
    }
    graph_destroy(f->owned);
    arena_dispose(&f->memory);
    free(f);
}

bool dynamic_form_is_for(const dynamic_form *f, const tensor *inputs)
{
    for (int i = 0; i < f->graph->input_count; i++) {
        const tensor *a = &f->shapes[i], *b = &inputs[i];
        if (a->dtype != b->dtype || a->data != b->data || !tensor_same_shape(a, b))
            return false;
    }
    return true;
}

#include "graph/graph.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/name_map.h"

#define GRAPH_BLOCK_BYTES 65536

/* Outputs of the spare node: more than any builder reads of one node that it has just added. */
#define SPARE_OUTPUTS 64

graph_value_index graph_lack_memory(graph *g)
{
    g->is_out_of_memory = true;
    g->values[g->value_count] =
        (graph_value){.name = "no memory", .shape.rank = -1, .producer = -1};
    return g->value_count;
}

/* The spare node; its outputs are the spare value. */
static int32_t lack_node(graph *g, graph_op op, int output_count)
{
    graph_value_index value = graph_lack_memory(g);
    int outputs = output_count < SPARE_OUTPUTS ? output_count : SPARE_OUTPUTS;
    for (int i = 0; i < SPARE_OUTPUTS; i++)
        g->spare_outputs[i] = value;
    g->nodes[g->node_count] = (graph_node){
        .op = op, .name = "no memory", .output_count = outputs, .outputs = g->spare_outputs};
    return g->node_count;
}

status graph_check_memory(const graph *g)
{
    if (g->is_out_of_memory)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the graph of the model");
    return STATUS_OK;
}

/* The list with room for two items more: the next one, and the spare one behind it. NULL: out of
 * memory. */
static void *grow(arena *memory, void *items, int32_t count, int32_t *capacity, size_t item_bytes)
{
    if (count < *capacity - 1)
        return items;
    assert(*capacity <= INT32_MAX / 2);
    int32_t larger = *capacity ? 2 * *capacity : 64;
    void *moved = arena_allocate_zeroed(memory, (size_t)larger, item_bytes);
    if (moved == NULL)
        return NULL;
    if (*capacity > 0)
        memcpy(moved, items, (size_t)*capacity * item_bytes);
    *capacity = larger;
    return moved;
}

static bool make_room_for_value(graph *g)
{
    graph_value *values =
        grow(&g->memory, g->values, g->value_count, &g->value_capacity, sizeof values[0]);
    g->values = values != NULL ? values : g->values;
    return values != NULL;
}

static bool make_room_for_node(graph *g)
{
    graph_node *nodes =
        grow(&g->memory, g->nodes, g->node_count, &g->node_capacity, sizeof nodes[0]);
    g->nodes = nodes != NULL ? nodes : g->nodes;
    return nodes != NULL;
}

graph *graph_create(const char *name)
{
    graph *g = calloc(1, sizeof *g);
    if (g == NULL)
        return NULL;
    arena_init(&g->memory, GRAPH_BLOCK_BYTES);
    g->names = arena_allocate_zeroed(&g->memory, 1, sizeof *g->names);
    g->name = arena_copy_string(&g->memory, name ? name : "", name ? strlen(name) : 0);
    g->spare_outputs = arena_allocate_zeroed(&g->memory, SPARE_OUTPUTS, sizeof g->spare_outputs[0]);
    if (g->names == NULL || g->name == NULL || g->spare_outputs == NULL ||
        !make_room_for_value(g) || !make_room_for_node(g)) {
        graph_destroy(g);
        return NULL;
    }
    g->names->memory = &g->memory;
    g->source = "";
    return g;
}

void graph_destroy(graph *g)
{
    if (g == NULL)
        return;
    for (graph *body = g->bodies; body != NULL;) {
        graph *next = body->next_body;
        graph_destroy(body);
        body = next;
    }
    if (g->release != NULL)
        g->release(g->release_context);
    arena_dispose(&g->memory);
    free(g);
}

void graph_own_body(graph *g, graph *body)
{
    body->next_body = g->bodies;
    g->bodies = body;
}

graph_value_index graph_find_value(const graph *g, const char *name)
{
    /* The map keeps the old name of a renamed value, which is no longer valid. */
    int32_t value;
    if (!name_map_get(g->names, name, &value) || strcmp(g->values[value].name, name) != 0)
        return GRAPH_NO_VALUE;
    return value;
}

tensor graph_value_tensor(const graph_value *v)
{
    assert(v->has_dtype && v->shape.rank >= 0);
    tensor t = {.dtype = v->dtype, .rank = v->shape.rank};
    for (int i = 0; i < t.rank; i++) {
        assert(graph_dim_is_constant(v->shape.dims[i]));
        t.dims[i] = v->shape.dims[i].constant;
    }
    return t;
}

/* NULL: out of memory. */
static const char *fresh_name(graph *g, const char *wish, graph_value_index value)
{
    if (wish != NULL && wish[0] != 0 && graph_find_value(g, wish) == GRAPH_NO_VALUE)
        return arena_copy_string(&g->memory, wish, strlen(wish));
    const char *stem = wish != NULL && wish[0] != 0 ? wish : "value";
    for (unsigned attempt = 0;; attempt++) {
        char *name = attempt == 0 ? arena_format(&g->memory, "%s_%d", stem, value)
                                  : arena_format(&g->memory, "%s_%d_%u", stem, value, attempt);
        if (name == NULL || graph_find_value(g, name) == GRAPH_NO_VALUE)
            return name;
    }
}

graph_value_index graph_add_value(graph *g, const char *name)
{
    graph_value_index value = g->value_count;
    const char *own = NULL;
    if (g->is_out_of_memory || !make_room_for_value(g) ||
        (own = fresh_name(g, name, value)) == NULL || !name_map_put(g->names, own, value))
        return graph_lack_memory(g);
    g->values[value] = (graph_value){.name = own, .shape.rank = -1, .producer = -1};
    g->value_count++;
    return value;
}

/* Inputs and outputs are few: the list is copied whenever its length is a power of two. */
static void append(graph *g, graph_value_index **list, int *count, graph_value_index value)
{
    if (g->is_out_of_memory)
        return;
    if ((*count & (*count - 1)) == 0) {
        size_t capacity = *count ? 2 * (size_t)*count : 1;
        graph_value_index *moved = arena_allocate_zeroed(&g->memory, capacity, sizeof moved[0]);
        if (moved == NULL) {
            graph_lack_memory(g);
            return;
        }
        if (*count > 0)
            memcpy(moved, *list, (size_t)*count * sizeof moved[0]);
        *list = moved;
    }
    (*list)[(*count)++] = value;
}

graph_value_index graph_add_input(graph *g, const char *name, dtype type, int rank,
                                  const graph_dim *dims)
{
    assert(rank >= -1 && rank <= TENSOR_RANK_MAX);
    graph_value_index value = graph_add_value(g, name);
    graph_value *v = &g->values[value];
    v->dtype = type;
    v->has_dtype = true;
    v->shape.rank = rank;
    for (int i = 0; i < rank; i++)
        v->shape.dims[i] = dims[i];
    append(g, &g->inputs, &g->input_count, value);
    return value;
}

graph_value_index graph_add_input_like(graph *g, const graph_value *like)
{
    graph_value_index value =
        graph_add_input(g, like->name, like->dtype, like->shape.rank, like->shape.dims);
    g->values[value].constant = like->constant;
    return value;
}

graph_value_index graph_add_constant(graph *g, const char *name, const tensor *t)
{
    assert(t->rank >= 0 && t->rank <= TENSOR_RANK_MAX);
    graph_value_index value = graph_add_value(g, name);
    tensor *kept = arena_allocate(&g->memory, sizeof *kept);
    if (kept == NULL || g->is_out_of_memory) {
        value = graph_lack_memory(g);
        kept = &g->spare_constant;
    }
    *kept = *t;
    graph_value *v = &g->values[value];
    v->dtype = t->dtype;
    v->has_dtype = true;
    v->constant = kept;
    v->shape.rank = t->rank;
    for (int i = 0; i < t->rank; i++)
        v->shape.dims[i] = graph_dim_constant(t->dims[i]);
    return value;
}

static graph_value_index add_constant_copy(graph *g, const char *name, dtype type, int rank,
                                           const int64_t *dims, const void *data)
{
    tensor t;
    if (tensor_allocate(&t, &g->memory, type, rank, dims))
        return graph_lack_memory(g);
    size_t bytes = tensor_bytes(&t);
    if (bytes > 0)
        memcpy(t.data, data, bytes);
    return graph_add_constant(g, name, &t);
}

graph_value_index graph_add_constant_i64(graph *g, const char *name, int rank, const int64_t *dims,
                                         const int64_t *data)
{
    return add_constant_copy(g, name, DTYPE_I64, rank, dims, data);
}

graph_value_index graph_add_constant_f32(graph *g, const char *name, int rank, const int64_t *dims,
                                         const float *data)
{
    return add_constant_copy(g, name, DTYPE_F32, rank, dims, data);
}

/* NULL: out of memory. */
static void *copy_items(graph *g, const void *items, int count, size_t item_bytes)
{
    void *copy = arena_allocate(&g->memory, (size_t)count * item_bytes);
    if (copy != NULL && count > 0)
        memcpy(copy, items, (size_t)count * item_bytes);
    return copy;
}

/* The name of a node that has none in the file: that of its first output. */
static const char *name_of_node(const graph *g, graph_op op, int output_count,
                                const graph_value_index *outputs)
{
    for (int i = 0; i < output_count; i++)
        if (outputs[i] != GRAPH_NO_VALUE)
            return g->values[outputs[i]].name;
    return graph_op_name(op);
}

int32_t graph_add_node_to(graph *g, graph_op op, const char *name, int input_count,
                          const graph_value_index *inputs, int output_count,
                          const graph_value_index *outputs, int attribute_count,
                          const graph_attribute *attributes)
{
    assert((unsigned)op < GRAPH_OP_COUNT && input_count >= 0 && output_count >= 0);
    if (g->is_out_of_memory || !make_room_for_node(g))
        return lack_node(g, op, output_count);
    for (int i = 0; i < input_count; i++)
        assert(inputs[i] >= GRAPH_NO_VALUE && inputs[i] < g->value_count);
    if (name == NULL || name[0] == 0)
        name = name_of_node(g, op, output_count, outputs);
    int32_t index = g->node_count;
    graph_node n = {
        .op = op,
        .name = arena_copy_string(&g->memory, name, strlen(name)),
        .input_count = input_count,
        .output_count = output_count,
        .attribute_count = attribute_count,
        .inputs = copy_items(g, inputs, input_count, sizeof inputs[0]),
        .outputs = copy_items(g, outputs, output_count, sizeof outputs[0]),
        .attributes = copy_items(g, attributes, attribute_count, sizeof attributes[0]),
    };
    if (n.name == NULL || n.inputs == NULL || n.outputs == NULL || n.attributes == NULL)
        return lack_node(g, op, output_count);
    for (int i = 0; i < output_count; i++) {
        if (outputs[i] == GRAPH_NO_VALUE)
            continue;
        graph_value *v = &g->values[outputs[i]];
        assert(v->producer == -1 && v->constant == NULL);
        v->producer = index;
    }
    g->nodes[index] = n;
    g->node_count++;
    return index;
}

int32_t graph_add_node(graph *g, graph_op op, const char *name, int input_count,
                       const graph_value_index *inputs, int output_count, int attribute_count,
                       const graph_attribute *attributes)
{
    graph_value_index outputs[SPARE_OUTPUTS];
    assert(output_count <= SPARE_OUTPUTS);
    const char *stem = name != NULL && name[0] != 0 ? name : graph_op_name(op);
    for (int i = 0; i < output_count; i++)
        outputs[i] = graph_add_value(g, stem);
    return graph_add_node_to(g, op, name, input_count, inputs, output_count, outputs,
                             attribute_count, attributes);
}

graph_value_index graph_add(graph *g, graph_op op, int input_count, const graph_value_index *inputs,
                            int attribute_count, const graph_attribute *attributes)
{
    int32_t node = graph_add_node(g, op, NULL, input_count, inputs, 1, attribute_count, attributes);
    return g->nodes[node].outputs[0];
}

static bool is_listed(const graph_value_index *list, int count, graph_value_index value)
{
    for (int i = 0; i < count; i++)
        if (list[i] == value)
            return true;
    return false;
}

/* `name` belongs to the graph's memory; NULL: it ran out. */
static void rename_value(graph *g, graph_value_index value, const char *name)
{
    if (name == NULL || !name_map_put(g->names, name, value))
        graph_lack_memory(g);
    else
        g->values[value].name = name;
}

void graph_add_output(graph *g, graph_value_index value, const char *name)
{
    if (g->is_out_of_memory)
        return;
    assert(value >= 0 && value < g->value_count);
    bool is_named = name == NULL || strcmp(g->values[value].name, name) == 0;
    bool is_output = is_listed(g->outputs, g->output_count, value);
    if (!is_named || is_output) {
        if (!is_named) {
            graph_value_index holder = graph_find_value(g, name);
            if (holder != GRAPH_NO_VALUE) {
                assert(!is_listed(g->inputs, g->input_count, holder));
                assert(!is_listed(g->outputs, g->output_count, holder));
                rename_value(g, holder, fresh_name(g, name, holder));
            }
        }
        if (is_output || g->values[value].producer == -1) {
            dtype type = g->values[value].dtype;
            bool has_dtype = g->values[value].has_dtype;
            graph_shape shape = g->values[value].shape;
            graph_value_index copy = graph_add_value(g, name);
            graph_add_node_to(g, GRAPH_OP_IDENTITY, NULL, 1, &value, 1, &copy, 0, NULL);
            g->values[copy].dtype = type;
            g->values[copy].has_dtype = has_dtype;
            g->values[copy].shape = shape;
            value = copy;
        } else {
            rename_value(g, value, arena_copy_string(&g->memory, name, strlen(name)));
        }
    }
    append(g, &g->outputs, &g->output_count, value);
}

graph_attribute graph_make_int(const char *name, int64_t i)
{
    return (graph_attribute){.name = name, .kind = GRAPH_ATTRIBUTE_INT, .i = i};
}

graph_attribute graph_make_float(const char *name, float f)
{
    return (graph_attribute){.name = name, .kind = GRAPH_ATTRIBUTE_FLOAT, .f = f};
}

graph_attribute graph_make_string(const char *name, const char *s)
{
    return (graph_attribute){.name = name, .kind = GRAPH_ATTRIBUTE_STRING, .s = s};
}

graph_attribute graph_make_ints(graph *g, const char *name, size_t count, const int64_t *ints)
{
    assert(count <= INT32_MAX);
    graph_attribute a = {.name = name, .kind = GRAPH_ATTRIBUTE_INTS, .count = count};
    if ((a.ints = copy_items(g, ints, (int)count, sizeof ints[0])) == NULL) {
        graph_lack_memory(g);
        a.count = 0;
    }
    return a;
}

void graph_mark_read(const graph *g, bool *is_read)
{
    memset(is_read, 0, (size_t)g->value_count * sizeof is_read[0]);
    for (int32_t n = 0; n < g->node_count; n++)
        for (int i = 0; i < g->nodes[n].input_count; i++)
            if (g->nodes[n].inputs[i] != GRAPH_NO_VALUE)
                is_read[g->nodes[n].inputs[i]] = true;
    for (int i = 0; i < g->output_count; i++)
        is_read[g->outputs[i]] = true;
}

const graph_attribute *graph_find_attribute(const graph_node *n, const char *name)
{
    for (int i = 0; i < n->attribute_count; i++)
        if (strcmp(n->attributes[i].name, name) == 0)
            return &n->attributes[i];
    return NULL;
}

int64_t graph_attribute_int(const graph_node *n, const char *name, int64_t otherwise)
{
    const graph_attribute *a = graph_find_attribute(n, name);
    return a != NULL && a->kind == GRAPH_ATTRIBUTE_INT ? a->i : otherwise;
}

float graph_attribute_float(const graph_node *n, const char *name, float otherwise)
{
    const graph_attribute *a = graph_find_attribute(n, name);
    return a != NULL && a->kind == GRAPH_ATTRIBUTE_FLOAT ? a->f : otherwise;
}

const char *graph_attribute_string(const graph_node *n, const char *name, const char *otherwise)
{
    const graph_attribute *a = graph_find_attribute(n, name);
    return a != NULL && a->kind == GRAPH_ATTRIBUTE_STRING ? a->s : otherwise;
}

graph_value_index graph_input_of(const graph_node *n, int i)
{
    assert(i >= 0);
    return i < n->input_count ? n->inputs[i] : GRAPH_NO_VALUE;
}

graph_dim graph_dim_constant(int64_t n)
{
    return (graph_dim){.constant = n};
}

bool graph_dim_is_constant(graph_dim d)
{
    return !d.is_unknown && d.batch == 0 && d.sequence == 0 && d.batch_sequence == 0;
}

bool graph_dim_equal(graph_dim a, graph_dim b)
{
    if (a.is_unknown || b.is_unknown)
        return a.is_unknown && b.is_unknown;
    return a.constant == b.constant && a.batch == b.batch && a.sequence == b.sequence &&
           a.batch_sequence == b.batch_sequence;
}

int64_t graph_dim_at(graph_dim d, int64_t batch, int64_t sequence)
{
    assert(!d.is_unknown);
    return d.constant + d.batch * batch + d.sequence * sequence +
           d.batch_sequence * batch * sequence;
}

static size_t add_term(char text[64], size_t used, int64_t factor, const char *symbol)
{
    if (factor == 0 || used >= 63)
        return used;
    int n;
    if (symbol == NULL)
        n = snprintf(text + used, 64 - used, used && factor > 0 ? "+%lld" : "%lld",
                     (long long)factor);
    else if (factor == 1)
        n = snprintf(text + used, 64 - used, used ? "+%s" : "%s", symbol);
    else if (factor == -1)
        n = snprintf(text + used, 64 - used, "-%s", symbol);
    else
        n = snprintf(text + used, 64 - used, used && factor > 0 ? "+%lld*%s" : "%lld*%s",
                     (long long)factor, symbol);
    return used + (size_t)n;
}

const char *graph_dim_text(char text[64], graph_dim d)
{
    if (d.is_unknown) {
        memcpy(text, "?", 2);
        return text;
    }
    size_t used = add_term(text, 0, d.batch_sequence, "batch*sequence");
    used = add_term(text, used, d.batch, "batch");
    used = add_term(text, used, d.sequence, "sequence");
    used = add_term(text, used, d.constant, NULL);
    if (used == 0)
        memcpy(text, "0", 2);
    return text;
}

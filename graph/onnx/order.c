#include <stdint.h>

#include "graph/onnx/importer.h"

/* The names that a node reads: its inputs, and what its branches read. Names defined inside a
 * branch are included; they do no harm, as this body does not have them. */
typedef struct name_list {
    arena *memory;
    const char **names;
    size_t count, capacity;
    bool is_out_of_memory; /* some names are missing */
} name_list;

static void add_name(name_list *list, const char *name)
{
    if (name == NULL || name[0] == 0)
        return;
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 64;
        const char **moved = arena_allocate_zeroed(list->memory, capacity, sizeof moved[0]);
        if (moved == NULL) {
            list->is_out_of_memory = true;
            return;
        }
        for (size_t i = 0; i < list->count; i++)
            moved[i] = list->names[i];
        list->names = moved;
        list->capacity = capacity;
    }
    list->names[list->count++] = name;
}

static void add_names_read(name_list *list, const Onnx__Node *node)
{
    for (size_t i = 0; i < node->n_input; i++)
        add_name(list, node->input[i]);
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__Graph *body = node->attribute[i]->g;
        if (body == NULL)
            continue;
        for (size_t j = 0; j < body->n_node; j++)
            add_names_read(list, body->node[j]);
        for (size_t j = 0; j < body->n_output; j++)
            add_name(list, body->output[j]->name);
    }
}

static const char *describe(const Onnx__Node *node)
{
    if (node->name != NULL && node->name[0] != 0)
        return node->name;
    return node->n_output > 0 && node->output[0] != NULL ? node->output[0] : "";
}

static status map_producers(name_map *producers, Onnx__Node *const *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < nodes[i]->n_output; j++) {
            const char *name = nodes[i]->output[j];
            int32_t other;
            if (name == NULL || name[0] == 0)
                continue;
            if (name_map_get(producers, name, &other))
                return status_fail(STATUS_CORRUPT, "nodes '%s' and '%s' both write the value '%s'",
                                   describe(nodes[other]), describe(nodes[i]), name);
            if (!name_map_put(producers, name, (int32_t)i))
                return onnx_fail_memory();
        }
    }
    return STATUS_OK;
}

/* Depth first from each node in the given order: a sorted list keeps its order. */
status onnx_order_nodes(arena *memory, Onnx__Node *const *nodes, size_t count, int32_t **order)
{
    enum { NEW, OPEN, DONE };
    if (count > INT32_MAX)
        return status_fail(STATUS_TOO_LARGE, "%zu nodes", count);
    name_map producers = {.memory = memory};
    status s = map_producers(&producers, nodes, count);
    if (s)
        return s;
    name_list reads = {.memory = memory};
    size_t *first = arena_allocate_zeroed(memory, count + 1, sizeof first[0]);
    int32_t *sorted = arena_allocate_zeroed(memory, count + 1, sizeof sorted[0]);
    int32_t *stack = arena_allocate_zeroed(memory, count + 1, sizeof stack[0]);
    size_t *next = arena_allocate_zeroed(memory, count + 1, sizeof next[0]);
    uint8_t *state = arena_allocate_zeroed(memory, count + 1, 1);
    if (first == NULL || sorted == NULL || stack == NULL || next == NULL || state == NULL)
        return onnx_fail_memory();
    for (size_t i = 0; i < count; i++) {
        first[i] = reads.count;
        add_names_read(&reads, nodes[i]);
    }
    first[count] = reads.count;
    if (reads.is_out_of_memory)
        return onnx_fail_memory();

    size_t sorted_count = 0;
    for (size_t root = 0; root < count; root++) {
        size_t depth = 0;
        if (state[root] == NEW) {
            stack[depth++] = (int32_t)root;
            state[root] = OPEN;
            next[root] = first[root];
        }
        while (depth > 0) {
            int32_t node = stack[depth - 1], producer;
            if (next[node] == first[node + 1]) {
                state[node] = DONE;
                sorted[sorted_count++] = node;
                depth--;
                continue;
            }
            const char *name = reads.names[next[node]++];
            if (!name_map_get(&producers, name, &producer) || state[producer] == DONE)
                continue;
            if (state[producer] == OPEN)
                return status_fail(STATUS_CORRUPT, "node '%s' depends on itself through '%s'",
                                   describe(nodes[node]), name);
            state[producer] = OPEN;
            next[producer] = first[producer];
            stack[depth++] = producer;
        }
    }
    *order = sorted;
    return STATUS_OK;
}

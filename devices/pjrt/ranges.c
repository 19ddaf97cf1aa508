#include "devices/pjrt/ranges.h"

#include <string.h>

#include "devices/cpu/tensor_loops/index.h"

/* The graph input whose integers this value holds, reshaped or cast; or -1. */
static int input_behind(const graph *g, graph_value_index v)
{
    for (;;) {
        for (int i = 0; i < g->input_count; i++)
            if (g->inputs[i] == v)
                return i;
        int32_t producer = g->values[v].producer;
        if (producer < 0 || !dtype_is_integer(g->values[v].dtype))
            return -1;
        const graph_node *n = &g->nodes[producer];
        switch (n->op) {
        case GRAPH_OP_CAST:
        case GRAPH_OP_IDENTITY:
        case GRAPH_OP_RESHAPE:
        case GRAPH_OP_FLATTEN:
        case GRAPH_OP_SQUEEZE:
        case GRAPH_OP_UNSQUEEZE:
        case GRAPH_OP_TRANSPOSE:
            v = n->inputs[0];
            break;
        default:
            return -1;
        }
    }
}

static void add(pjrt_range *ranges, int *count, pjrt_range r)
{
    for (int i = 0; i < *count; i++)
        if (ranges[i].input == r.input) {
            if (r.limit < ranges[i].limit) /* the smallest limit includes the others */
                ranges[i] = r;
            return;
        }
    ranges[(*count)++] = r;
}

static const char *copy_name(arena *memory, const char *name)
{
    const char *copy = arena_copy_string(memory, name, strlen(name));
    return copy != NULL ? copy : "";
}

int pjrt_ranges_find(const graph *g, arena *memory, pjrt_range **out)
{
    int count = 0;
    *out = arena_allocate_zeroed(memory, (size_t)g->input_count + 1, sizeof **out);
    if (*out == NULL)
        return 0;
    for (int32_t i = 0; i < g->node_count; i++) {
        const graph_node *n = &g->nodes[i];
        bool is_gather = n->op == GRAPH_OP_GATHER || n->op == GRAPH_OP_GATHER_ELEMENTS;
        if (!is_gather)
            continue;
        int input = input_behind(g, n->inputs[1]);
        const graph_shape *table = &g->values[n->inputs[0]].shape;
        int64_t axis = graph_attribute_int(n, "axis", 0);
        if (input < 0 || !dtype_is_integer(g->values[g->inputs[input]].dtype))
            continue;
        int64_t limit = table->dims[axis < 0 ? axis + table->rank : axis].constant;
        add(*out, &count,
            (pjrt_range){input, limit, copy_name(memory, g->values[g->inputs[input]].name)});
    }
    return count;
}

status pjrt_ranges_check(const pjrt_range *ranges, int count, const tensor *inputs)
{
    for (int r = 0; r < count; r++) {
        const tensor *t = &inputs[ranges[r].input];
        int64_t length = t->rank > 1 ? tensor_count(t) / t->dims[0] : 1;
        for (int64_t i = 0, n = tensor_count(t); i < n; i++) {
            int64_t index;
            if (cpu_index_at(t, i, ranges[r].limit, &index))
                return status_fail(
                    STATUS_INVALID_ARGUMENT,
                    "input \"%s\": %lld at row %lld, position %lld; ids are 0 to %lld",
                    ranges[r].name, (long long)tensor_get_integer(t, i), (long long)(i / length),
                    (long long)(i % length), (long long)ranges[r].limit - 1);
        }
    }
    return STATUS_OK;
}

#include "graph/scales.h"

#include <math.h>

static bool has_nonfinite(const graph *g, graph_value_index v)
{
    const tensor *t = v == GRAPH_NO_VALUE ? NULL : g->values[v].constant;
    if (t == NULL || !dtype_is_float(t->dtype))
        return false;
    for (int64_t i = 0; i < tensor_count(t); i++)
        if (!isfinite(tensor_get_number(t, i)))
            return true;
    return false;
}

int graph_count_nonfinite_scales(const graph *g, const char **first)
{
    int count = 0;
    for (int32_t i = 0; i < g->node_count; i++) {
        const graph_node *n = &g->nodes[i];
        bool has_one = n->op == GRAPH_OP_QUANTIZE_LINEAR || n->op == GRAPH_OP_DEQUANTIZE_LINEAR;
        bool has_three = n->op == GRAPH_OP_QLINEAR_CONV || n->op == GRAPH_OP_QLINEAR_MATMUL;
        if (!((has_one || has_three) && has_nonfinite(g, graph_input_of(n, 1))) &&
            !(has_three &&
              (has_nonfinite(g, graph_input_of(n, 4)) || has_nonfinite(g, graph_input_of(n, 6)))))
            continue;
        if (count++ == 0)
            *first = n->name;
    }
    return count;
}

#include "graph/dense_layers.h"

#include <assert.h>

static bool is_matmul(graph_op op)
{
    return op == GRAPH_OP_MATMUL || op == GRAPH_OP_GEMM || op == GRAPH_OP_MATMUL_INTEGER ||
           op == GRAPH_OP_QLINEAR_MATMUL;
}

static bool read_layer(const graph *g, const graph_node *n, graph_dense_layer *out)
{
    /* QLinearMatMul: a, its scale and zero point, then b. */
    graph_value_index a = graph_input_of(n, 0);
    graph_value_index b = graph_input_of(n, n->op == GRAPH_OP_QLINEAR_MATMUL ? 3 : 1);
    if (!is_matmul(n->op) || a < 0 || b < 0)
        return false;
    const graph_shape *left = &g->values[a].shape, *right = &g->values[b].shape;
    if (left->rank < 1 || right->rank != 2)
        return false;
    bool is_gemm = n->op == GRAPH_OP_GEMM;
    int depth_axis = is_gemm && graph_attribute_int(n, "transB", 0) ? 1 : 0;
    *out = (graph_dense_layer){n->name, 1, right->dims[depth_axis].constant,
                               right->dims[1 - depth_axis].constant};
    if (is_gemm && graph_attribute_int(n, "transA", 0))
        out->rows = left->dims[1].constant;
    else
        for (int i = 0; i < left->rank - 1; i++)
            out->rows *= left->dims[i].constant;
    return out->rows > 0 && out->depth > 0 && out->width > 0;
}

int graph_find_dense_layers(const graph *specialised, graph_dense_layer *out, int capacity)
{
    int count = 0;
    graph_dense_layer layer;
    for (int32_t i = 0; i < specialised->node_count; i++)
        if (read_layer(specialised, &specialised->nodes[i], &layer)) {
            if (count < capacity)
                out[count] = layer;
            count++;
        }
    return count;
}

static double padded(int64_t size, int64_t tile)
{
    return (double)((size + tile - 1) / tile * tile);
}

double graph_dense_waste(const graph_dense_layer *layer, int64_t tile)
{
    assert(tile > 0);
    double real = (double)layer->rows * (double)layer->depth * (double)layer->width;
    return 1 - real / (padded(layer->rows, tile) * padded(layer->depth, tile) *
                       padded(layer->width, tile));
}

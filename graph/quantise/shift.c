#include "graph/quantise/internal.h"

/* Which int8 activations are kept as uint8, with 128 added. */

/* An int8 tensor may be kept as uint8 when every reader can read it so, and when its producer is a
 * QuantizeLinear or a QLinear layer, or moves a tensor that is kept as uint8 itself. */
static void guess_shifted(fusion *w)
{
    const graph *g = w->g;
    quantised_tensor unused;
    for (int32_t v = 0; v < g->value_count; v++)
        w->is_shifted[v] = fusion_type(w, v) == DTYPE_I8 && fusion_producer(w, v);
    for (int i = 0; i < g->output_count; i++)
        w->is_shifted[g->outputs[i]] = false;
    for (int32_t n = g->node_count - 1; n >= 0; n--) {
        const graph_node *node = &g->nodes[n];
        for (int i = 0; i < node->input_count; i++) {
            graph_value_index v = node->inputs[i];
            if (v == GRAPH_NO_VALUE)
                continue;
            bool is_supported =
                i == 0 && ((node->op == GRAPH_OP_DEQUANTIZE_LINEAR &&
                            fusion_read_parameters(w, node, &unused)) ||
                           fusion_is_qlinear_layer(w, node) ||
                           (fusion_is_move(node) && w->is_shifted[node->outputs[0]]));
            w->is_shifted[v] &= is_supported;
        }
    }
    for (int32_t n = 0; n < g->node_count; n++) {
        const graph_node *node = &g->nodes[n];
        for (int i = 0; i < node->output_count; i++) {
            graph_value_index v = node->outputs[i];
            if (v == GRAPH_NO_VALUE || !w->is_shifted[v])
                continue;
            w->is_shifted[v] = (node->op == GRAPH_OP_QUANTIZE_LINEAR &&
                                fusion_read_parameters(w, node, &unused)) ||
                               fusion_is_qlinear_layer(w, node) ||
                               (fusion_is_move(node) && w->is_shifted[node->inputs[0]]);
        }
    }
}

/* A move keeps its output as it keeps its input. True: something changed, look again. */
static bool settle_shifted(fusion *w)
{
    const graph *g = w->g;
    bool changed = false;
    for (int32_t n = g->node_count - 1; n >= 0; n--) {
        const graph_node *node = &g->nodes[n];
        if (!fusion_is_move(node) ||
            w->is_shifted[node->inputs[0]] == w->is_shifted[node->outputs[0]])
            continue;
        w->is_shifted[node->inputs[0]] = w->is_shifted[node->outputs[0]] = false;
        changed = true;
    }
    return changed;
}

void fusion_find_shifted(fusion *w)
{
    guess_shifted(w);
    while (settle_shifted(w))
        ;
}

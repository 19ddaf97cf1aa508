#include "graph/quantise/internal.h"

/* Which i8 activations are kept as u8, with 128 added. */

/* An i8 tensor may be kept as u8 when only nodes read it that know: then those that make it from
 * floats, or move one that is kept so, make it so. */
static void guess_shifted(quantised_work *w)
{
    const graph *g = w->g;
    quantised_tensor unused;
    for (int32_t v = 0; v < g->value_count; v++)
        w->is_shifted[v] = quantised_type(w, v) == DTYPE_I8 && quantised_producer(w, v);
    for (int i = 0; i < g->output_count; i++)
        w->is_shifted[g->outputs[i]] = false;
    for (int32_t n = g->node_count - 1; n >= 0; n--) {
        const graph_node *node = &g->nodes[n];
        for (int i = 0; i < node->input_count; i++) {
            graph_value_index v = node->inputs[i];
            if (v == GRAPH_NO_VALUE)
                continue;
            bool knows = i == 0 && ((node->op == GRAPH_OP_DEQUANTIZE_LINEAR &&
                                     quantised_parameters(w, node, &unused)) ||
                                    (quantised_is_move(node) && w->is_shifted[node->outputs[0]]));
            w->is_shifted[v] &= knows;
        }
    }
    for (int32_t n = 0; n < g->node_count; n++) {
        const graph_node *node = &g->nodes[n];
        for (int i = 0; i < node->output_count; i++) {
            graph_value_index v = node->outputs[i];
            if (v == GRAPH_NO_VALUE || !w->is_shifted[v])
                continue;
            w->is_shifted[v] =
                (node->op == GRAPH_OP_QUANTIZE_LINEAR && quantised_parameters(w, node, &unused)) ||
                (quantised_is_move(node) && w->is_shifted[node->inputs[0]]);
        }
    }
}

/* Whether it became false above after a reader had trusted it: moves agree with their input. */
static bool settle_shifted(quantised_work *w)
{
    const graph *g = w->g;
    bool changed = false;
    for (int32_t n = g->node_count - 1; n >= 0; n--) {
        const graph_node *node = &g->nodes[n];
        if (!quantised_is_move(node) ||
            w->is_shifted[node->inputs[0]] == w->is_shifted[node->outputs[0]])
            continue;
        w->is_shifted[node->inputs[0]] = w->is_shifted[node->outputs[0]] = false;
        changed = true;
    }
    return changed;
}

void quantised_find_shifted(quantised_work *w)
{
    guess_shifted(w);
    while (settle_shifted(w))
        ;
}

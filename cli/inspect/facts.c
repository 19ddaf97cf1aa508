#include "cli/inspect/facts.h"

#include <stdlib.h>
#include <string.h>

#include "devices/cpu/evaluate.h"
#include "graph/quantise/fuse.h"
#include "graph/specialise/specialise.h"

void inspect_count_operators(const graph *g, int counts[GRAPH_OP_COUNT])
{
    memset(counts, 0, GRAPH_OP_COUNT * sizeof(int));
    for (int32_t i = 0; i < g->node_count; i++)
        counts[g->nodes[i].op]++;
}

inspect_fusion inspect_count_fused(const model *m)
{
    fused_facts facts = {0};
    inspect_fusion out = {0};
    graph *specialised = NULL, *fused = NULL;
    tensor *inputs = calloc((size_t)m->graph->input_count + 1, sizeof *inputs);
    /* A model that runs at exact lengths has no buckets. */
    int64_t batch = m->bucket_count ? m->buckets[0].shape.batch : 1;
    int64_t sequence = m->bucket_count                 ? m->buckets[0].shape.sequence
                       : m->batching.sequence_max > 16 ? 16
                                                       : m->batching.sequence_max;
    if (inputs && m->on_device.exported == NULL &&
        graph_bind(m->graph, batch, sequence, inputs) == STATUS_OK &&
        graph_specialise(m->graph, &(graph_binding){.inputs = inputs}, cpu_evaluate_node,
                         &specialised) == STATUS_OK &&
        graph_fuse_layers(specialised, &fused, &facts) == STATUS_OK) {
        int counts[GRAPH_OP_COUNT];
        out.fused = facts.fused_layer_count;
        out.fused_int8 = facts.quantised_layer_count;
        inspect_count_operators(fused, counts);
        out.unfused = counts[GRAPH_OP_MATMUL] + counts[GRAPH_OP_GEMM] + counts[GRAPH_OP_CONV] +
                      counts[GRAPH_OP_MATMUL_INTEGER] + counts[GRAPH_OP_CONV_INTEGER] +
                      counts[GRAPH_OP_QLINEAR_MATMUL] + counts[GRAPH_OP_QLINEAR_CONV];
    }
    graph_destroy(fused);
    graph_destroy(specialised);
    free(inputs);
    return out;
}

int inspect_padded_buckets(const model *m)
{
    int count = 0;
    while (count < m->bucket_count && m->buckets[count].sequences == 0)
        count++;
    return count;
}

#include "cli/inspect/facts.h"

#include <stdlib.h>
#include <string.h>

#include "devices/cpu/evaluate.h"
#include "graph/quantise/fuse.h"
#include "graph/quantise/lines.h"
#include "graph/quantise/widen.h"
#include "graph/specialise/specialise.h"

void inspect_count_operators(const graph *g, int counts[GRAPH_OP_COUNT])
{
    memset(counts, 0, GRAPH_OP_COUNT * sizeof(int));
    for (int32_t i = 0; i < g->node_count; i++)
        counts[g->nodes[i].op]++;
}

static const float *widen(void *context, const tensor *half)
{
    size_t count = (size_t)tensor_count(half);
    const uint16_t *from = half->data;
    float *out = arena_allocate(context, (count + 1) * sizeof *out);
    for (size_t i = 0; out != NULL && i < count; i++)
        out[i] = half->dtype == DTYPE_F16 ? dtype_f16_to_f32(from[i]) : dtype_bf16_to_f32(from[i]);
    return out;
}

static void count_layers(const graph *fused, const fused_facts *facts, inspect_fusion *out)
{
    int counts[GRAPH_OP_COUNT];
    inspect_count_operators(fused, counts);
    out->fused = facts->fused_layer_count;
    out->fused_int8 = facts->quantised_layer_count;
    out->unfused = counts[GRAPH_OP_MATMUL] + counts[GRAPH_OP_GEMM] + counts[GRAPH_OP_CONV] +
                   counts[GRAPH_OP_MATMUL_INTEGER] + counts[GRAPH_OP_CONV_INTEGER] +
                   counts[GRAPH_OP_QLINEAR_MATMUL] + counts[GRAPH_OP_QLINEAR_CONV];
}

/* The passes of cpu_plan_create(), in its order. */
static void fuse(const graph *specialised, inspect_fusion *out)
{
    fused_facts facts = {0};
    graph *wide = NULL, *lines = NULL, *fused = NULL;
    arena memory = {0};
    if (graph_widen_halves(specialised, widen, &memory, &wide) == STATUS_OK &&
        graph_lift_lines(wide ? wide : specialised, &lines) == STATUS_OK &&
        graph_fuse_layers(lines  ? lines
                          : wide ? wide
                                 : specialised,
                          &fused, &facts) == STATUS_OK)
        count_layers(fused, &facts, out);
    graph_destroy(fused);
    graph_destroy(lines);
    graph_destroy(wide);
    arena_dispose(&memory);
}

inspect_fusion inspect_count_fused(const model *m)
{
    inspect_fusion out = {0};
    graph *specialised = NULL;
    tensor *inputs = calloc((size_t)m->graph->input_count + 1, sizeof *inputs);
    /* A model that runs at exact lengths has no buckets. */
    int64_t batch = m->bucket_count ? m->buckets[0].shape.batch : 1;
    int64_t sequence = m->bucket_count                 ? m->buckets[0].shape.sequence
                       : m->batching.sequence_max > 16 ? 16
                                                       : m->batching.sequence_max;
    if (inputs && m->on_device.exported == NULL &&
        graph_bind(m->graph, batch, sequence, inputs) == STATUS_OK &&
        graph_specialise(m->graph, &(graph_binding){.inputs = inputs}, cpu_evaluate_node,
                         &specialised) == STATUS_OK)
        fuse(specialised, &out);
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

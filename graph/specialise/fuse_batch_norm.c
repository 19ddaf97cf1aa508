#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "graph/specialise/fuse_batch_norm.h"

/* y = (conv(x) - mean) * scale / sqrt(variance + epsilon) + bias, channel by channel: a Conv whose
 * weights and bias are multiplied and shifted (arXiv 1502.03167, section 3.1). */
typedef struct channel_constants {
    const tensor *scale, *bias, *mean, *variance;
    double epsilon;
} channel_constants;

static const tensor *find_floats(const graph *g, graph_value_index v, int rank, int64_t channels)
{
    const tensor *t = v == GRAPH_NO_VALUE ? NULL : g->values[v].constant;
    if (t == NULL || t->dtype != DTYPE_F32 || (rank > 0 && t->rank != rank) || t->rank < 1 ||
        t->dims[0] != channels)
        return NULL;
    return t;
}

static bool read_batch_norm(const graph *g, const graph_node *n, int64_t channels,
                            channel_constants *out)
{
    for (int i = 1; i < n->output_count; i++)
        if (n->outputs[i] != GRAPH_NO_VALUE)
            return false;
    if (graph_attribute_int(n, "training_mode", 0) != 0 || n->input_count != 5)
        return false;
    out->scale = find_floats(g, n->inputs[1], 1, channels);
    out->bias = find_floats(g, n->inputs[2], 1, channels);
    out->mean = find_floats(g, n->inputs[3], 1, channels);
    out->variance = find_floats(g, n->inputs[4], 1, channels);
    out->epsilon = (double)graph_attribute_float(n, "epsilon", 1e-5f);
    return out->scale != NULL && out->bias != NULL && out->mean != NULL && out->variance != NULL;
}

/* Replaces weights and bias of `conv` by those that include the normalisation. */
static void fold_channels(graph *g, graph_node *conv, const tensor *weights, const tensor *bias,
                          const channel_constants *c)
{
    tensor folded, shifts;
    int64_t channels = weights->dims[0];
    if (tensor_allocate(&folded, &g->memory, DTYPE_F32, weights->rank, weights->dims) ||
        tensor_allocate(&shifts, &g->memory, DTYPE_F32, 1, &channels))
        abort();
    const float *w = weights->data, *b = bias != NULL ? bias->data : NULL;
    int64_t per_channel = channels > 0 ? tensor_count(weights) / channels : 0;
    for (int64_t m = 0; m < channels; m++) {
        double factor = (double)((const float *)c->scale->data)[m] /
                        sqrt((double)((const float *)c->variance->data)[m] + c->epsilon);
        double from = (b != NULL ? (double)b[m] : 0) - (double)((const float *)c->mean->data)[m];
        ((float *)shifts.data)[m] =
            (float)(from * factor + (double)((const float *)c->bias->data)[m]);
        for (int64_t i = m * per_channel; i < (m + 1) * per_channel; i++)
            ((float *)folded.data)[i] = (float)((double)w[i] * factor);
    }
    graph_value_index *inputs = arena_allocate(&g->memory, 3 * sizeof inputs[0]);
    if (inputs == NULL)
        abort();
    inputs[0] = conv->inputs[0];
    inputs[1] = graph_add_constant(g, NULL, &folded);
    inputs[2] = graph_add_constant(g, NULL, &shifts);
    conv->inputs = inputs;
    conv->input_count = 3;
}

/* The number of readers of each value; a graph output counts as one. */
static int32_t *count_readers(const graph *g)
{
    int32_t *readers = calloc((size_t)g->value_count + 1, sizeof readers[0]);
    if (readers == NULL)
        abort();
    for (int32_t i = 0; i < g->node_count; i++)
        for (int k = 0; k < g->nodes[i].input_count; k++)
            if (g->nodes[i].inputs[k] != GRAPH_NO_VALUE)
                readers[g->nodes[i].inputs[k]]++;
    for (int i = 0; i < g->output_count; i++)
        readers[g->outputs[i]]++;
    return readers;
}

/* Folds node `n` into the Conv before it; false: the node stays. */
static bool fold_batch_norm(graph *g, const graph_node *n, const int32_t *readers)
{
    graph_value_index between = n->inputs[0];
    int32_t producer = g->values[between].producer;
    channel_constants constants;
    if (producer < 0 || readers[between] != 1 || g->nodes[producer].op != GRAPH_OP_CONV)
        return false;
    graph_node *conv = &g->nodes[producer];
    const tensor *weights = g->values[conv->inputs[1]].constant, *bias = NULL;
    if (weights == NULL || find_floats(g, conv->inputs[1], 0, weights->dims[0]) == NULL ||
        !read_batch_norm(g, n, weights->dims[0], &constants))
        return false;
    if (graph_input_of(conv, 2) != GRAPH_NO_VALUE) {
        bias = find_floats(g, conv->inputs[2], 1, weights->dims[0]);
        if (bias == NULL)
            return false;
    }
    fold_channels(g, conv, weights, bias, &constants);
    conv->outputs[0] = n->outputs[0];
    return true;
}

int graph_fuse_batch_norms(graph *g)
{
    assert(g != NULL);
    int32_t *readers = count_readers(g);
    int32_t values = g->value_count, kept = 0;
    int folded = 0;
    for (int32_t i = 0; i < g->node_count; i++) {
        graph_node n = g->nodes[i];
        if (n.op == GRAPH_OP_BATCH_NORMALIZATION && n.inputs[0] < values &&
            fold_batch_norm(g, &n, readers)) {
            g->values[n.outputs[0]].producer = g->values[n.inputs[0]].producer;
            g->values[n.inputs[0]].producer = -1;
            folded++;
            continue;
        }
        for (int k = 0; k < n.output_count; k++)
            if (n.outputs[k] != GRAPH_NO_VALUE)
                g->values[n.outputs[k]].producer = kept;
        g->nodes[kept++] = n;
    }
    g->node_count = kept;
    free(readers);
    return folded;
}

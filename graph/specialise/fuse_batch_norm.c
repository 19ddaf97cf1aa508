#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "graph/specialise/fuse_batch_norm.h"

/* What follows a Conv channel by channel: y = factor * conv(x) + shift, a Conv whose weights and
 * bias are multiplied and shifted. */
typedef struct channel_affine {
    int64_t channels;
    double *factor, *shift; /* [channels] */
} channel_affine;

/* One float per channel. */
static const tensor *find_floats(const graph *g, graph_value_index v, int64_t channels)
{
    const tensor *t = v == GRAPH_NO_VALUE ? NULL : g->values[v].constant;
    bool fits = t && t->dtype == DTYPE_F32 && t->rank == 1 && t->dims[0] == channels;
    return fits ? t : NULL;
}

/* (x - mean) * scale / sqrt(variance + epsilon) + bias (arXiv 1502.03167, section 3.1). */
static bool read_batch_norm(const graph *g, const graph_node *n, channel_affine *out)
{
    const tensor *c[5] = {NULL};
    for (int i = 1; i < n->output_count; i++)
        if (n->outputs[i] != GRAPH_NO_VALUE)
            return false;
    if (graph_attribute_int(n, "training_mode", 0) != 0 || n->input_count != 5)
        return false;
    for (int i = 1; i < 5; i++)
        if ((c[i] = find_floats(g, n->inputs[i], out->channels)) == NULL)
            return false;
    double epsilon = (double)graph_attribute_float(n, "epsilon", 1e-5f);
    for (int64_t m = 0; m < out->channels; m++) {
        const float *scale = c[1]->data, *bias = c[2]->data, *mean = c[3]->data;
        const float *variance = c[4]->data;
        out->factor[m] = (double)scale[m] / sqrt((double)variance[m] + epsilon);
        out->shift[m] = (double)bias[m] - (double)mean[m] * out->factor[m];
    }
    return true;
}

/* Whether `t` is one number, or one per channel of images of that rank. */
static bool lies_along_channels(const tensor *t, int rank, int64_t channels)
{
    int64_t count = tensor_count(t);
    int axis = t->rank - (rank - 1);
    return t->dtype == DTYPE_F32 && t->rank <= rank &&
           (count == 1 || (count == channels && axis >= 0 && t->dims[axis] == channels));
}

/* A Mul or an Add of constants. */
static bool read_affine(const graph *g, const graph_node *n, graph_value_index between, int rank,
                        channel_affine *out)
{
    if (n->input_count != 2 || (n->op != GRAPH_OP_MUL && n->op != GRAPH_OP_ADD))
        return false;
    const tensor *t = g->values[n->inputs[n->inputs[0] == between]].constant;
    if (t == NULL || !lies_along_channels(t, rank, out->channels))
        return false;
    for (int64_t m = 0; m < out->channels; m++) {
        double x = (double)((const float *)t->data)[tensor_count(t) == 1 ? 0 : m];
        out->factor[m] = n->op == GRAPH_OP_MUL ? x : 1;
        out->shift[m] = n->op == GRAPH_OP_MUL ? 0 : x;
    }
    return true;
}

/* Of the weights: which axis has the output channels. */
static int channel_axis(const graph_node *conv)
{
    return conv->op == GRAPH_OP_CONV ? 0 : 1;
}

/* A Conv, or a ConvTranspose without groups. */
static bool is_convolution(const graph_node *n)
{
    return n->op == GRAPH_OP_CONV ||
           (n->op == GRAPH_OP_CONV_TRANSPOSE && graph_attribute_int(n, "group", 1) == 1);
}

/* Replaces weights and bias of `conv` by those that include `c`. False: out of memory. */
static bool fold_channels(graph *g, graph_node *conv, const tensor *weights, const tensor *bias,
                          const channel_affine *c)
{
    tensor folded, shifts;
    int64_t inner = 1;
    for (int d = channel_axis(conv) + 1; d < weights->rank; d++)
        inner *= weights->dims[d];
    if (tensor_allocate(&folded, &g->memory, DTYPE_F32, weights->rank, weights->dims) ||
        tensor_allocate(&shifts, &g->memory, DTYPE_F32, 1, &c->channels))
        return false;
    const float *w = weights->data, *b = bias != NULL ? bias->data : NULL;
    for (int64_t m = 0; m < c->channels; m++) {
        double from = b != NULL ? (double)b[m] : 0;
        ((float *)shifts.data)[m] = (float)(from * c->factor[m] + c->shift[m]);
    }
    float *to = folded.data;
    int64_t runs = inner > 0 ? tensor_count(weights) / inner : 0;
    for (int64_t run = 0, m = 0; run < runs; run++, m = m + 1 < c->channels ? m + 1 : 0)
        for (int64_t k = 0; k < inner; k++)
            *to++ = (float)((double)*w++ * c->factor[m]);
    graph_value_index *inputs = arena_allocate(&g->memory, 3 * sizeof inputs[0]);
    if (inputs == NULL)
        return false;
    inputs[0] = conv->inputs[0];
    inputs[1] = graph_add_constant(g, NULL, &folded);
    inputs[2] = graph_add_constant(g, NULL, &shifts);
    conv->inputs = inputs;
    conv->input_count = 3;
    return true;
}

/* The number of readers of each value; a graph output counts as one. NULL: out of memory. */
static int32_t *count_readers(const graph *g)
{
    int32_t *readers = calloc((size_t)g->value_count + 1, sizeof readers[0]);
    if (readers == NULL)
        return NULL;
    for (int32_t i = 0; i < g->node_count; i++)
        for (int k = 0; k < g->nodes[i].input_count; k++)
            if (g->nodes[i].inputs[k] != GRAPH_NO_VALUE)
                readers[g->nodes[i].inputs[k]]++;
    for (int i = 0; i < g->output_count; i++)
        readers[g->outputs[i]]++;
    return readers;
}

/* The value that a Conv makes for `n` alone, or GRAPH_NO_VALUE. */
static graph_value_index find_between(const graph *g, const graph_node *n, const int32_t *readers,
                                      int32_t values)
{
    if (n->op != GRAPH_OP_BATCH_NORMALIZATION && n->op != GRAPH_OP_MUL && n->op != GRAPH_OP_ADD)
        return GRAPH_NO_VALUE;
    int candidates = n->op == GRAPH_OP_BATCH_NORMALIZATION ? 1 : n->input_count;
    for (int i = 0; i < candidates; i++) {
        graph_value_index v = n->inputs[i];
        if (v == GRAPH_NO_VALUE || v >= values)
            continue;
        int32_t producer = g->values[v].producer;
        if (producer >= 0 && readers[v] == 1 && is_convolution(&g->nodes[producer]))
            return v;
    }
    return GRAPH_NO_VALUE;
}

/* Folds node `n` into the Conv that makes `between`; false: the node stays. */
static bool fold_node(graph *g, const graph_node *n, graph_value_index between)
{
    graph_node *conv = &g->nodes[g->values[between].producer];
    const tensor *weights = g->values[conv->inputs[1]].constant, *bias = NULL;
    if (weights == NULL || weights->dtype != DTYPE_F32 || weights->rank < 3)
        return false;
    int64_t channels = weights->dims[channel_axis(conv)];
    if (graph_input_of(conv, 2) != GRAPH_NO_VALUE &&
        (bias = find_floats(g, conv->inputs[2], channels)) == NULL)
        return false;
    channel_affine c = {channels, calloc(2 * (size_t)channels + 1, sizeof *c.factor), NULL};
    if (c.factor == NULL) {
        graph_lack_memory(g);
        return false;
    }
    c.shift = c.factor + channels;
    bool is_read = n->op == GRAPH_OP_BATCH_NORMALIZATION
                       ? read_batch_norm(g, n, &c)
                       : read_affine(g, n, between, weights->rank, &c);
    bool is_folded = is_read && fold_channels(g, conv, weights, bias, &c);
    if (is_folded)
        conv->outputs[0] = n->outputs[0];
    else if (is_read)
        graph_lack_memory(g);
    free(c.factor);
    return is_folded;
}

int graph_fuse_batch_norms(graph *g)
{
    assert(g != NULL);
    int32_t *readers = count_readers(g);
    int32_t values = g->value_count, kept = 0;
    int folded = 0;
    if (readers == NULL) {
        graph_lack_memory(g);
        return 0;
    }
    for (int32_t i = 0; i < g->node_count; i++) {
        graph_node n = g->nodes[i];
        graph_value_index between = find_between(g, &n, readers, values);
        if (between != GRAPH_NO_VALUE && fold_node(g, &n, between)) {
            g->values[n.outputs[0]].producer = g->values[between].producer;
            g->values[between].producer = -1;
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

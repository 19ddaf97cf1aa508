#include <string.h>

#include "graph/shapes/rules.h"
#include "graph/specialise/internal.h"

static bool is_identity_permutation(const graph_node *node, const tensor *x)
{
    size_t count;
    const int64_t *perm = infer_ints(node, "perm", &count);
    int64_t last = -1;
    for (int i = 0; i < x->rank; i++) {
        int64_t from = perm != NULL ? perm[i] : x->rank - 1 - i;
        if (x->dims[from] == 1)
            continue; /* a dim of 1 may move: no element does */
        if (from < last)
            return false;
        last = from;
    }
    return true;
}

static bool is_all(const tensor *t, int64_t value)
{
    if (t == NULL)
        return true;
    if (!infer_is_known(t))
        return false;
    for (int64_t i = 0; i < tensor_count(t); i++)
        if (tensor_get_integer(t, i) != value)
            return false;
    return true;
}

bool specialise_is_view(const graph_node *node, const tensor *const *in, const tensor *out)
{
    switch (node->op) {
    case GRAPH_OP_IDENTITY:
    case GRAPH_OP_RESHAPE:
    case GRAPH_OP_FLATTEN:
    case GRAPH_OP_SQUEEZE:
    case GRAPH_OP_UNSQUEEZE:
        return true;
    case GRAPH_OP_CAST:
    case GRAPH_OP_CAST_LIKE:
        return in[0]->dtype == out->dtype;
    case GRAPH_OP_TRANSPOSE:
        return is_identity_permutation(node, in[0]);
    case GRAPH_OP_EXPAND:
    case GRAPH_OP_TILE:
        return tensor_same_shape(in[0], out);
    case GRAPH_OP_SLICE:
        return tensor_same_shape(in[0], out) && (node->input_count < 5 || is_all(in[4], 1));
    case GRAPH_OP_PAD:
        return tensor_same_shape(in[0], out) && is_all(in[1], 0);
    case GRAPH_OP_SPLIT:
        return node->output_count == 1;
    case GRAPH_OP_CONCAT:
    case GRAPH_OP_SUM:
    case GRAPH_OP_MEAN:
    case GRAPH_OP_MAX:
    case GRAPH_OP_MIN:
        return node->input_count == 1;
    default:
        return false;
    }
}

uint32_t specialise_shape_inputs(graph_op op)
{
    switch (op) {
    case GRAPH_OP_CONSTANT_OF_SHAPE:
    case GRAPH_OP_NON_ZERO:
    case GRAPH_OP_UNIQUE:
    case GRAPH_OP_BLACKMAN_WINDOW:
    case GRAPH_OP_HAMMING_WINDOW:
    case GRAPH_OP_HANN_WINDOW:
        return 1u << 0;
    case GRAPH_OP_RESHAPE:
    case GRAPH_OP_EXPAND:
    case GRAPH_OP_TILE:
    case GRAPH_OP_SQUEEZE:
    case GRAPH_OP_UNSQUEEZE:
    case GRAPH_OP_SPLIT:
    case GRAPH_OP_COMPRESS:
    case GRAPH_OP_ONE_HOT:
    case GRAPH_OP_TOP_K:
    case GRAPH_OP_UPSAMPLE:
    case GRAPH_OP_REDUCE_L1:
    case GRAPH_OP_REDUCE_L2:
    case GRAPH_OP_REDUCE_LOG_SUM:
    case GRAPH_OP_REDUCE_LOG_SUM_EXP:
    case GRAPH_OP_REDUCE_MAX:
    case GRAPH_OP_REDUCE_MEAN:
    case GRAPH_OP_REDUCE_MIN:
    case GRAPH_OP_REDUCE_PROD:
    case GRAPH_OP_REDUCE_SUM:
    case GRAPH_OP_REDUCE_SUM_SQUARE:
        return 1u << 1;
    case GRAPH_OP_DFT:
        return 1u << 1 | 1u << 2;
    case GRAPH_OP_STFT:
        return 1u << 1 | 1u << 3;
    case GRAPH_OP_NON_MAX_SUPPRESSION:
        return 31u;
    case GRAPH_OP_MEL_WEIGHT_MATRIX:
        return 1u << 0 | 1u << 1;
    case GRAPH_OP_RANGE:
        return 7u;
    case GRAPH_OP_SLICE:
        return 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4;
    case GRAPH_OP_PAD:
        return 1u << 1 | 1u << 3;
    case GRAPH_OP_RESIZE:
        return 1u << 1 | 1u << 2 | 1u << 3;
    default:
        return 0;
    }
}

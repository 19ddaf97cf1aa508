#include <math.h>

#include "graph/quantise/internal.h"

/* Queries on the source graph: shapes, constants, scales. */

const graph_node *fusion_producer(const fusion *w, graph_value_index v)
{
    if (v == GRAPH_NO_VALUE || w->g->values[v].constant || w->g->values[v].producer < 0)
        return NULL;
    return &w->g->nodes[w->g->values[v].producer];
}

int fusion_rank(const fusion *w, graph_value_index v)
{
    const graph_value *value = &w->g->values[v];
    return value->constant ? value->constant->rank : value->shape.rank;
}

int64_t fusion_dim(const fusion *w, graph_value_index v, int axis)
{
    const graph_value *value = &w->g->values[v];
    return value->constant ? value->constant->dims[axis] : value->shape.dims[axis].constant;
}

int64_t fusion_count(const fusion *w, graph_value_index v)
{
    int64_t count = 1;
    for (int i = 0; i < fusion_rank(w, v); i++)
        count *= fusion_dim(w, v, i);
    return count;
}

dtype fusion_type(const fusion *w, graph_value_index v)
{
    const graph_value *value = &w->g->values[v];
    return value->constant ? value->constant->dtype : value->dtype;
}

const tensor *fusion_constant(const fusion *w, graph_value_index v)
{
    return v == GRAPH_NO_VALUE ? NULL : w->g->values[v].constant;
}

bool fusion_read_parameters(const fusion *w, const graph_node *n, quantised_tensor *out)
{
    const tensor *scale = fusion_constant(w, n->inputs[1]);
    graph_value_index zero_at = graph_input_of(n, 2);
    const tensor *zero = fusion_constant(w, zero_at);
    graph_value_index value = n->op == GRAPH_OP_QUANTIZE_LINEAR ? n->outputs[0] : n->inputs[0];
    dtype type = fusion_type(w, value);
    if (!scale || tensor_count(scale) != 1 || scale->dtype != DTYPE_F32 ||
        graph_attribute_int(n, "block_size", 0) != 0 || (zero_at != GRAPH_NO_VALUE && !zero) ||
        (type != DTYPE_U8 && type != DTYPE_I8))
        return false;
    out->value = value;
    out->scale = *(const float *)scale->data;
    out->zero = zero ? (int32_t)tensor_get_integer(zero, 0) : 0;
    out->zero += type == DTYPE_I8 ? 128 : 0;
    return out->scale > 0 && isfinite(out->scale);
}

bool fusion_find_uint8(const fusion *w, graph_value_index v, quantised_tensor *out)
{
    const graph_node *n = fusion_producer(w, v);
    if (!n || n->op != GRAPH_OP_DEQUANTIZE_LINEAR || fusion_type(w, v) != DTYPE_F32 ||
        !fusion_read_parameters(w, n, out))
        return false;
    return fusion_type(w, out->value) == DTYPE_U8 || w->is_shifted[out->value];
}

bool fusion_is_move(const graph_node *n)
{
    switch (n->op) {
    case GRAPH_OP_MAX_POOL:
        return n->output_count == 1 || n->outputs[1] == GRAPH_NO_VALUE;
    case GRAPH_OP_RESHAPE:
    case GRAPH_OP_FLATTEN:
    case GRAPH_OP_SQUEEZE:
    case GRAPH_OP_UNSQUEEZE:
    case GRAPH_OP_TRANSPOSE:
    case GRAPH_OP_IDENTITY:
    case GRAPH_OP_SLICE:
        return true;
    default:
        return false;
    }
}

#include <string.h>

#include "devices/cpu/ops/op.h"
#include "devices/cpu/tensor_loops/index.h"
#include "devices/cpu/tensor_loops/walk.h"

static status run_gather(const cpu_call *c)
{
    const tensor *data = c->inputs[0], *indices = c->inputs[1];
    tensor *out = &c->outputs[0];
    int axis = cpu_axis(graph_attribute_int(c->node, "axis", 0), data->rank);
    int64_t outer = cpu_dims_product(data->dims, 0, axis), limit = data->dims[axis];
    int64_t count = tensor_count(indices);
    size_t row =
        (size_t)cpu_dims_product(data->dims, axis + 1, data->rank) * dtype_bytes(data->dtype);
    char *to = out->data;
    for (int64_t o = 0; o < outer; o++) {
        const char *from = (const char *)data->data + (size_t)(o * limit) * row;
        for (int64_t i = 0; i < count; i++, to += row) {
            int64_t index = 0;
            status s = cpu_index_at(indices, i, limit, &index);
            if (s)
                return s;
            if (row)
                memcpy(to, from + (size_t)index * row, row);
        }
    }
    return STATUS_OK;
}

/* Indices of the shape of the data, but for the axis, and elements of 4 bytes. */
static status gather_words(const tensor *data, const tensor *indices, int axis, uint32_t *to)
{
    int64_t inner = cpu_dims_product(data->dims, axis + 1, data->rank), n = data->dims[axis];
    int64_t outer = cpu_dims_product(data->dims, 0, axis), count = indices->dims[axis];
    const int64_t *index = indices->data;
    for (int64_t o = 0; o < outer; o++) {
        const uint32_t *from = (const uint32_t *)data->data + o * n * inner;
        for (int64_t i = 0; i < count; i++)
            for (int64_t j = 0; j < inner; j++, index++) {
                int64_t at = *index < 0 ? *index + n : *index;
                if (at < 0 || at >= n)
                    return cpu_index_at(indices, index - (const int64_t *)indices->data, n, &at);
                *to++ = from[at * inner + j];
            }
    }
    return STATUS_OK;
}

static bool is_beside(const tensor *data, const tensor *indices, int axis)
{
    bool is_same = indices->dtype == DTYPE_I64 && dtype_bytes(data->dtype) == sizeof(uint32_t);
    for (int d = 0; d < data->rank; d++)
        is_same &= d == axis || data->dims[d] == indices->dims[d];
    return is_same;
}

static status run_gather_elements(const cpu_call *c)
{
    const tensor *data = c->inputs[0], *indices = c->inputs[1];
    tensor *out = &c->outputs[0];
    int axis = cpu_axis(graph_attribute_int(c->node, "axis", 0), data->rank);
    if (is_beside(data, indices, axis))
        return gather_words(data, indices, axis, out->data);
    int64_t strides[TENSOR_RANK_MAX], at[TENSOR_RANK_MAX] = {0}, count = tensor_count(out);
    size_t bytes = dtype_bytes(data->dtype);
    cpu_dense_strides(data->rank, data->dims, strides);
    for (int64_t i = 0; i < count; i++) {
        int64_t index = 0, from = 0;
        status s = cpu_index_at(indices, i, data->dims[axis], &index);
        if (s)
            return s;
        for (int d = 0; d < data->rank; d++)
            from += (d == axis ? index : at[d]) * strides[d];
        memcpy((char *)out->data + (size_t)i * bytes,
               (const char *)data->data + (size_t)from * bytes, bytes);
        for (int d = out->rank - 1; d >= 0 && ++at[d] == out->dims[d]; d--)
            at[d] = 0;
    }
    return STATUS_OK;
}

/* indices [..., k] name slices data[batch..., i0 .. ik-1, ...]. */
static status run_gather_nd(const cpu_call *c)
{
    const tensor *data = c->inputs[0], *indices = c->inputs[1];
    tensor *out = &c->outputs[0];
    int batch_dims = (int)graph_attribute_int(c->node, "batch_dims", 0);
    int k = (int)indices->dims[indices->rank - 1];
    int64_t batches = cpu_dims_product(indices->dims, 0, batch_dims);
    int64_t tuples = cpu_dims_product(indices->dims, batch_dims, indices->rank - 1);
    int64_t strides[TENSOR_RANK_MAX];
    cpu_dense_strides(data->rank, data->dims, strides);
    int64_t batch_stride = cpu_dims_product(data->dims, batch_dims, data->rank);
    size_t bytes = dtype_bytes(data->dtype);
    size_t slice = (size_t)cpu_dims_product(data->dims, batch_dims + k, data->rank) * bytes;
    char *to = out->data;
    for (int64_t b = 0; b < batches; b++)
        for (int64_t t = 0; t < tuples; t++, to += slice) {
            int64_t from = b * batch_stride;
            for (int d = 0; d < k; d++) {
                int64_t index = 0;
                status s = cpu_index_at(indices, (b * tuples + t) * k + d,
                                        data->dims[batch_dims + d], &index);
                if (s)
                    return s;
                from += index * strides[batch_dims + d];
            }
            if (slice)
                memcpy(to, (const char *)data->data + (size_t)from * bytes, slice);
        }
    return STATUS_OK;
}

static const cpu_op table[] = {
    {GRAPH_OP_GATHER, NULL, run_gather, 0, false},
    {GRAPH_OP_GATHER_ELEMENTS, NULL, run_gather_elements, 0, false},
    {GRAPH_OP_GATHER_ND, NULL, run_gather_nd, 0, false},
};

const cpu_op_family cpu_ops_gather = {table, sizeof table / sizeof table[0]};

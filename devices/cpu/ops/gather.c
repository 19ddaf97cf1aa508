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

/* Places of a tensor along an axis: [outer, n, inner], of which [outer, count, inner] are named. */
typedef struct places {
    int64_t outer, n, count, inner;
} places;

/* Without branches: an index that is out of range reads the first place, and is told of. */
#define GATHER_PLACES(type)                                                                        \
    do {                                                                                           \
        const type *from = data;                                                                   \
        type *to = out;                                                                            \
        for (int64_t o = 0; o < p->outer; o++, from += p->n * inner)                               \
            for (int64_t a = 0; a < rows; a++)                                                     \
                for (int64_t b = 0; b < run; b++) {                                                \
                    int64_t at = *index + (p->n & -(int64_t)(*index < 0));                         \
                    bool is_out = (uint64_t)at >= (uint64_t)p->n;                                  \
                    is_wrong |= is_out;                                                            \
                    *to++ = from[(is_out ? 0 : at) * inner + (b & beside)];                        \
                    index++;                                                                       \
                }                                                                                  \
    } while (0)

/* False where an index is out of range. */
static bool gather_places(const places *p, size_t bytes, const int64_t *index, const void *data,
                          void *out)
{
    int64_t inner = p->inner,
            beside = inner == 1 ? 0 : -1; /* one long loop, or many over `inner` */
    int64_t rows = inner == 1 ? 1 : p->count, run = inner == 1 ? p->count : inner;
    bool is_wrong = false;
    if (bytes == sizeof(uint8_t))
        GATHER_PLACES(uint8_t);
    else if (bytes == sizeof(uint16_t))
        GATHER_PLACES(uint16_t);
    else if (bytes == sizeof(uint32_t))
        GATHER_PLACES(uint32_t);
    else
        GATHER_PLACES(uint64_t);
    return !is_wrong;
}

static status gather_beside(const tensor *data, const tensor *indices, int axis, void *out)
{
    places p = {.outer = cpu_dims_product(data->dims, 0, axis),
                .n = data->dims[axis],
                .count = indices->dims[axis],
                .inner = cpu_dims_product(data->dims, axis + 1, data->rank)};
    int64_t count = p.n > 0 ? 0 : tensor_count(indices), at; /* no place: none is read */
    if (p.n > 0 && !gather_places(&p, dtype_bytes(data->dtype), indices->data, data->data, out))
        count = tensor_count(indices);
    for (int64_t i = 0; i < count; i++) { /* which one it is */
        status s = cpu_index_at(indices, i, p.n, &at);
        if (s)
            return s;
    }
    return STATUS_OK;
}

/* Indices of the shape of the data, but for the axis. */
static bool is_beside(const tensor *data, const tensor *indices, int axis)
{
    bool is_same = indices->dtype == DTYPE_I64 && dtype_bytes(data->dtype) <= sizeof(uint64_t);
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
        return gather_beside(data, indices, axis, out->data);
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

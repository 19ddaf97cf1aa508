#include "base/tensor.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

int64_t tensor_count(const tensor *t)
{
    assert(t->rank >= 0 && t->rank <= TENSOR_RANK_MAX);
    int64_t count = 1;
    for (int i = 0; i < t->rank; i++)
        count *= t->dims[i];
    return count;
}

size_t tensor_bytes(const tensor *t)
{
    return (size_t)tensor_count(t) * dtype_bytes(t->dtype);
}

status tensor_set_shape(tensor *t, dtype type, int rank, const int64_t *dims)
{
    char text[TENSOR_SHAPE_TEXT_BYTES];
    if (rank < 0 || rank > TENSOR_RANK_MAX)
        return status_fail(STATUS_INVALID_ARGUMENT, "a tensor of rank %d; the limit is %d", rank,
                           TENSOR_RANK_MAX);
    int64_t bytes = (int64_t)dtype_bytes(type);
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return status_fail(STATUS_INVALID_ARGUMENT, "shape %s has a negative dimension",
                               tensor_shape_text(text, rank, dims));
        if (__builtin_mul_overflow(bytes, dims[i] ? dims[i] : 1, &bytes))
            return status_fail(STATUS_INVALID_ARGUMENT, "shape %s is too large",
                               tensor_shape_text(text, rank, dims));
    }
    t->dtype = type;
    t->rank = rank;
    for (int i = 0; i < rank; i++)
        t->dims[i] = dims[i];
    return STATUS_OK;
}

status tensor_allocate(tensor *t, arena *a, dtype type, int rank, const int64_t *dims)
{
    tensor made = {0};
    status s = tensor_set_shape(&made, type, rank, dims);
    if (s)
        return s;
    size_t bytes = tensor_bytes(&made);
    made.data = arena_allocate_aligned(a, bytes ? bytes : 1, 64);
    if (made.data == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a tensor of %zu bytes", bytes);
    memset(made.data, 0, bytes);
    *t = made;
    return STATUS_OK;
}

bool tensor_same_shape(const tensor *a, const tensor *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

const char *tensor_shape_text(char text[TENSOR_SHAPE_TEXT_BYTES], int rank, const int64_t *dims)
{
    size_t used = 0;
    text[used++] = '[';
    for (int i = 0; i < rank && used < TENSOR_SHAPE_TEXT_BYTES - 24; i++)
        used += (size_t)snprintf(text + used, TENSOR_SHAPE_TEXT_BYTES - used, "%s%lld",
                                 i ? "," : "", (long long)dims[i]);
    text[used++] = ']';
    text[used] = 0;
    return text;
}

double tensor_get_number(const tensor *t, int64_t index)
{
    assert(index >= 0 && index < tensor_count(t));
    switch (t->dtype) {
    case DTYPE_F16:
        return (double)dtype_f16_to_f32(((const uint16_t *)t->data)[index]);
    case DTYPE_BF16:
        return (double)dtype_bf16_to_f32(((const uint16_t *)t->data)[index]);
    case DTYPE_F32:
        return (double)((const float *)t->data)[index];
    case DTYPE_F64:
        return ((const double *)t->data)[index];
    case DTYPE_U64:
        return (double)((const uint64_t *)t->data)[index];
    default:
        return (double)tensor_get_integer(t, index);
    }
}

int64_t tensor_get_integer(const tensor *t, int64_t index)
{
    assert(index >= 0 && index < tensor_count(t) && t->dtype != DTYPE_BYTES);
    switch (t->dtype) {
    case DTYPE_BOOL:
    case DTYPE_U8:
        return ((const uint8_t *)t->data)[index];
    case DTYPE_U16:
        return ((const uint16_t *)t->data)[index];
    case DTYPE_U32:
        return ((const uint32_t *)t->data)[index];
    case DTYPE_U64:
        return (int64_t)((const uint64_t *)t->data)[index];
    case DTYPE_I8:
        return ((const int8_t *)t->data)[index];
    case DTYPE_I16:
        return ((const int16_t *)t->data)[index];
    case DTYPE_I32:
        return ((const int32_t *)t->data)[index];
    case DTYPE_I64:
        return ((const int64_t *)t->data)[index];
    default:
        return (int64_t)tensor_get_number(t, index);
    }
}

void tensor_set_number(tensor *t, int64_t index, double value)
{
    assert(index >= 0 && index < tensor_count(t));
    switch (t->dtype) {
    case DTYPE_BOOL:
        ((uint8_t *)t->data)[index] = value != 0;
        return;
    case DTYPE_U8:
        ((uint8_t *)t->data)[index] = (uint8_t)value;
        return;
    case DTYPE_U16:
        ((uint16_t *)t->data)[index] = (uint16_t)value;
        return;
    case DTYPE_U32:
        ((uint32_t *)t->data)[index] = (uint32_t)value;
        return;
    case DTYPE_U64:
        ((uint64_t *)t->data)[index] = (uint64_t)value;
        return;
    case DTYPE_I8:
        ((int8_t *)t->data)[index] = (int8_t)value;
        return;
    case DTYPE_I16:
        ((int16_t *)t->data)[index] = (int16_t)value;
        return;
    case DTYPE_I32:
        ((int32_t *)t->data)[index] = (int32_t)value;
        return;
    case DTYPE_I64:
        ((int64_t *)t->data)[index] = (int64_t)value;
        return;
    case DTYPE_F16:
        ((uint16_t *)t->data)[index] = dtype_f32_to_f16((float)value);
        return;
    case DTYPE_BF16:
        ((uint16_t *)t->data)[index] = dtype_f32_to_bf16((float)value);
        return;
    case DTYPE_F32:
        ((float *)t->data)[index] = (float)value;
        return;
    case DTYPE_F64:
        ((double *)t->data)[index] = value;
        return;
    case DTYPE_BYTES:
    case DTYPE_COUNT:
        break;
    }
    assert(!"a number cannot be stored in a BYTES tensor");
}

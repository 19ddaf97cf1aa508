#ifndef DEVICES_CPU_TENSOR_LOOPS_INDEX_H
#define DEVICES_CPU_TENSOR_LOOPS_INDEX_H

#include "base/tensor.h"

/* Indices come from requests: each is checked before it is used. */

/* Element `i` of `indices` (an integer tensor) as an index into `limit` items; negative ones count
 * from the end. STATUS_INVALID_ARGUMENT names index and limit. */
static inline status cpu_index_at(const tensor *indices, int64_t i, int64_t limit, int64_t *out)
{
    int64_t index = indices->dtype == DTYPE_I64   ? ((const int64_t *)indices->data)[i]
                    : indices->dtype == DTYPE_I32 ? ((const int32_t *)indices->data)[i]
                                                  : tensor_get_integer(indices, i);
    if (index < -limit || index >= limit)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "index %lld is out of range: must be at least %lld and below %lld",
                           (long long)index, (long long)-limit, (long long)limit);
    *out = index < 0 ? index + limit : index;
    return STATUS_OK;
}

#endif

#include "devices/cpu/tensor_loops/block.h"

#include <assert.h>
#include <string.h>

cpu_compute cpu_compute_of(dtype type)
{
    switch (type) {
    case DTYPE_F16:
    case DTYPE_BF16:
    case DTYPE_F32:
        return CPU_COMPUTE_F32;
    case DTYPE_F64:
        return CPU_COMPUTE_F64;
    case DTYPE_U64:
        return CPU_COMPUTE_U64;
    default:
        assert(type != DTYPE_BYTES);
        return CPU_COMPUTE_I64;
    }
}

int64_t cpu_double_to_i64(double x)
{
    if (x != x)
        return 0;
    if (x >= 0x1p63)
        return INT64_MAX;
    return x < -0x1p63 ? INT64_MIN : (int64_t)x;
}

uint64_t cpu_double_to_u64(double x)
{
    if (!(x > -0x1p63))
        return 0;
    if (x >= 0x1p64)
        return UINT64_MAX;
    return x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x;
}

static inline float clamp_f32(float x, float low, float high)
{
    return x != x ? 0 : x <= low ? low : x >= high ? high : x;
}

static inline double clamp_f64(double x, double low, double high)
{
    return x != x ? 0 : x <= low ? low : x >= high ? high : x;
}

#define ELEMENT float
#define LOAD load_f32
#define FROM_FLOAT (float)
#include "devices/cpu/tensor_loops/block_load.inc"
#define ELEMENT double
#define LOAD load_f64
#define FROM_FLOAT (double)
#include "devices/cpu/tensor_loops/block_load.inc"
#define ELEMENT int64_t
#define LOAD load_i64
#define FROM_FLOAT cpu_double_to_i64
#include "devices/cpu/tensor_loops/block_load.inc"
#define ELEMENT uint64_t
#define LOAD load_u64
#define FROM_FLOAT cpu_double_to_u64
#include "devices/cpu/tensor_loops/block_load.inc"

#define ELEMENT float
#define STORE store_f32
#define CLAMP clamp_f32
#include "devices/cpu/tensor_loops/block_store_float.inc"
#define ELEMENT double
#define STORE store_f64
#define CLAMP clamp_f64
#include "devices/cpu/tensor_loops/block_store_float.inc"
#define ELEMENT int64_t
#define STORE store_i64
#include "devices/cpu/tensor_loops/block_store_integer.inc"
#define ELEMENT uint64_t
#define STORE store_u64
#include "devices/cpu/tensor_loops/block_store_integer.inc"

void cpu_load(cpu_compute to, dtype type, const void *data, int64_t index, int64_t stride,
              size_t count, void *out)
{
    assert(type < DTYPE_BYTES);
    switch (to) {
    case CPU_COMPUTE_F32:
        if (type == DTYPE_F32 && stride == 1)
            memcpy(out, (const float *)data + index, count * sizeof(float));
        else
            load_f32(type, data, index, stride, count, out);
        break;
    case CPU_COMPUTE_F64:
        load_f64(type, data, index, stride, count, out);
        break;
    case CPU_COMPUTE_I64:
        load_i64(type, data, index, stride, count, out);
        break;
    case CPU_COMPUTE_U64:
        load_u64(type, data, index, stride, count, out);
        break;
    case CPU_COMPUTE_COUNT:
        assert(!"a type to compute in");
    }
}

void cpu_store(cpu_compute from, dtype type, const void *in, void *data, int64_t index,
               int64_t stride, size_t count)
{
    assert(type < DTYPE_BYTES);
    switch (from) {
    case CPU_COMPUTE_F32:
        store_f32(type, in, data, index, stride, count);
        break;
    case CPU_COMPUTE_F64:
        store_f64(type, in, data, index, stride, count);
        break;
    case CPU_COMPUTE_I64:
        store_i64(type, in, data, index, stride, count);
        break;
    case CPU_COMPUTE_U64:
        store_u64(type, in, data, index, stride, count);
        break;
    case CPU_COMPUTE_COUNT:
        assert(!"a type to compute in");
    }
}

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

/* One loop per pair of types: READ is an expression of the element `x`. */
#define LOAD(memory_type, compute_type, expression)                                                \
    do {                                                                                           \
        const memory_type *from = (const memory_type *)data + index;                               \
        compute_type *to_block = out;                                                              \
        for (size_t i = 0; i < count; i++) {                                                       \
            memory_type x = from[(int64_t)i * stride];                                             \
            to_block[i] = expression;                                                              \
        }                                                                                          \
    } while (0)

#define LOAD_CASES(compute_type, of_float)                                                         \
    case DTYPE_BOOL:                                                                               \
    case DTYPE_U8:                                                                                 \
        LOAD(uint8_t, compute_type, (compute_type)x);                                              \
        break;                                                                                     \
    case DTYPE_U16:                                                                                \
        LOAD(uint16_t, compute_type, (compute_type)x);                                             \
        break;                                                                                     \
    case DTYPE_U32:                                                                                \
        LOAD(uint32_t, compute_type, (compute_type)x);                                             \
        break;                                                                                     \
    case DTYPE_U64:                                                                                \
        LOAD(uint64_t, compute_type, (compute_type)x);                                             \
        break;                                                                                     \
    case DTYPE_I8:                                                                                 \
        LOAD(int8_t, compute_type, (compute_type)x);                                               \
        break;                                                                                     \
    case DTYPE_I16:                                                                                \
        LOAD(int16_t, compute_type, (compute_type)x);                                              \
        break;                                                                                     \
    case DTYPE_I32:                                                                                \
        LOAD(int32_t, compute_type, (compute_type)x);                                              \
        break;                                                                                     \
    case DTYPE_I64:                                                                                \
        LOAD(int64_t, compute_type, (compute_type)x);                                              \
        break;                                                                                     \
    case DTYPE_F16:                                                                                \
        LOAD(uint16_t, compute_type, of_float(dtype_f16_to_f32(x)));                               \
        break;                                                                                     \
    case DTYPE_BF16:                                                                               \
        LOAD(uint16_t, compute_type, of_float(dtype_bf16_to_f32(x)));                              \
        break;                                                                                     \
    case DTYPE_F32:                                                                                \
        LOAD(float, compute_type, of_float(x));                                                    \
        break;                                                                                     \
    case DTYPE_F64:                                                                                \
        LOAD(double, compute_type, of_float(x));                                                   \
        break;

void cpu_load(cpu_compute to, dtype type, const void *data, int64_t index, int64_t stride,
              size_t count, void *out)
{
    assert(type < DTYPE_BYTES);
    if (to == CPU_COMPUTE_F32 && type == DTYPE_F32 && stride == 1) {
        memcpy(out, (const float *)data + index, count * sizeof(float));
        return;
    }
    switch (to) {
    case CPU_COMPUTE_F32:
        switch (type) {
            LOAD_CASES(float, (float))
        default:
            break;
        }
        break;
    case CPU_COMPUTE_F64:
        switch (type) {
            LOAD_CASES(double, (double))
        default:
            break;
        }
        break;
    case CPU_COMPUTE_I64:
        switch (type) {
            LOAD_CASES(int64_t, cpu_double_to_i64)
        default:
            break;
        }
        break;
    case CPU_COMPUTE_U64:
        switch (type) {
            LOAD_CASES(uint64_t, cpu_double_to_u64)
        default:
            break;
        }
        break;
    case CPU_COMPUTE_COUNT:
        assert(!"not a type to compute in");
    }
}

#define STORE(memory_type, compute_type, expression)                                               \
    do {                                                                                           \
        memory_type *to_data = (memory_type *)data + index;                                        \
        const compute_type *block = in;                                                            \
        for (size_t i = 0; i < count; i++) {                                                       \
            compute_type x = block[i];                                                             \
            to_data[(int64_t)i * stride] = expression;                                             \
        }                                                                                          \
    } while (0)

/* Saturates a float into an integer type. */
#define CLAMPED(memory_type, low, high)                                                            \
    (memory_type)(x != x ? 0 : x <= (low) ? (low) : x >= (high) ? (high) : (double)x)

#define STORE_FLOAT_CASES(compute_type)                                                            \
    case DTYPE_BOOL:                                                                               \
        STORE(uint8_t, compute_type, x != 0);                                                      \
        break;                                                                                     \
    case DTYPE_U8:                                                                                 \
        STORE(uint8_t, compute_type, CLAMPED(uint8_t, 0, UINT8_MAX));                              \
        break;                                                                                     \
    case DTYPE_U16:                                                                                \
        STORE(uint16_t, compute_type, CLAMPED(uint16_t, 0, UINT16_MAX));                           \
        break;                                                                                     \
    case DTYPE_U32:                                                                                \
        STORE(uint32_t, compute_type, CLAMPED(uint32_t, 0, (double)UINT32_MAX));                   \
        break;                                                                                     \
    case DTYPE_U64:                                                                                \
        STORE(uint64_t, compute_type, cpu_double_to_u64((double)x));                               \
        break;                                                                                     \
    case DTYPE_I8:                                                                                 \
        STORE(int8_t, compute_type, CLAMPED(int8_t, INT8_MIN, INT8_MAX));                          \
        break;                                                                                     \
    case DTYPE_I16:                                                                                \
        STORE(int16_t, compute_type, CLAMPED(int16_t, INT16_MIN, INT16_MAX));                      \
        break;                                                                                     \
    case DTYPE_I32:                                                                                \
        STORE(int32_t, compute_type, CLAMPED(int32_t, (double)INT32_MIN, (double)INT32_MAX));      \
        break;                                                                                     \
    case DTYPE_I64:                                                                                \
        STORE(int64_t, compute_type, cpu_double_to_i64((double)x));                                \
        break;                                                                                     \
    case DTYPE_F16:                                                                                \
        STORE(uint16_t, compute_type, dtype_f32_to_f16((float)x));                                 \
        break;                                                                                     \
    case DTYPE_BF16:                                                                               \
        STORE(uint16_t, compute_type, dtype_f32_to_bf16((float)x));                                \
        break;                                                                                     \
    case DTYPE_F32:                                                                                \
        STORE(float, compute_type, (float)x);                                                      \
        break;                                                                                     \
    case DTYPE_F64:                                                                                \
        STORE(double, compute_type, (double)x);                                                    \
        break;

#define STORE_INTEGER_CASES(compute_type)                                                          \
    case DTYPE_BOOL:                                                                               \
        STORE(uint8_t, compute_type, x != 0);                                                      \
        break;                                                                                     \
    case DTYPE_U8:                                                                                 \
    case DTYPE_I8:                                                                                 \
        STORE(uint8_t, compute_type, (uint8_t)x);                                                  \
        break;                                                                                     \
    case DTYPE_U16:                                                                                \
    case DTYPE_I16:                                                                                \
        STORE(uint16_t, compute_type, (uint16_t)x);                                                \
        break;                                                                                     \
    case DTYPE_U32:                                                                                \
    case DTYPE_I32:                                                                                \
        STORE(uint32_t, compute_type, (uint32_t)x);                                                \
        break;                                                                                     \
    case DTYPE_U64:                                                                                \
    case DTYPE_I64:                                                                                \
        STORE(uint64_t, compute_type, (uint64_t)x);                                                \
        break;                                                                                     \
    case DTYPE_F16:                                                                                \
        STORE(uint16_t, compute_type, dtype_f32_to_f16((float)x));                                 \
        break;                                                                                     \
    case DTYPE_BF16:                                                                               \
        STORE(uint16_t, compute_type, dtype_f32_to_bf16((float)x));                                \
        break;                                                                                     \
    case DTYPE_F32:                                                                                \
        STORE(float, compute_type, (float)x);                                                      \
        break;                                                                                     \
    case DTYPE_F64:                                                                                \
        STORE(double, compute_type, (double)x);                                                    \
        break;

void cpu_store(cpu_compute from, dtype type, const void *in, void *data, int64_t index,
               int64_t stride, size_t count)
{
    assert(type < DTYPE_BYTES);
    switch (from) {
    case CPU_COMPUTE_F32:
        switch (type) {
            STORE_FLOAT_CASES(float)
        default:
            break;
        }
        break;
    case CPU_COMPUTE_F64:
        switch (type) {
            STORE_FLOAT_CASES(double)
        default:
            break;
        }
        break;
    case CPU_COMPUTE_I64:
        switch (type) {
            STORE_INTEGER_CASES(int64_t)
        default:
            break;
        }
        break;
    case CPU_COMPUTE_U64:
        switch (type) {
            STORE_INTEGER_CASES(uint64_t)
        default:
            break;
        }
        break;
    case CPU_COMPUTE_COUNT:
        assert(!"not a type to compute in");
    }
}

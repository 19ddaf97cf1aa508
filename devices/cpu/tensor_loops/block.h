#ifndef DEVICES_CPU_TENSOR_LOOPS_BLOCK_H
#define DEVICES_CPU_TENSOR_LOOPS_BLOCK_H

#include "base/tensor.h"

/* Elements of any type, converted to one of four types to compute in. An operator is written for
 * those four, and loads and stores short blocks of elements through these functions. */

typedef enum cpu_compute {
    CPU_COMPUTE_F32, /* of F16, BF16, F32 */
    CPU_COMPUTE_F64, /* of F64 */
    CPU_COMPUTE_I64, /* of BOOL and the integers but U64 */
    CPU_COMPUTE_U64, /* of U64 */
    CPU_COMPUTE_COUNT
} cpu_compute;

#define CPU_BLOCK_ELEMENTS 256

typedef union cpu_block {
    float f32[CPU_BLOCK_ELEMENTS];
    double f64[CPU_BLOCK_ELEMENTS];
    int64_t i64[CPU_BLOCK_ELEMENTS];
    uint64_t u64[CPU_BLOCK_ELEMENTS];
    uint8_t u8[CPU_BLOCK_ELEMENTS];
} cpu_block;

/* Not for DTYPE_BYTES. */
cpu_compute cpu_compute_of(dtype type);

/* out[i] = data[index + i * stride], i < count, converted to `to`. Floats become integers toward
 * zero, saturated, NaN as 0; integers wrap. */
void cpu_load(cpu_compute to, dtype type, const void *data, int64_t index, int64_t stride,
              size_t count, void *out);

/* data[index + i * stride] = in[i], converted from `from` likewise (BOOL: not zero; floats round to
 * nearest even). */
void cpu_store(cpu_compute from, dtype type, const void *in, void *data, int64_t index,
               int64_t stride, size_t count);

/* Toward zero, saturated, NaN as 0. */
int64_t cpu_double_to_i64(double x);
uint64_t cpu_double_to_u64(double x);

#endif

/* Elements of any type loaded and stored: conversions, strides, saturation. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "devices/cpu/tensor_loops/block.h"

/* Small whole numbers survive every pair of types, at every stride. */
Test(cpu_block, numbers_survive_every_pair_of_types)
{
    for (int type = DTYPE_U8; type < DTYPE_BYTES; type++)
        for (int compute = 0; compute < CPU_COMPUTE_COUNT; compute++)
            for (int64_t stride = 1; stride <= 3; stride++) {
                double data[64] = {0};
                cpu_block in, out;
                for (int i = 0; i < 16; i++)
                    in.i64[i] = i;
                cpu_store(CPU_COMPUTE_I64, (dtype)type, &in, data, 2, stride, 16);
                cpu_load((cpu_compute)compute, (dtype)type, data, 2, stride, 16, &out);
                memset(data, 0, sizeof data);
                cpu_store((cpu_compute)compute, (dtype)type, &out, data, 2, stride, 16);
                cpu_load(CPU_COMPUTE_F64, (dtype)type, data, 2, stride, 16, &out);
                for (int i = 0; i < 16; i++)
                    cr_assert(out.f64[i] == i, "%s, compute %d, stride %lld: %d became %g",
                              dtype_name((dtype)type), compute, (long long)stride, i, out.f64[i]);
            }
}

static void expect_stored(dtype type, const double *numbers, const int64_t *expected, int count)
{
    cpu_block in, out;
    int64_t data[16];
    for (int compute = CPU_COMPUTE_F32; compute <= CPU_COMPUTE_F64; compute++) {
        for (int i = 0; i < count; i++) {
            if (compute == CPU_COMPUTE_F32)
                in.f32[i] = (float)numbers[i];
            else
                in.f64[i] = numbers[i];
        }
        cpu_store((cpu_compute)compute, type, &in, data, 0, 1, (size_t)count);
        cpu_load(CPU_COMPUTE_I64, type, data, 0, 1, (size_t)count, &out);
        for (int i = 0; i < count; i++)
            cr_expect_eq(out.i64[i], expected[i], "%s of %g", dtype_name(type), numbers[i]);
    }
}

Test(cpu_block, floats_saturate_and_nan_is_0)
{
    static const double numbers[] = {1e30, -1e30, NAN, -1.75, 2.75};
    expect_stored(DTYPE_I8, numbers, (int64_t[]){127, -128, 0, -1, 2}, 5);
    expect_stored(DTYPE_U8, numbers, (int64_t[]){255, 0, 0, 0, 2}, 5);
    expect_stored(DTYPE_I16, numbers, (int64_t[]){32767, -32768, 0, -1, 2}, 5);
    expect_stored(DTYPE_U16, numbers, (int64_t[]){65535, 0, 0, 0, 2}, 5);
    expect_stored(DTYPE_I32, numbers, (int64_t[]){INT32_MAX, INT32_MIN, 0, -1, 2}, 5);
    expect_stored(DTYPE_U32, numbers, (int64_t[]){UINT32_MAX, 0, 0, 0, 2}, 5);
    expect_stored(DTYPE_I64, numbers, (int64_t[]){INT64_MAX, INT64_MIN, 0, -1, 2}, 5);
}

#include "base/dtype.h"
#include "kernels/kernels_list.h"

void convert_f16_f32_scalar(const uint16_t *in, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = dtype_f16_to_f32(in[i]);
}

void convert_f32_f16_scalar(const float *in, uint16_t *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = dtype_f32_to_f16(in[i]);
}

void convert_bf16_f32_scalar(const uint16_t *in, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = dtype_bf16_to_f32(in[i]);
}

void convert_f32_bf16_scalar(const float *in, uint16_t *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = dtype_f32_to_bf16(in[i]);
}

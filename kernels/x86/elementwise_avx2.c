#include "kernels/kernels_list.h"
#include "kernels/x86/elementwise_vector.h"

void exp_f32_avx2(const float *in, float *out, size_t count)
{
    map_unary(vec_exp, in, out, count);
}

void erf_f32_avx2(const float *in, float *out, size_t count)
{
    map_unary(vec_erf, in, out, count);
}

void tanh_f32_avx2(const float *in, float *out, size_t count)
{
    map_unary(vec_tanh, in, out, count);
}

void sigmoid_f32_avx2(const float *in, float *out, size_t count)
{
    map_unary(vec_sigmoid, in, out, count);
}

void relu_f32_avx2(const float *in, float *out, size_t count)
{
    map_unary(vec_relu, in, out, count);
}

void gelu_f32_avx2(const float *in, float *out, size_t count)
{
    map_unary(vec_gelu, in, out, count);
}

void gelu_tanh_f32_avx2(const float *in, float *out, size_t count)
{
    map_unary(vec_gelu_tanh, in, out, count);
}

void silu_f32_avx2(const float *in, float *out, size_t count)
{
    map_unary(vec_silu, in, out, count);
}

void add_f32_avx2(const float *a, size_t a_step, const float *b, size_t b_step, float *out,
                  size_t count)
{
    map_binary(vec_add, a, a_step, b, b_step, out, count);
}

void sub_f32_avx2(const float *a, size_t a_step, const float *b, size_t b_step, float *out,
                  size_t count)
{
    map_binary(vec_sub, a, a_step, b, b_step, out, count);
}

void mul_f32_avx2(const float *a, size_t a_step, const float *b, size_t b_step, float *out,
                  size_t count)
{
    map_binary(vec_mul, a, a_step, b, b_step, out, count);
}

void div_f32_avx2(const float *a, size_t a_step, const float *b, size_t b_step, float *out,
                  size_t count)
{
    map_binary(vec_div, a, a_step, b, b_step, out, count);
}

void max_f32_avx2(const float *a, size_t a_step, const float *b, size_t b_step, float *out,
                  size_t count)
{
    map_binary(vec_max_or_nan, a, a_step, b, b_step, out, count);
}

void min_f32_avx2(const float *a, size_t a_step, const float *b, size_t b_step, float *out,
                  size_t count)
{
    map_binary(vec_min_or_nan, a, a_step, b, b_step, out, count);
}

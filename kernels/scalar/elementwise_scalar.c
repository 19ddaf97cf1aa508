#include <math.h>

#include "kernels/kernels_list.h"
#include "kernels/scalar/scalar.h"

float scalar_sigmoid(float x)
{
    return (float)(1 / (1 + exp(-(double)x)));
}

float scalar_gelu(float x)
{
    if (x == -INFINITY)
        return 0;
    return (float)(0.5 * x * (1 + erf(x * 0.70710678118654752440)));
}

float scalar_gelu_tanh(float x)
{
    if (x == -INFINITY)
        return 0;
    double inner = 0.79788456080286535588 * (x + 0.044715 * (double)x * x * x);
    return (float)(0.5 * x * (1 + tanh(inner)));
}

static float scalar_silu(float x)
{
    if (x == -INFINITY)
        return 0;
    return (float)(x / (1 + exp(-(double)x)));
}

/* Not fmaxf: NaN must come through. */
static float scalar_relu(float x)
{
    return x < 0 ? 0 : x;
}

float scalar_activate(kernels_activation activation, float x)
{
    switch (activation) {
    case KERNELS_RELU:
        return scalar_relu(x);
    case KERNELS_GELU:
        return scalar_gelu(x);
    case KERNELS_GELU_TANH:
        return scalar_gelu_tanh(x);
    case KERNELS_TANH:
        return tanhf(x);
    case KERNELS_SIGMOID:
        return scalar_sigmoid(x);
    case KERNELS_SILU:
        return scalar_silu(x);
    case KERNELS_IDENTITY:
    case KERNELS_ACTIVATION_COUNT:
        break;
    }
    return x;
}

void exp_f32_scalar(const float *in, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = expf(in[i]);
}

void erf_f32_scalar(const float *in, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = erff(in[i]);
}

void tanh_f32_scalar(const float *in, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = tanhf(in[i]);
}

void sigmoid_f32_scalar(const float *in, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = scalar_sigmoid(in[i]);
}

void relu_f32_scalar(const float *in, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = scalar_relu(in[i]);
}

void gelu_f32_scalar(const float *in, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = scalar_gelu(in[i]);
}

void gelu_tanh_f32_scalar(const float *in, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = scalar_gelu_tanh(in[i]);
}

void silu_f32_scalar(const float *in, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = scalar_silu(in[i]);
}

void add_f32_scalar(const float *a, size_t a_step, const float *b, size_t b_step, float *out,
                    size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = a[i * a_step] + b[i * b_step];
}

void sub_f32_scalar(const float *a, size_t a_step, const float *b, size_t b_step, float *out,
                    size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = a[i * a_step] - b[i * b_step];
}

void mul_f32_scalar(const float *a, size_t a_step, const float *b, size_t b_step, float *out,
                    size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = a[i * a_step] * b[i * b_step];
}

void div_f32_scalar(const float *a, size_t a_step, const float *b, size_t b_step, float *out,
                    size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = a[i * a_step] / b[i * b_step];
}

void max_f32_scalar(const float *a, size_t a_step, const float *b, size_t b_step, float *out,
                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float x = a[i * a_step], y = b[i * b_step];
        out[i] = x > y || isnan(x) ? x : y;
    }
}

void min_f32_scalar(const float *a, size_t a_step, const float *b, size_t b_step, float *out,
                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float x = a[i * a_step], y = b[i * b_step];
        out[i] = x < y || isnan(x) ? x : y;
    }
}

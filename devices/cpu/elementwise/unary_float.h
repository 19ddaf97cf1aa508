#ifndef DEVICES_CPU_ELEMENTWISE_UNARY_FLOAT_H
#define DEVICES_CPU_ELEMENTWISE_UNARY_FLOAT_H

#include <math.h>
#include <tgmath.h>

#include "devices/cpu/elementwise/unary_blocks.h"

/* Operators that take each float by itself. unary_f32.c and unary_f64.c compile these lines:
 * ELEMENT is the type, BLOCK that of a function, BLOCKS the table. tgmath.h picks the functions of
 * the type. */

#ifdef ELEMENT

static void abs_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++)
        out[i] = fabs(in[i]);
}

static void acos_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++)
        out[i] = acos(in[i]);
}

static void acosh_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++)
        out[i] = acosh(in[i]);
}

static void asin_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++)
        out[i] = asin(in[i]);
}

static void asinh_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++)
        out[i] = asinh(in[i]);
}

static void atan_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++)
        out[i] = atan(in[i]);
}

static void atanh_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++)
        out[i] = atanh(in[i]);
}

static void ceil_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++)
        out[i] = ceil(in[i]);
}

static void celu_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    const ELEMENT alpha = (ELEMENT)p[0];
    for (size_t i = 0; i < count; i++) {
        ELEMENT x = in[i];
        out[i] = x > 0 ? x : alpha * expm1(x / alpha);
    }
}

static void cos_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++)
        out[i] = cos(in[i]);
}

static void cosh_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++)
        out[i] = cosh(in[i]);
}

static void elu_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    const ELEMENT alpha = (ELEMENT)p[0];
    for (size_t i = 0; i < count; i++) {
        ELEMENT x = in[i];
        out[i] = x < 0 ? alpha * expm1(x) : x;
    }
}

static void erf_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++)
        out[i] = erf(in[i]);
}

static void exp_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++)
        out[i] = exp(in[i]);
}

static void floor_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++)
        out[i] = floor(in[i]);
}

static void gelu_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++) {
        ELEMENT x = in[i];
        out[i] = x * (1 + erf(x * (float)M_SQRT1_2)) / 2;
    }
}

static void gelu_tanh_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++) {
        ELEMENT x = in[i];
        out[i] = x * (1 + tanh((float)(M_2_SQRTPI * M_SQRT1_2) * (x + 0.044715f * x * x * x))) / 2;
    }
}

static void hard_sigmoid_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    const ELEMENT alpha = (ELEMENT)p[0];
    const ELEMENT beta = (ELEMENT)p[1];
    for (size_t i = 0; i < count; i++)
        out[i] = fmax(0, fmin(1, alpha * in[i] + beta));
}

static void hard_swish_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++) {
        ELEMENT x = in[i];
        out[i] = x * fmax(0, fmin(1, x / 6 + 0.5f));
    }
}

static void leaky_relu_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    const ELEMENT alpha = (ELEMENT)p[0];
    for (size_t i = 0; i < count; i++) {
        ELEMENT x = in[i];
        out[i] = x < 0 ? alpha * x : x;
    }
}

static void log_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++)
        out[i] = log(in[i]);
}

static void mish_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++) {
        ELEMENT x = in[i];
        out[i] = x * tanh(x > 20 ? x : log1p(exp(x)));
    }
}

static void neg_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++)
        out[i] = -in[i];
}

static void reciprocal_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++)
        out[i] = 1 / in[i];
}

static void relu_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++) {
        ELEMENT x = in[i];
        out[i] = x < 0 ? 0 : x;
    }
}

static void round_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++)
        out[i] = nearbyint(in[i]);
}

static void selu_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    const ELEMENT alpha = (ELEMENT)p[0];
    const ELEMENT beta = (ELEMENT)p[1];
    for (size_t i = 0; i < count; i++) {
        ELEMENT x = in[i];
        out[i] = x > 0 ? beta * x : beta * alpha * expm1(x);
    }
}

static void shrink_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    const ELEMENT alpha = (ELEMENT)p[0];
    const ELEMENT beta = (ELEMENT)p[1];
    for (size_t i = 0; i < count; i++) {
        ELEMENT x = in[i];
        out[i] = x < -beta ? x + alpha : x > beta ? x - alpha : 0;
    }
}

static void sigmoid_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++)
        out[i] = 1 / (1 + exp(-in[i]));
}

static void sign_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++) {
        ELEMENT x = in[i];
        out[i] = x > 0 ? 1 : x < 0 ? -1 : x;
    }
}

static void sin_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++)
        out[i] = sin(in[i]);
}

static void sinh_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++)
        out[i] = sinh(in[i]);
}

static void softplus_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++) {
        ELEMENT x = in[i];
        out[i] = x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    }
}

static void softsign_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++) {
        ELEMENT x = in[i];
        out[i] = x / (1 + fabs(x));
    }
}

static void sqrt_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++)
        out[i] = sqrt(in[i]);
}

static void tan_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++)
        out[i] = tan(in[i]);
}

static void tanh_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    (void)p;
    for (size_t i = 0; i < count; i++)
        out[i] = tanh(in[i]);
}

static void thresholded_relu_block(const ELEMENT *in, ELEMENT *out, size_t count, const float *p)
{
    const ELEMENT alpha = (ELEMENT)p[0];
    for (size_t i = 0; i < count; i++) {
        ELEMENT x = in[i];
        out[i] = x > alpha ? x : 0;
    }
}

const BLOCK BLOCKS[CPU_UNARY_COUNT] = {
    [GRAPH_OP_ABS] = abs_block,
    [GRAPH_OP_ACOS] = acos_block,
    [GRAPH_OP_ACOSH] = acosh_block,
    [GRAPH_OP_ASIN] = asin_block,
    [GRAPH_OP_ASINH] = asinh_block,
    [GRAPH_OP_ATAN] = atan_block,
    [GRAPH_OP_ATANH] = atanh_block,
    [GRAPH_OP_CEIL] = ceil_block,
    [GRAPH_OP_CELU] = celu_block,
    [GRAPH_OP_COS] = cos_block,
    [GRAPH_OP_COSH] = cosh_block,
    [GRAPH_OP_ELU] = elu_block,
    [GRAPH_OP_ERF] = erf_block,
    [GRAPH_OP_EXP] = exp_block,
    [GRAPH_OP_FLOOR] = floor_block,
    [GRAPH_OP_GELU] = gelu_block,
    [GRAPH_OP_HARD_SIGMOID] = hard_sigmoid_block,
    [GRAPH_OP_HARD_SWISH] = hard_swish_block,
    [GRAPH_OP_LEAKY_RELU] = leaky_relu_block,
    [GRAPH_OP_LOG] = log_block,
    [GRAPH_OP_MISH] = mish_block,
    [GRAPH_OP_NEG] = neg_block,
    [GRAPH_OP_RECIPROCAL] = reciprocal_block,
    [GRAPH_OP_RELU] = relu_block,
    [GRAPH_OP_ROUND] = round_block,
    [GRAPH_OP_SELU] = selu_block,
    [GRAPH_OP_SHRINK] = shrink_block,
    [GRAPH_OP_SIGMOID] = sigmoid_block,
    [GRAPH_OP_SIGN] = sign_block,
    [GRAPH_OP_SIN] = sin_block,
    [GRAPH_OP_SINH] = sinh_block,
    [GRAPH_OP_SOFTPLUS] = softplus_block,
    [GRAPH_OP_SOFTSIGN] = softsign_block,
    [GRAPH_OP_SQRT] = sqrt_block,
    [GRAPH_OP_TAN] = tan_block,
    [GRAPH_OP_TANH] = tanh_block,
    [GRAPH_OP_THRESHOLDED_RELU] = thresholded_relu_block,
    [CPU_UNARY_GELU_TANH] = gelu_tanh_block,
};

#endif
#endif

#include "kernels/activation.h"

#include <math.h>

#include "kernels/kernels_list.h"

/* NaN passes: both comparisons are false. */
static float limit(float x, float low, float high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

static float activate(activation_kind kind, float a, float b, float x)
{
    switch (kind) {
    case ACTIVATION_LEAKY_RELU:
        return x < 0 ? a * x : x;
    case ACTIVATION_CLIP:
        return limit(x, a, b);
    case ACTIVATION_HARD_SIGMOID:
        return limit(a * x + b, 0, 1);
    case ACTIVATION_HARD_SWISH:
        return x * limit(x * (1 / 6.0f) + 0.5f, 0, 1);
    case ACTIVATION_ELU:
        return x < 0 ? a * expm1f(x) : x;
    case ACTIVATION_SOFTPLUS:
        return (float)(x > 0 ? (double)x + log1p(exp(-(double)x)) : log1p(exp((double)x)));
    case ACTIVATION_MISH:
        return x == -INFINITY ? 0 : (float)((double)x * tanh(x > 20 ? x : log1p(exp((double)x))));
    case ACTIVATION_LOG:
        return logf(x);
    case ACTIVATION_SQRT:
        return sqrtf(x);
    case ACTIVATION_ABS:
        return fabsf(x);
    case ACTIVATION_NEGATE:
        return -x;
    case ACTIVATION_SELU:
        return x > 0 ? b * x : b * (a * expm1f(x));
    case ACTIVATION_CELU:
        return x > 0 ? x : a * expm1f(x / a);
    case ACTIVATION_ATAN:
        return atanf(x);
    case ACTIVATION_FLOOR:
        return floorf(x);
    case ACTIVATION_CEIL:
        return ceilf(x);
    case ACTIVATION_ROUND:
        return nearbyintf(x);
    case ACTIVATION_SIN:
        return sinf(x);
    case ACTIVATION_COS:
        return cosf(x);
    case ACTIVATION_TAN:
        return tanf(x);
    case ACTIVATION_ASIN:
        return asinf(x);
    case ACTIVATION_ACOS:
        return acosf(x);
    case ACTIVATION_SINH:
        return sinhf(x);
    case ACTIVATION_COSH:
        return coshf(x);
    case ACTIVATION_ASINH:
        return asinhf(x);
    case ACTIVATION_ACOSH:
        return acoshf(x);
    case ACTIVATION_ATANH:
        return atanhf(x);
    case ACTIVATION_COUNT:
        break;
    }
    return x;
}

void activation_f32_scalar(const struct activation_f32 *p)
{
    for (size_t i = 0; i < p->count; i++)
        p->out[i] = activate(p->kind, p->a, p->b, p->in[i]);
}

void prelu_f32_scalar(const float *a, size_t a_step, const float *b, size_t b_step, float *out,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float x = a[i * a_step];
        out[i] = x < 0 ? x * b[i * b_step] : x;
    }
}

void weighted_rows_f32_scalar(const struct weighted_rows_f32 *w)
{
    for (size_t i = 0; i < w->count; i++) {
        float sum = 0;
        for (size_t t = 0; t < w->taps; t++)
            sum += w->weights[t] * w->rows[t][i];
        w->out[i] = sum;
    }
}

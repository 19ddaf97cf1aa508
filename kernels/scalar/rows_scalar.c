#include <math.h>

#include "kernels/kernels_list.h"
#include "kernels/rows.h"

float reduce_sum_f32_scalar(const float *in, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += in[i];
    return (float)sum;
}

float reduce_max_f32_scalar(const float *in, size_t count)
{
    float best = -INFINITY;
    for (size_t i = 0; i < count; i++)
        best = in[i] > best || isnan(in[i]) ? in[i] : best;
    return best;
}

float reduce_min_f32_scalar(const float *in, size_t count)
{
    float best = INFINITY;
    for (size_t i = 0; i < count; i++)
        best = in[i] < best || isnan(in[i]) ? in[i] : best;
    return best;
}

void layer_norm_f32_scalar(const struct layer_norm_f32 *l)
{
    for (size_t r = 0; r < l->rows; r++) {
        const float *x = l->x + r * l->x_stride;
        const float *residual = l->residual ? l->residual + r * l->residual_stride : NULL;
        float *out = l->out + r * l->out_stride;
        double sum = 0, squares = 0;
        for (size_t i = 0; i < l->width; i++) {
            out[i] = residual ? x[i] + residual[i] : x[i];
            sum += out[i];
        }
        double mean = sum / (double)l->width;
        for (size_t i = 0; i < l->width; i++)
            squares += (out[i] - mean) * (out[i] - mean);
        double inverse = 1 / sqrt(squares / (double)l->width + l->epsilon);
        for (size_t i = 0; i < l->width; i++) {
            double normal = (out[i] - mean) * inverse;
            out[i] = (float)(normal * (l->gamma ? l->gamma[i] : 1) + (l->beta ? l->beta[i] : 0));
        }
    }
}

static bool mask_is_empty(const uint8_t *mask, size_t width)
{
    for (size_t i = 0; i < width; i++) {
        if (mask[i])
            return false;
    }
    return true;
}

static void softmax_row(const struct softmax_f32 *s, const float *x, const float *bias,
                        const uint8_t *mask, float *out)
{
    size_t width = s->width;
    if (mask && mask_is_empty(mask, width)) {
        for (size_t i = 0; i < width; i++)
            out[i] = 1 / (float)width;
        return;
    }
    float top = -INFINITY;
    for (size_t i = 0; i < width; i++) {
        if (mask && !mask[i])
            continue;
        float y = x[i] * s->scale + (bias ? bias[i] : 0);
        out[i] = y;
        top = y > top || isnan(y) ? y : top;
    }
    double sum = 0;
    for (size_t i = 0; i < width; i++) {
        float weight = mask && !mask[i] ? 0 : expf(out[i] - top);
        out[i] = s->is_log ? out[i] - top : weight;
        sum += weight;
    }
    for (size_t i = 0; i < width; i++)
        out[i] = (float)(s->is_log ? out[i] - log(sum) : out[i] / sum);
}

void softmax_f32_scalar(const struct softmax_f32 *s)
{
    for (size_t r = 0; r < s->rows; r++) {
        softmax_row(s, s->x + r * s->x_stride, s->bias ? s->bias + r * s->bias_stride : NULL,
                    s->mask ? s->mask + r * s->mask_stride : NULL, s->out + r * s->out_stride);
    }
}

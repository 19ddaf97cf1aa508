#include "kernels/quantise.h"

#include <math.h>

#include "kernels/gemm_scaled.h"
#include "kernels/kernels_list.h"

typedef struct row_range {
    float low, high;
} row_range;

static row_range find_range(const float *x, const float *factors, size_t width)
{
    row_range r = {0, 0};
    for (size_t i = 0; i < width; i++) {
        float y = factors ? x[i] * factors[i] : x[i];
        r.low = y < r.low ? y : r.low;
        r.high = y > r.high ? y : r.high;
    }
    return r;
}

static uint8_t to_u8(float x, float factor, int32_t zero)
{
    long q = lrintf(x * factor) + zero;
    return (uint8_t)(q < 0 ? 0 : q > 255 ? 255 : q);
}

void quantise_u8_scalar(const struct quantise_u8 *q)
{
    for (size_t r = 0; r < q->rows; r++) {
        const float *x = q->x + r * q->x_stride;
        row_range range =
            q->low ? (row_range){q->low[r], q->high[r]} : find_range(x, q->factors, q->width);
        float span = q->zero ? range.high - range.low : fmaxf(range.high, -range.low);
        float levels = q->zero ? 255 : 127, factor = span > 0 ? levels / span : 0;
        int32_t zero = q->zero ? (int32_t)lrintf(-range.low * factor) : 128;
        for (size_t i = 0; i < q->width; i++)
            q->out[r * q->out_stride + i] =
                to_u8(q->factors ? x[i] * q->factors[i] : x[i], factor, zero);
        q->scale[r] = span / levels;
        if (q->zero)
            q->zero[r] = zero;
    }
}

void quantise_s16_scalar(const struct quantise_s16 *q)
{
    for (size_t r = 0; r < q->rows; r++) {
        const float *x = q->x + r * q->x_stride;
        row_range range =
            q->low ? (row_range){q->low[r], q->high[r]} : find_range(x, NULL, q->width);
        float top = fmaxf(range.high, -range.low), factor = top > 0 ? GEMM_S16_LIMIT / top : 0;
        for (size_t i = 0; i < q->width; i++) {
            long v = lrintf(x[i] * factor);
            v = v < -GEMM_S16_LIMIT ? -GEMM_S16_LIMIT : v > GEMM_S16_LIMIT ? GEMM_S16_LIMIT : v;
            q->out[r * q->out_stride + i] = (int16_t)v;
        }
        q->scale[r] = top / GEMM_S16_LIMIT;
    }
}

void layer_norm_quantise_scalar(const struct layer_norm_quantise *l)
{
    layer_norm_f32_scalar(&l->norm);
    quantise_u8 q = {.rows = l->norm.rows,
                     .width = l->norm.width,
                     .x = l->norm.out,
                     .x_stride = l->norm.out_stride,
                     .factors = l->factors,
                     .out = l->out,
                     .out_stride = l->out_stride,
                     .scale = l->scale,
                     .zero = l->zero};
    quantise_u8_scalar(&q);
}

#include <math.h>
#include <string.h>

#include "kernels/convolution.h"
#include "kernels/kernels_list.h"
#include "kernels/scalar/image_rows_loops.h"
#include "kernels/scalar/scalar.h"

/* The input pixel under (ky, kx) of output pixel `index`; false when it is padding. */
static bool pixel_at(const image_window *w, size_t index, size_t ky, size_t kx, size_t *out)
{
    size_t y = index / w->out_width * w->stride_y + ky * w->dilation_y;
    size_t x = index % w->out_width * w->stride_x + kx * w->dilation_x;
    if (y < w->pad_top || x < w->pad_left)
        return false;
    y -= w->pad_top;
    x -= w->pad_left;
    if (y >= w->height || x >= w->width)
        return false;
    *out = y * w->width + x;
    return true;
}

void image_rows_scalar(const struct image_rows *r)
{
    unfold_rows(r);
}

void depthwise_f32_scalar(const struct depthwise_f32 *d)
{
    const image_window *w = &d->window;
    size_t channels = w->channels;
    for (size_t i = 0; i < d->count; i++) {
        float *out = d->out + i * channels;
        for (size_t c = 0; c < channels; c++)
            out[c] = d->bias ? d->bias[c] : 0;
        for (size_t tap = 0; tap < w->kernel_height * w->kernel_width; tap++) {
            size_t pixel;
            if (!pixel_at(w, d->first + i, tap / w->kernel_width, tap % w->kernel_width, &pixel))
                continue;
            for (size_t c = 0; c < channels; c++)
                out[c] += d->in[pixel * channels + c] * d->weights[tap * channels + c];
        }
        for (size_t c = 0; c < channels; c++)
            out[c] = scalar_activate(d->activation, out[c]);
    }
}

void pool_f32_scalar(const struct pool_f32 *p)
{
    const image_window *w = &p->window;
    size_t channels = w->channels, taps = w->kernel_height * w->kernel_width;
    for (size_t i = 0; i < p->count; i++) {
        float *out = p->out + i * channels;
        size_t inside = 0;
        for (size_t c = 0; c < channels; c++)
            out[c] = p->kind == POOL_MAX ? -INFINITY : 0;
        for (size_t tap = 0; tap < taps; tap++) {
            size_t pixel;
            if (!pixel_at(w, p->first + i, tap / w->kernel_width, tap % w->kernel_width, &pixel))
                continue;
            inside++;
            for (size_t c = 0; c < channels; c++) {
                float x = p->in[pixel * channels + c];
                if (p->kind != POOL_MAX)
                    out[c] += x;
                else if (x > out[c] || isnan(x))
                    out[c] = x;
            }
        }
        size_t divisor = p->kind == POOL_AVERAGE ? inside : taps;
        for (size_t c = 0; p->kind != POOL_MAX && c < channels; c++)
            out[c] = divisor ? out[c] / (float)divisor : 0;
    }
}

static float pool_pair(bool is_max, float a, float b)
{
    if (!is_max)
        return a + b;
    return b > a || isnan(b) ? b : a;
}

/* One result of a plane. */
static float pool_place(const struct pool_planes_f32 *p, const float *plane, size_t index)
{
    const image_window *w = &p->window;
    float none = p->is_max ? -INFINITY : 0, result = 0;
    for (size_t ky = 0; ky < w->kernel_height; ky++) {
        float row = 0;
        for (size_t kx = 0; kx < w->kernel_width; kx++) {
            size_t pixel;
            float x = pixel_at(w, index, ky, kx, &pixel) ? plane[pixel] : none;
            row = kx > 0 ? pool_pair(p->is_max, row, x) : x;
        }
        result = ky > 0 ? pool_pair(p->is_max, result, row) : row;
    }
    return result;
}

void pool_planes_f32_scalar(const struct pool_planes_f32 *p)
{
    const image_window *w = &p->window;
    size_t count = w->out_height * w->out_width;
    for (size_t plane = 0; plane < p->planes; plane++) {
        const float *in = p->in + plane * w->height * w->width;
        for (size_t i = 0; i < count; i++) {
            float x = pool_place(p, in, i);
            p->out[plane * count + i] = p->divisors ? x / p->divisors[i] : x;
        }
    }
}

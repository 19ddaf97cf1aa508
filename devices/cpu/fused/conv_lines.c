#include "devices/cpu/fused/conv_lines.h"

#include <string.h>

#define PIXELS_MIN 12 /* of a line of the result: a whole tile of rows */
#define WEIGHTS_BYTES_MAX                                                                          \
    ((size_t)1 << 19) /* half of an L2 cache; longer lines make up for more                        \
                       */
#define PIXELS_MANY 96
#define SCRATCH_BYTES ((size_t)1 << 18)

static size_t input_lines(const cpu_conv_lines *p, size_t count)
{
    const image_window *w = &p->window;
    return (count - 1) * w->stride_y + (w->kernel_height - 1) * w->dilation_y + 1;
}

bool cpu_conv_lines_init(cpu_conv_lines *p, const image_window *w, size_t groups, size_t n)
{
    size_t k = w->kernel_height * w->kernel_width * w->channels;
    if (w->dilation_x != 1 || w->out_width < PIXELS_MIN || w->out_height == 0 ||
        (w->out_width < PIXELS_MANY && k * n * sizeof(float) > WEIGHTS_BYTES_MAX))
        return false;
    *p = (cpu_conv_lines){.window = *w,
                          .in_stride = groups * w->channels,
                          .pixels = (w->out_width - 1) * w->stride_x + w->kernel_width,
                          .at_once = 1};
    size_t lines = input_lines(p, w->out_height);
    p->is_copied =
        groups > 1 || w->pad_left + w->pad_top > 0 || p->pixels > w->width || lines > w->height;
    if (!p->is_copied)
        p->pixels = w->width;
    size_t line_bytes = p->pixels * w->channels * sizeof(float);
    while (p->at_once < w->out_height &&
           (!p->is_copied || input_lines(p, 2 * p->at_once) * line_bytes <= SCRATCH_BYTES))
        p->at_once *= 2;
    p->at_once = p->at_once < w->out_height ? p->at_once : w->out_height;
    return true;
}

size_t cpu_conv_lines_scratch(const cpu_conv_lines *p)
{
    return p->is_copied ? input_lines(p, p->at_once) * p->pixels * p->window.channels : 0;
}

/* The channels of the group, of `count` pixels. */
static void copy_pixels(const cpu_conv_lines *p, const float *in, size_t count, float *out)
{
    size_t channels = p->window.channels;
    if (channels == p->in_stride) {
        memcpy(out, in, count * channels * sizeof *out);
        return;
    }
    for (size_t i = 0; i < count; i++)
        memcpy(out + i * channels, in + i * p->in_stride, channels * sizeof *out);
}

const float *cpu_conv_lines_place(const cpu_conv_lines *p, const float *image, size_t first,
                                  size_t count, float *scratch)
{
    const image_window *w = &p->window;
    size_t channels = w->channels, line = w->width * p->in_stride;
    if (!p->is_copied)
        return image + first * w->stride_y * line;
    size_t before = w->pad_left < p->pixels ? w->pad_left : p->pixels;
    size_t inside = p->pixels - before < w->width ? p->pixels - before : w->width;
    size_t after = p->pixels - before - inside, lines = input_lines(p, count);
    ptrdiff_t y = (ptrdiff_t)(first * w->stride_y) - (ptrdiff_t)w->pad_top;
    float *out = scratch;
    for (size_t i = 0; i < lines; i++, y++, out += p->pixels * channels) {
        if (y < 0 || (size_t)y >= w->height) {
            memset(out, 0, p->pixels * channels * sizeof *out);
            continue;
        }
        memset(out, 0, before * channels * sizeof *out);
        copy_pixels(p, image + (size_t)y * line, inside, out + before * channels);
        memset(out + (before + inside) * channels, 0, after * channels * sizeof *out);
    }
    return scratch;
}

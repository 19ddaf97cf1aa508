#include "devices/cpu/fused/conv_lines.h"

#include <string.h>

#include "base/status.h"

#define PIXELS_MIN 6 /* of a line of the result: shorter tiles wait for latency */
#define WEIGHTS_BYTES_MAX ((size_t)1 << 19) /* of what is read again for each of small images */
#define SCRATCH_BYTES ((size_t)1 << 18)
#define DILATION_APART 4 /* pixels of the shortest piece, unless padding is less */

static size_t input_lines(const cpu_conv_lines *p, size_t count)
{
    const image_window *w = &p->window;
    return (count - 1) * w->stride_y + (w->kernel_height - 1) * w->dilation_y + 1;
}

static size_t line_floats(const cpu_conv_lines *p)
{
    return p->pixels * p->in_stride;
}

/* A segment is a line of the window where that lies in one piece, else a tap. */
static status fill_segments(cpu_conv_lines *p, arena *memory)
{
    const image_window *w = &p->window;
    bool is_line = w->dilation_x == 1 && p->in_stride == w->channels;
    size_t across = is_line ? 1 : w->kernel_width;
    p->segment_count = w->kernel_height * across;
    p->segment = is_line ? w->kernel_width * w->channels : w->channels;
    gemm_f32_segment *to = arena_allocate(memory, p->segment_count * sizeof *to);
    if (!to)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    for (size_t i = 0; i < p->segment_count; i++)
        to[i] = (gemm_f32_segment){.a = i / across * w->dilation_y * line_floats(p) +
                                        i % across * w->dilation_x * p->in_stride,
                                   .k = i * p->segment};
    p->segments = to;
    return STATUS_OK;
}

/* Whether tap `kx` of pixel `x` of a line is inside the image; its pixel to *at. */
static bool is_inside(size_t x, size_t stride, size_t tap, size_t dilation, size_t pad, size_t size,
                      size_t *at)
{
    *at = x * stride + tap * dilation - pad;
    return x * stride + tap * dilation >= pad && *at < size;
}

static bool has_cut(const image_window *w, size_t x)
{
    for (size_t k = 0; k < w->kernel_width; k++) {
        size_t at;
        if (is_inside(x, w->stride_x, k, w->dilation_x, w->pad_left, w->width, &at) !=
            is_inside(x - 1, w->stride_x, k, w->dilation_x, w->pad_left, w->width, &at))
            return true;
    }
    return false;
}

/* Each tap enters and leaves the image once. */
static status fill_cuts(cpu_conv_lines *p, arena *memory)
{
    const image_window *w = &p->window;
    size_t *cuts = arena_allocate(memory, (2 * w->kernel_width + 2) * sizeof *cuts), count = 0;
    if (!cuts)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    for (size_t x = 0; x < w->out_width; x++)
        if (x == 0 || has_cut(w, x))
            cuts[count++] = x;
    cuts[count] = w->out_width;
    p->segment = w->channels;
    p->segment_count = w->kernel_height * w->kernel_width;
    p->cuts = cuts;
    p->cut_count = count;
    return STATUS_OK;
}

status cpu_conv_lines_init(cpu_conv_lines *p, const image_window *w, size_t groups, size_t n,
                           size_t images, arena *memory, bool *fits)
{
    size_t weights = w->kernel_height * w->kernel_width * w->channels * n * sizeof(float);
    *fits = w->out_height > 0 && w->out_width >= PIXELS_MIN &&
            (images == 1 || weights <= WEIGHTS_BYTES_MAX || w->out_width > 4 * PIXELS_MIN);
    if (!*fits)
        return STATUS_OK;
    *p = (cpu_conv_lines){.window = *w,
                          .in_stride = groups * w->channels,
                          .pixels = (w->out_width - 1) * w->stride_x +
                                    (w->kernel_width - 1) * w->dilation_x + 1,
                          .at_once = 1};
    size_t lines = input_lines(p, w->out_height);
    bool is_padded = w->pad_left + w->pad_top > 0 || p->pixels > w->width || lines > w->height;
    p->is_apart = is_padded && w->dilation_x >= DILATION_APART;
    p->is_copied = is_padded && !p->is_apart;
    if (!p->is_copied)
        p->pixels = w->width;
    if (p->is_apart)
        return fill_cuts(p, memory);
    size_t line_bytes = line_floats(p) * sizeof(float);
    while (p->at_once < w->out_height &&
           (!p->is_copied || input_lines(p, 2 * p->at_once) * line_bytes <= SCRATCH_BYTES))
        p->at_once *= 2;
    p->at_once = p->at_once < w->out_height ? p->at_once : w->out_height;
    return fill_segments(p, memory);
}

size_t cpu_conv_lines_scratch(const cpu_conv_lines *p)
{
    return p->is_copied  ? input_lines(p, p->at_once) * line_floats(p) * sizeof(float)
           : p->is_apart ? p->segment_count * sizeof(gemm_f32_segment)
                         : 0;
}

size_t cpu_conv_lines_segments(const cpu_conv_lines *p, size_t y, size_t first, size_t *count,
                               gemm_f32_segment *segments)
{
    const image_window *w = &p->window;
    size_t made = 0, line, pixel, cut = 0;
    while (p->cuts[cut + 1] <= first)
        cut++;
    *count = p->cuts[cut + 1] - first < *count ? p->cuts[cut + 1] - first : *count;
    for (size_t i = 0; i < p->segment_count; i++)
        if (is_inside(y, w->stride_y, i / w->kernel_width, w->dilation_y, w->pad_top, w->height,
                      &line) &&
            is_inside(first, w->stride_x, i % w->kernel_width, w->dilation_x, w->pad_left, w->width,
                      &pixel))
            segments[made++] = (gemm_f32_segment){.a = (line * w->width + pixel) * p->in_stride,
                                                  .k = i * w->channels};
    return made;
}

const float *cpu_conv_lines_place(const cpu_conv_lines *p, const float *image, size_t first,
                                  size_t count, float *scratch)
{
    const image_window *w = &p->window;
    size_t channels = p->in_stride, line = w->width * channels;
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
        memcpy(out + before * channels, image + (size_t)y * line, inside * channels * sizeof *out);
        memset(out + (before + inside) * channels, 0, after * channels * sizeof *out);
    }
    return scratch;
}

#include "devices/cpu/fused/conv_layout.h"

#include <assert.h>
#include <string.h>

#include "kernels/conv_u8s8.h"

static size_t divide_up(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

/* Taps are `dilation` apart: pixels from the first to the last. */
static size_t span_of(size_t kernel, size_t dilation)
{
    return (kernel - 1) * dilation + 1;
}

/* The item of a window at `byte` of its `row`th row of cells, or -1. */
static int32_t item_at(const cpu_conv_layout *p, size_t row, size_t byte)
{
    const image_window *w = &p->window;
    size_t phase = byte % p->cell_bytes / w->channels, channel = byte % w->channels;
    size_t y = row * w->stride_y + phase / p->phases_x;
    size_t x = byte / p->cell_bytes * w->stride_x + phase % p->phases_x;
    if (y % w->dilation_y || x % w->dilation_x)
        return -1;
    size_t ky = y / w->dilation_y, kx = x / w->dilation_x;
    if (ky >= w->kernel_height || kx >= w->kernel_width)
        return -1;
    return (int32_t)((ky * w->kernel_width + kx) * w->channels + channel);
}

/* As cpu_conv_layout_steps, either may be NULL; returns how many there are. */
static size_t find_steps(const cpu_conv_layout *p, size_t *offsets, int32_t *items)
{
    const image_window *w = &p->window;
    size_t rows = (span_of(w->kernel_height, w->dilation_y) - 1) / w->stride_y + 1;
    size_t columns = (span_of(w->kernel_width, w->dilation_x) - 1) / w->stride_x + 1;
    size_t steps = 0;
    for (size_t row = 0; row < rows; row++)
        for (size_t byte = 0; byte < columns * p->cell_bytes;) {
            if (item_at(p, row, byte) < 0) {
                byte++;
                continue;
            }
            if (offsets)
                offsets[steps] = row * p->pitch * p->cell_bytes + byte;
            for (size_t i = 0; items && i < CONV_U8S8_STEP_BYTES; i++)
                items[steps * CONV_U8S8_STEP_BYTES + i] = item_at(p, row, byte + i);
            byte += CONV_U8S8_STEP_BYTES;
            steps++;
        }
    return steps;
}

/* Columns at the end of a row that can be those at the beginning of the next: padding in both. */
static size_t shared_columns(const cpu_conv_layout *p)
{
    const image_window *w = &p->window;
    size_t begin = w->pad_left >= p->phases_x ? (w->pad_left - p->phases_x) / w->stride_x + 1 : 0;
    size_t inside = divide_up(w->width + w->pad_left, w->stride_x);
    size_t end = p->columns > inside ? p->columns - inside : 0;
    size_t shared = begin < end ? begin : end, most = p->columns - w->out_width;
    return shared < most ? shared : most;
}

void cpu_conv_layout_init(cpu_conv_layout *p, const image_window *w)
{
    size_t span_y = span_of(w->kernel_height, w->dilation_y);
    size_t span_x = span_of(w->kernel_width, w->dilation_x);
    assert(w->out_height > 0 && w->out_width > 0 && w->channels > 0);
    *p = (cpu_conv_layout){.window = *w,
                           .phases_y = span_y < w->stride_y ? span_y : w->stride_y,
                           .phases_x = span_x < w->stride_x ? span_x : w->stride_x,
                           .rows = w->out_height + (span_y - 1) / w->stride_y,
                           .columns = w->out_width + (span_x - 1) / w->stride_x};
    p->cell_bytes = p->phases_y * p->phases_x * w->channels;
    p->pitch = p->columns - shared_columns(p);
    p->count = (w->out_height - 1) * p->pitch + w->out_width;
    p->steps = find_steps(p, NULL, NULL);
    /* The last step of the last row may look beyond it: at bytes whose weights are zero. */
    size_t bytes = ((p->rows - 1) * p->pitch + p->columns) * p->cell_bytes;
    p->image_bytes = divide_up(bytes + CONV_U8S8_STEP_BYTES, 64) * 64;
    p->is_direct = w->stride_y * w->stride_x == 1 && span_y * span_x == 1 &&
                   w->pad_top + w->pad_left == 0 && w->out_height == w->height &&
                   w->out_width == w->width && w->channels % CONV_U8S8_STEP_BYTES == 0;
}

void cpu_conv_layout_steps(const cpu_conv_layout *p, size_t *offsets, int32_t *items)
{
    find_steps(p, offsets, items);
}

/* Pieces are often a few bytes: copied in fixed sizes, the last overlapping the one before. */
static void copy_piece(uint8_t *restrict out, const uint8_t *restrict in, size_t bytes)
{
    if (bytes >= 16) {
        memcpy(out, in, bytes);
    } else if (bytes >= 8) {
        memcpy(out, in, 8);
        memcpy(out + bytes - 8, in + bytes - 8, 8);
    } else if (bytes >= 4) {
        memcpy(out, in, 4);
        memcpy(out + bytes - 4, in + bytes - 4, 4);
    } else {
        for (size_t i = 0; i < bytes; i++)
            out[i] = in[i];
    }
}

/* The phases of one row of pixels (NULL: padding) in a row of cells. */
static void fill_row(const cpu_conv_layout *p, const uint8_t *line, uint8_t pad, uint8_t *out)
{
    const image_window *w = &p->window;
    size_t channels = w->channels, bytes = p->phases_x * channels;
    for (size_t i = 0; i < p->columns; i++, out += p->cell_bytes) {
        ptrdiff_t x = (ptrdiff_t)(i * w->stride_x) - (ptrdiff_t)w->pad_left;
        if (line && x >= 0 && (size_t)x + p->phases_x <= w->width) {
            copy_piece(out, line + (size_t)x * channels, bytes);
            continue;
        }
        memset(out, pad, bytes);
        for (size_t phase = 0; line && phase < p->phases_x; phase++, x++)
            if (x >= 0 && (size_t)x < w->width)
                memcpy(out + phase * channels, line + (size_t)x * channels, channels);
    }
}

/* A row of pixels whose cells lie as the pixels do. */
static void fill_line(const cpu_conv_layout *p, const uint8_t *line, uint8_t pad, uint8_t *out)
{
    const image_window *w = &p->window;
    size_t all = p->columns * p->phases_x, before = w->pad_left < all ? w->pad_left : all;
    size_t inside = all - before < w->width ? all - before : w->width;
    size_t after = all - before - inside, channels = w->channels;
    memset(out, pad, before * channels);
    memcpy(out + before * channels, line, inside * channels);
    memset(out + (before + inside) * channels, pad, after * channels);
}

void cpu_conv_layout_fill(const cpu_conv_layout *p, const uint8_t *image, uint8_t pad, uint8_t *out)
{
    const image_window *w = &p->window;
    int is_line = p->phases_y == 1 && p->phases_x == w->stride_x;
    for (size_t row = 0; row < p->rows; row++, out += p->pitch * p->cell_bytes) {
        for (size_t phase = 0; phase < p->phases_y; phase++) {
            ptrdiff_t y = (ptrdiff_t)(row * w->stride_y + phase) - (ptrdiff_t)w->pad_top;
            const uint8_t *line =
                y >= 0 && (size_t)y < w->height ? image + (size_t)y * w->width * w->channels : NULL;
            uint8_t *to = out + phase * p->phases_x * w->channels;
            if (!line && is_line)
                memset(to, pad, p->columns * p->cell_bytes);
            else if (is_line)
                fill_line(p, line, pad, to);
            else
                fill_row(p, line, pad, to);
        }
    }
}

/* Windows read by the steps of cpu_conv_layout are the windows of the image. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "devices/cpu/fused/conv_layout.h"
#include "kernels/conv_u8s8.h"

static uint32_t seed = 1;

static size_t random_below(size_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static image_window random_window(void)
{
    static const size_t channels[] = {1, 3, 8, 16, 24, 64, 80, 128};
    image_window w = {.height = 1 + random_below(12),
                      .width = 1 + random_below(12),
                      .channels = channels[random_below(8)],
                      .kernel_height = 1 + random_below(7),
                      .kernel_width = 1 + random_below(7),
                      .stride_y = 1 + random_below(3),
                      .stride_x = 1 + random_below(3),
                      .dilation_y = 1 + random_below(2),
                      .dilation_x = 1 + random_below(2)};
    w.pad_top = random_below(w.kernel_height + 2);
    w.pad_left = random_below(w.kernel_width + 2);
    w.out_height = 1 + random_below((w.height + w.pad_top) / w.stride_y + 2);
    w.out_width = 1 + random_below((w.width + w.pad_left) / w.stride_x + 2);
    return w;
}

static uint8_t item_of(const image_window *w, const uint8_t *image, size_t y, size_t x, size_t item)
{
    size_t tap = item / w->channels, ky = tap / w->kernel_width, kx = tap % w->kernel_width;
    size_t py = y * w->stride_y + ky * w->dilation_y, px = x * w->stride_x + kx * w->dilation_x;
    if (py < w->pad_top || px < w->pad_left || py - w->pad_top >= w->height ||
        px - w->pad_left >= w->width)
        return 7;
    size_t pixel = (py - w->pad_top) * w->width + px - w->pad_left;
    return image[pixel * w->channels + item % w->channels];
}

static void check_pixel(const cpu_conv_layout *p, const uint8_t *image, const uint8_t *filled,
                        const size_t *offsets, const int32_t *items, size_t y, size_t x)
{
    const image_window *w = &p->window;
    size_t k = w->kernel_height * w->kernel_width * w->channels, seen = 0;
    size_t at = (y * p->pitch + x) * p->cell_bytes;
    for (size_t i = 0; i < p->steps * CONV_U8S8_STEP_BYTES; i++) {
        size_t byte = at + offsets[i / CONV_U8S8_STEP_BYTES] + i % CONV_U8S8_STEP_BYTES;
        cr_assert_lt(byte, p->image_bytes);
        if (items[i] < 0)
            continue;
        seen++;
        cr_assert_lt((size_t)items[i], k);
        cr_assert_eq(filled[byte], item_of(w, image, y, x, (size_t)items[i]),
                     "pixel %zu, %zu: item %d", y, x, items[i]);
    }
    cr_assert_eq(seen, k, "each item is in one step: %zu of %zu", seen, k);
}

Test(cpu_conv_layout, windows_of_any_geometry)
{
    for (int turn = 0; turn < 500; turn++) {
        image_window w = random_window();
        cpu_conv_layout p;
        cpu_conv_layout_init(&p, &w);
        cr_assert_eq(p.count, (w.out_height - 1) * p.pitch + w.out_width);
        size_t bytes = w.height * w.width * w.channels, item_count = p.steps * CONV_U8S8_STEP_BYTES;
        uint8_t *image = malloc(bytes), *filled = malloc(p.image_bytes);
        size_t *offsets = malloc(p.steps * sizeof *offsets);
        int32_t *items = malloc(item_count * sizeof *items);
        for (size_t i = 0; i < bytes; i++)
            image[i] = (uint8_t)(8 + random_below(200));
        cpu_conv_layout_steps(&p, offsets, items);
        cpu_conv_layout_fill(&p, image, 7, filled);
        for (size_t y = 0; y < w.out_height; y++)
            for (size_t x = 0; x < w.out_width; x++)
                check_pixel(&p, image, filled, offsets, items, y, x);
        if (p.is_direct)
            cr_assert(memcmp(image, filled, bytes) == 0);
        free(image);
        free(filled);
        free(offsets);
        free(items);
    }
}

Test(cpu_conv_layout, a_network_s_layers_take_no_more_steps_than_their_channels_fill)
{
    /* 3 x 3 over 64 channels: a step for each tap, and one column beside each row. */
    image_window w = {56, 56, 64, 56, 56, 3, 3, 1, 1, 1, 1, 1, 1};
    cpu_conv_layout p;
    cpu_conv_layout_init(&p, &w);
    cr_expect_eq(p.steps, 9);
    cr_expect_eq(p.pitch, 57);
    /* With a stride of two the same taps, of four phases. */
    w.out_height = w.out_width = 28;
    w.stride_y = w.stride_x = 2;
    cpu_conv_layout_init(&p, &w);
    cr_expect_eq(p.steps, 9);
    cr_expect_eq(p.cell_bytes, 256);
    /* A single pixel of four: only that phase. */
    w.kernel_height = w.kernel_width = 1;
    w.pad_top = w.pad_left = 0;
    cpu_conv_layout_init(&p, &w);
    cr_expect_eq(p.steps, 1);
    cr_expect_eq(p.cell_bytes, 64);
    /* 7 x 7 over 3 channels, stride 2: two rows of taps a step. */
    w = (image_window){224, 224, 3, 112, 112, 7, 7, 2, 2, 1, 1, 3, 3};
    cpu_conv_layout_init(&p, &w);
    cr_expect_eq(p.steps, 4);
    cr_expect_eq(p.cell_bytes, 12);
}

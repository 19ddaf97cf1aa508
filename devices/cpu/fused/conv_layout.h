#ifndef DEVICES_CPU_FUSED_CONV_LAYOUT_H
#define DEVICES_CPU_FUSED_CONV_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/convolution.h"

/* An image of bytes laid out for kernels/conv_u8s8.h: padding is written out, and the pixels that a
 * stride passes over become further channels of the cell before them, so that the windows of
 * neighbours are `cell_bytes` apart, whatever the stride. A cell is [phases_y][phases_x]
 * [channels] bytes; the rows of cells are `pitch` apart, which may be less than their length:
 * what is padding on the right of one row and on the left of the next is there once.
 *
 * A window is read in steps of 64 bytes, only those that hold a tap. */

typedef struct cpu_conv_layout {
    image_window window;
    size_t phases_y, phases_x; /* of each stride, those that taps fall on */
    size_t rows, columns;      /* of cells that windows touch */
    size_t pitch, count;       /* `count` up to the last pixel of the result */
    size_t cell_bytes, image_bytes;
    size_t steps;
    bool is_direct; /* the image as it lies is what cpu_conv_layout_fill would make */
} cpu_conv_layout;

/* `w` as for image_rows, all channels in one group. */
void cpu_conv_layout_init(cpu_conv_layout *p, const image_window *w);

/* Where each step lies behind a cell, and which item of a window each of its bytes is: tap *
 * channels + channel, or -1 for none. offsets[steps], items[64 * steps]. */
void cpu_conv_layout_steps(const cpu_conv_layout *p, size_t *offsets, int32_t *items);

/* Lays out one image [height, width, channels]; `out` holds image_bytes. */
void cpu_conv_layout_fill(const cpu_conv_layout *p, const uint8_t *image, uint8_t pad,
                          uint8_t *out);

#endif

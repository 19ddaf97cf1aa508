#ifndef DEVICES_CPU_FUSED_CONV_LAYOUT_H
#define DEVICES_CPU_FUSED_CONV_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/convolution.h"

/* A uint8 image laid out for kernels/conv_u8s8.h, which needs all windows to have one shape in
 * memory: padding is written out, and a cell holds the pixels of one stride step (space to depth),
 * so that the windows of neighbours are `cell_bytes` apart, whatever the stride. A cell is
 * [phases_y][phases_x][channels] bytes. Rows of cells are `pitch` apart, which may be less than
 * their length: the padding on the right of one row is that on the left of the next.
 *
 * A window is read in steps of 64 bytes, only those that hold a tap. */

typedef struct cpu_conv_layout {
    image_window window;
    size_t phases_y, phases_x; /* pixels of a stride step that taps fall on */
    size_t rows, columns;      /* of cells that windows read */
    size_t pitch, count;       /* cells: from row to row; up to the last pixel of the result */
    size_t cell_bytes, image_bytes;
    size_t steps;
    bool is_direct; /* the image itself has this layout: nothing to fill */
} cpu_conv_layout;

/* `w` as for image_rows, all channels in one group. */
void cpu_conv_layout_init(cpu_conv_layout *p, const image_window *w);

/* offsets[steps]: bytes from a cell to each step of its window. items[64 * steps]: which item of
 * the window each byte is, tap * channels + channel, or -1 for none. */
void cpu_conv_layout_steps(const cpu_conv_layout *p, size_t *offsets, int32_t *items);

/* Lays out one image [height, width, channels]; `out` holds image_bytes. */
void cpu_conv_layout_fill(const cpu_conv_layout *p, const uint8_t *image, uint8_t pad,
                          uint8_t *out);

#endif

#ifndef DEVICES_CPU_FUSED_CONV_LINES_H
#define DEVICES_CPU_FUSED_CONV_LINES_H

#include <stdbool.h>

#include "kernels/convolution.h"

/* A convolution of floats line by line of its result, whose windows a GEMM reads in place: the
 * lines of a window are the segments of a row of A (kernels/gemm_f32.h). Where there is padding, or
 * more than one group, the lines are copied first. For weights that stay in the L2 cache: they are
 * read once per line. */

typedef struct cpu_conv_lines {
    image_window window;
    size_t in_stride; /* floats from pixel to pixel of the image: channels of all groups */
    size_t pixels;    /* of an input line with its padding */
    bool is_copied;
    size_t at_once; /* lines of the result whose input is copied at a time */
} cpu_conv_lines;

/* False where unfolded windows are better. `w` as for image_rows, of one of `groups`; `n` results a
 * pixel of a group. */
bool cpu_conv_lines_init(cpu_conv_lines *p, const image_window *w, size_t groups, size_t n);

/* Floats of scratch for `at_once` lines. */
size_t cpu_conv_lines_scratch(const cpu_conv_lines *p);

/* The input of lines [first, first + count) of the result, with its padding: in `image`
 * [height, width, in_stride], from the first channel of the group on, or copied to `scratch`. Line
 * i begins stride_y * i lines further. */
const float *cpu_conv_lines_place(const cpu_conv_lines *p, const float *image, size_t first,
                                  size_t count, float *scratch);

#endif

#ifndef DEVICES_CPU_FUSED_CONV_LINES_H
#define DEVICES_CPU_FUSED_CONV_LINES_H

#include <stdbool.h>

#include "base/arena.h"
#include "kernels/convolution.h"
#include "kernels/gemm_f32.h"

/* A convolution of floats whose windows a GEMM reads in place: a window is a row of A in segments
 * (kernels/gemm_f32.h), its taps or its lines, and the windows of a line of the result are a run of
 * rows. There are three ways to come by the padding:
 *
 *   there is none: windows lie in the image;
 *   the lines that some lines of the result need are copied, with their padding;
 *   taps are far apart: a line is cut where a tap enters or leaves the image, and each piece has
 *   the segments of the taps that are inside. Nothing is copied, and no zeros are multiplied. */

typedef struct cpu_conv_lines {
    image_window window;
    size_t in_stride; /* floats from pixel to pixel of the image: channels of all groups */
    size_t pixels;    /* of an input line with its padding */
    bool is_copied, is_apart;
    size_t at_once; /* lines of the result at a time: whose input is copied */
    size_t segment; /* floats */
    size_t segment_count;
    const gemm_f32_segment *segments; /* of a window, unless taps are far apart: then */
    const size_t *cuts;               /* pixels of a result line where pieces begin, and its end */
    size_t cut_count;
} cpu_conv_lines;

/* Sets *fits to false where unfolded windows are better. `w` as for image_rows, of one of `groups`;
 * `n` results a pixel of a group. */
status cpu_conv_lines_init(cpu_conv_lines *p, const image_window *w, size_t groups, size_t n,
                           size_t images, arena *memory, bool *fits) MUST_CHECK;

/* Bytes of scratch for `at_once` lines. */
size_t cpu_conv_lines_scratch(const cpu_conv_lines *p);

/* The input of lines [first, first + count) of the result, with its padding: in `image`
 * [height, width, in_stride], or copied to `scratch`. Line i begins stride_y * i lines further. Not
 * where taps are far apart. */
const float *cpu_conv_lines_place(const cpu_conv_lines *p, const float *image, size_t first,
                                  size_t count, float *scratch);

/* Of taps that are far apart: the segments of the windows of pixels [first, first + count) of line
 * `y`, counted from the image's first float; `count` becomes the pixels that have the same.
 * `segments` holds as many as there are taps. */
size_t cpu_conv_lines_segments(const cpu_conv_lines *p, size_t y, size_t first, size_t *count,
                               gemm_f32_segment *segments);

#endif

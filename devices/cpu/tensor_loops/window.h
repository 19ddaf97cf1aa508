#ifndef DEVICES_CPU_TENSOR_LOOPS_WINDOW_H
#define DEVICES_CPU_TENSOR_LOOPS_WINDOW_H

#include "devices/cpu/ops/op.h"
#include "kernels/convolution.h"

/* Geometry of convolution and pooling: [batch, channels, spatial...] with one to three spatial
 * dims, always treated as three (missing ones in front are 1). */

#define CPU_WINDOW_DIMS 3

typedef struct cpu_window {
    int64_t in[CPU_WINDOW_DIMS], out[CPU_WINDOW_DIMS], kernel[CPU_WINDOW_DIMS];
    int64_t stride[CPU_WINDOW_DIMS], dilation[CPU_WINDOW_DIMS];
    int64_t pad_begin[CPU_WINDOW_DIMS], pad_end[CPU_WINDOW_DIMS];
    int64_t in_plane, out_plane, taps;
} cpu_window;

/* From the attributes strides, dilations, pads, auto_pad of `node`; `kernel` has one size per
 * spatial dim of `in`. STATUS_UNSUPPORTED: more than three spatial dims. */
status cpu_window_init(cpu_window *w, const graph_node *node, const tensor *in, const tensor *out,
                       const int64_t *kernel) MUST_CHECK;

/* Outputs o for which tap `tap` of dim d reads inside the input: [*first, *end). */
static inline void cpu_window_range(const cpu_window *w, int d, int64_t tap, int64_t *first,
                                    int64_t *end)
{
    int64_t shift = tap * w->dilation[d] - w->pad_begin[d]; /* input = o * stride + shift */
    int64_t low = shift >= 0 ? 0 : (-shift + w->stride[d] - 1) / w->stride[d];
    int64_t room = w->in[d] - 1 - shift;
    int64_t high = room < 0 ? 0 : room / w->stride[d] + 1;
    *end = high < w->out[d] ? high : w->out[d];
    *first = low < *end ? low : *end;
}

/* The same for channels last: `in` and `out` are [N,H,W,C], `kernel` is [height, width]. */
status cpu_window_init_image(image_window *w, const graph_node *node, const tensor *in,
                             const tensor *out, const int64_t *kernel) MUST_CHECK;

#endif

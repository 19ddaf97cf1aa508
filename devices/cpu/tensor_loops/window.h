#ifndef DEVICES_CPU_TENSOR_LOOPS_WINDOW_H
#define DEVICES_CPU_TENSOR_LOOPS_WINDOW_H

#include "graph/graph.h"
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

/* `count` neighbouring outputs along the last dim, from output `out` on: output out + i reads input
 * in + i * stride under tap `tap`. Indices are those of elements of one plane. */
typedef struct cpu_window_run {
    int64_t tap, in, out, count, stride;
} cpu_window_run;

typedef void (*cpu_window_visit)(void *context, const cpu_window_run *run);

/* Visits all taps of all outputs of one plane that read inside the input, tap after tap and runs in
 * order. Inlined, so that `visit` is inlined too. */
static inline __attribute__((always_inline)) void
cpu_window_each_run(const cpu_window *w, cpu_window_visit visit, void *context)
{
    int64_t first[CPU_WINDOW_DIMS], end[CPU_WINDOW_DIMS];
    cpu_window_run run = {.tap = 0, .stride = w->stride[2]};
    for (int64_t a = 0; a < w->kernel[0]; a++)
        for (int64_t b = 0; b < w->kernel[1]; b++)
            for (int64_t c = 0; c < w->kernel[2]; c++, run.tap++) {
                cpu_window_range(w, 0, a, &first[0], &end[0]);
                cpu_window_range(w, 1, b, &first[1], &end[1]);
                cpu_window_range(w, 2, c, &first[2], &end[2]);
                run.count = end[2] - first[2];
                for (int64_t od = first[0]; od < end[0]; od++)
                    for (int64_t oh = first[1]; oh < end[1]; oh++) {
                        int64_t id = od * w->stride[0] + a * w->dilation[0] - w->pad_begin[0];
                        int64_t ih = oh * w->stride[1] + b * w->dilation[1] - w->pad_begin[1];
                        int64_t iw = first[2] * run.stride + c * w->dilation[2] - w->pad_begin[2];
                        run.in = (id * w->in[1] + ih) * w->in[2] + iw;
                        run.out = (od * w->out[1] + oh) * w->out[2] + first[2];
                        visit(context, &run);
                    }
            }
}

/* As cpu_window_init for channels last: `in` and `out` are [N,H,W,C], `kernel` is [height, width].
 */
status cpu_window_init_image(image_window *w, const graph_node *node, const tensor *in,
                             const tensor *out, const int64_t *kernel) MUST_CHECK;

#endif

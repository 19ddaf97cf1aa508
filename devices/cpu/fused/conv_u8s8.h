#ifndef DEVICES_CPU_FUSED_CONV_U8S8_H
#define DEVICES_CPU_FUSED_CONV_U8S8_H

#include "devices/cpu/ops/op.h"
#include "kernels/convolution.h"

/* A convolution from bytes to bytes whose windows are read in place (kernels/conv_u8s8.h). */

typedef struct cpu_conv_u8s8 cpu_conv_u8s8;

/* What it computes: weights i8 [n, channels, height, width], and n of the others. */
typedef struct cpu_conv_u8s8_spec {
    image_window window;
    size_t images;
    const tensor *weights;
    int32_t x_zero, y_zero;
    const int32_t *start;      /* bias of the sums; NULL: 0 */
    const float *scale, *bias; /* in units of the result's scale; bias may be NULL */
    bool has_relu;
} cpu_conv_u8s8_spec;

/* In p->memory, with scratch asked of `p`. `*out` is NULL where unfolding windows is faster.
 * Errors: STATUS_OUT_OF_MEMORY. */
status cpu_conv_u8s8_prepare(cpu_prepare *p, const cpu_conv_u8s8_spec *spec,
                             const cpu_conv_u8s8 **out) MUST_CHECK;

void cpu_conv_u8s8_run(const cpu_conv_u8s8 *s, const kernels *k, const uint8_t *in,
                       uint8_t *scratch, uint8_t *out);

#endif

#ifndef DEVICES_CPU_FUSED_CONV_U8S8_H
#define DEVICES_CPU_FUSED_CONV_U8S8_H

#include "devices/cpu/ops/op.h"
#include "kernels/convolution.h"

/* A convolution of uint8 images, uint8 results, whose windows are read in place
 * (kernels/conv_u8s8.h). */

typedef struct cpu_conv_u8s8 cpu_conv_u8s8;

/* What it computes. Weights are int8 [n, channels, height, width]; start, scale and bias are [n].
 */
typedef struct cpu_conv_u8s8_spec {
    image_window window;
    size_t images;
    const tensor *weights;
    int32_t x_zero, y_zero;
    const int32_t *start;      /* added to the sums; NULL: 0 */
    const float *scale, *bias; /* in units of the result's scale; bias may be NULL */
    bool has_relu;
} cpu_conv_u8s8_spec;

/* Allocates in p->memory and adds to p->scratch_bytes. `*out` is NULL where unfolding the windows
 * is faster. Errors: STATUS_OUT_OF_MEMORY. */
status cpu_conv_u8s8_prepare(cpu_prepare *p, const cpu_conv_u8s8_spec *spec,
                             const cpu_conv_u8s8 **out) MUST_CHECK;

void cpu_conv_u8s8_run(const cpu_conv_u8s8 *s, const kernels *k, const uint8_t *in,
                       uint8_t *scratch, uint8_t *out);

#endif

#ifndef DEVICES_CPU_OPS_CONVOLUTION_CONV_VOLUME_H
#define DEVICES_CPU_OPS_CONVOLUTION_CONV_VOLUME_H

#include "devices/cpu/ops/op.h"
#include "devices/cpu/tensor_loops/window.h"

/* Convolution of volumes in F32, channels first: an image is laid out with its padding and the
 * channels last, so that a GEMM reads windows in place (kernels/gemm_f32.h); the results of some
 * lines at a time are moved back. */

typedef struct cpu_conv_volume cpu_conv_volume;

/* NULL to *out where other ways are better: small volumes, few channels, weights that are no
 * constant, padding that exceeds the volume. Asks for scratch. */
status cpu_conv_volume_prepare(cpu_prepare *p, const cpu_window *w,
                               const cpu_conv_volume **out) MUST_CHECK;

status cpu_conv_volume_run(const cpu_conv_volume *s, const cpu_call *c) MUST_CHECK;

#endif

#ifndef DEVICES_CPU_FUSED_EPILOGUE_H
#define DEVICES_CPU_FUSED_EPILOGUE_H

#include "devices/cpu/ops/op.h"
#include "kernels/activation.h"

/* What follows a GEMM or a depthwise convolution of floats and is not in the kernel: computed on
 * some rows of the result while they are in the cache. */

typedef struct fused_epilogue {
    bool adds_residual;            /* here, not in the GEMM */
    bool adds_last;                /* after the activation */
    kernels_activation activation; /* without parameters, or KERNELS_IDENTITY */
    activation_kind kind;          /* with parameters, or ACTIVATION_COUNT: */
    float a, b;
    float scale, shift; /* of its result; 1 and 0: none */
} fused_epilogue;

/* From the attributes of a penstock.Conv or penstock.Dense node: what the kernel computes, and what
 * is left. `adds_no_residual`: the kernel cannot add one; `in_kernel` NULL: nor activate. */
void fused_epilogue_prepare(const graph_node *n, bool adds_no_residual,
                            kernels_activation *in_kernel, fused_epilogue *after);

/* On `count` results; `residual` lies as they do, or is NULL. */
void fused_epilogue_run(const fused_epilogue *e, const kernels *k, const float *residual,
                        float *out, size_t count);

#endif

#ifndef DEVICES_CPU_FUSED_FUSED_H
#define DEVICES_CPU_FUSED_FUSED_H

#include "devices/cpu/ops/op.h"

/* How the operators of graph/quantise/fuse.h say what they do; for cpu_op_fused*.c. */

/* Of the attribute "activation". */
kernels_activation cpu_fused_activation(const graph_node *n);

/* Of column i, where there is one scale for all or one for each; 1 where `t` is NULL. */
float cpu_fused_scale(const tensor *t, size_t i);

/* The first zero point; 0 where `t` is NULL. */
int32_t cpu_fused_zero(const tensor *t);

#endif

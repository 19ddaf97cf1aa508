#ifndef DEVICES_CPU_FUSED_FUSED_H
#define DEVICES_CPU_FUSED_FUSED_H

#include "devices/cpu/ops/op.h"

/* Reads the attributes and quantisation inputs of the operators of graph/quantise/fuse.h. */

/* The attribute "activation", where kernels have it; KERNELS_IDENTITY for the others. */
kernels_activation cpu_fused_activation(const graph_node *n);

/* The scale of column i: one for all columns or one for each; 1 where `t` is NULL. */
float cpu_fused_scale(const tensor *t, size_t i);

/* The first zero point; 0 where `t` is NULL. */
int32_t cpu_fused_zero(const tensor *t);

#endif

#ifndef DEVICES_CPU_ELEMENTWISE_UNARY_BLOCKS_H
#define DEVICES_CPU_ELEMENTWISE_UNARY_BLOCKS_H

#include <stddef.h>

#include "graph/op.h"

/* What each operator on single floats computes. `out` may be `in`; `p` holds the operator's two
 * parameters, in the order of unary.c. */
typedef void (*cpu_unary_f32_block)(const float *in, float *out, size_t count, const float *p);
typedef void (*cpu_unary_f64_block)(const double *in, double *out, size_t count, const float *p);

enum { CPU_UNARY_GELU_TANH = GRAPH_OP_COUNT, CPU_UNARY_COUNT };

/* By graph_op, and CPU_UNARY_GELU_TANH; NULL for the other operators. */
extern const cpu_unary_f32_block cpu_unary_f32_blocks[CPU_UNARY_COUNT];
extern const cpu_unary_f64_block cpu_unary_f64_blocks[CPU_UNARY_COUNT];

#endif

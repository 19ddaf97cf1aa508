#ifndef GRAPH_QUANTISE_FUSE_H
#define GRAPH_QUANTISE_FUSE_H

#include "graph/graph.h"

/* Rewrites a specialised graph for a device that fuses dense layers and convolutions with the nodes
 * around them, keeps quantised activations as uint8, and convolves with the channels last (NHWC).
 * Results stay those of the model: quantised layers keep the model's own scales and rounding; only
 * the order of float additions may change. Operators that only this pass makes:
 *
 *   penstock.Conv       x [N,H,W,C], weights [M,C/group,h,w] -> [N,H',W',M]
 *   penstock.ConvTranspose  x [N,H,W,C], weights [C,h,w,M], bias (optional) -> [N,H',W',M]; floats
 *   penstock.Dense      x [...,K], weights [K,N] (transB: [N,K]) -> [...,N]
 *     inputs: 0 x (f32 or u8), 1 weights (f32 or i8), 2 bias (f32, or i32 in units of x_scale *
 *     w_scale; optional), 3 residual (f32, like the result; optional), and where x is u8: 4 x_scale
 *     (optional: 1), 5 x_zero, 6 w_scale (one, or one per output channel), 7 y_scale, 8 y_zero
 *     (optional: the result stays f32). Attributes: activation ("Relu", ...), those of Conv.
 *     y = quantise(activation((x - x_zero) * weights * x_scale * w_scale + bias + residual))
 *     Attribute weights_shift (no depthwise Conv): added to each weight (int8, or uint8 - 128).
 *     Where x is f32 also: activations with parameters alpha and beta, and scale and shift of their
 *     result ("LeakyRelu", ... of kernels/activation.h); adds_last: activation(...) + residual.
 *   penstock.Pool       x [N,H,W,C] (f32; u8 for maxima) -> [N,H',W',C]; attributes of MaxPool and
 *     AveragePool, and kind: "Max" or "Average"
 *   penstock.Add        a, b (u8; b may be a trailing part of a's shape), a_scale, a_zero, b_scale,
 *     b_zero, y_scale, y_zero -> u8; attribute activation: "Relu" or absent
 *
 * int8 activations are kept as uint8 with 128 added, and so are their zero points. */

typedef struct fused_facts {
    int fused_layer_count;     /* penstock.Conv and penstock.Dense made */
    int quantised_layer_count; /* of them, on uint8 activations */
} fused_facts;

/* `g` is specialised and must outlive `*out`, which has the same inputs and outputs. `facts` may be
 * NULL. Errors: STATUS_OUT_OF_MEMORY. */
status graph_fuse_layers(const graph *g, graph **out, fused_facts *facts) MUST_CHECK;

#endif

#ifndef GRAPH_QUANTISE_SMOOTH_H
#define GRAPH_QUANTISE_SMOOTH_H

#include "base/tensor.h"

/* How the channels of x become 8-bit integers without looking at x: q = round(x * factors -
 * offsets), kept within -127 and 127. f32 [K]; offsets NULL: 0. */
typedef struct quantise_channels {
    const tensor *factors, *offsets;
} quantise_channels;

/* Factors for the channels of x before it is quantised, by which the weights are divided: between
 * the ranges of x and of the weights, a factor divides the difference (SmoothQuant, arXiv
 * 2211.10438). `alpha` 1: x gets equal ranges; 0: the weights do; 0.5: evenly. `tops`,
 * `weight_tops` [count]: the largest magnitude of each channel of x and of its weights. Channels of
 * which either is 0 have factor 1; the geometric mean of the others is about 1. `tops` may be NULL:
 * all are 1; `weight_tops` may be `factors`. */
void quantise_smooth(const float *tops, const float *weight_tops, size_t count, float alpha,
                     float *factors);

#endif

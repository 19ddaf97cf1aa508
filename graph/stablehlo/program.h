#ifndef GRAPH_STABLEHLO_PROGRAM_H
#define GRAPH_STABLEHLO_PROGRAM_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/status.h"
#include "base/tensor.h"
#include "graph/quantise/smooth.h"

/* A StableHLO program: its text and its arguments. Weights are arguments, so that they are uploaded
 * once per device and shared by the programs of all buckets. */

typedef enum stablehlo_precision {
    STABLEHLO_FP32,
    STABLEHLO_BF16, /* dense operands rounded to bf16, accumulated in f32 */
    STABLEHLO_INT8, /* dense layers with constant weights: s8 x s8 -> s32, weights scaled per output
                       channel, activations per row (token) */
} stablehlo_precision;

/* How a graph is written. */
typedef enum stablehlo_gelu {
    STABLEHLO_GELU_EXACT,     /* by erf, in f32 */
    STABLEHLO_GELU_TANH,      /* by tanh, within 5e-4 of it, in f32 */
    STABLEHLO_GELU_TANH_BF16, /* the same in bf16 */
} stablehlo_gelu;

typedef struct stablehlo_options {
    stablehlo_precision precision;
    /* What lies between the matrix multiplications; only where the precision is not FP32. */
    stablehlo_gelu gelu;
    bool is_norm_one_pass;   /* variance as the mean of squares less the square of the mean */
    bool is_softmax_late;    /* divided by its sum after the product that follows it */
    bool is_stream_bf16;     /* normalised values are rounded to bf16 */
    bool is_gelu_apart;      /* computed before the layer that reads it, not with it */
    bool is_norm_apart;      /* computed after the layer whose result it normalises, not with it */
    bool is_norm_kept;       /* computed once, where one layer and a residual read it */
    bool are_sums_bf16;      /* so are results of dense layers */
    bool are_weights_turned; /* [N,K] weights are uploaded as [K,N] */
    bool are_scores_bf16;    /* so are products of two computed tensors: attention scores */
    /* By GRAPH_LINEAR_NUMBER of a product with a constant weight: what it reads is rounded so and
     * multiplied in s8, instead of what `precision` says; factors NULL: not. Read while the program
     * is made; the data of their tensors may be set later. */
    const quantise_channels *channels;
    int channels_count;
} stablehlo_options;

/* How a constant of the graph becomes an argument. The INT8 pair comes from one [K,N] weight. */
typedef enum stablehlo_transform {
    STABLEHLO_AS_IS,
    STABLEHLO_TO_BF16,
    STABLEHLO_TO_BF16_TURNED, /* the transpose of a matrix */
    STABLEHLO_TO_S8,          /* s8, round(w / scale[n]), n along the axis */
    STABLEHLO_TO_S8_TURNED,   /* the transpose of that */
    STABLEHLO_TO_S8_SCALES,   /* [N] f32, max|w[n]| / 127 */
    STABLEHLO_TO_S8_SHIFTS,   /* [N] f32, what the offsets of the channels come to */
} stablehlo_transform;

typedef struct stablehlo_argument {
    int input; /* graph input, or -1 */
    const tensor
        *constant; /* of the graph, when input is -1; identity: constant->data and the transform */
    stablehlo_transform transform;
    int axis; /* of output channels, for the S8 transforms: 1 for a [K,N] weight, 0 for [N,K] */
    /* For the S8 transforms: of w / factors; factors NULL: 1. The tensors outlive the program. */
    quantise_channels channels;
    dtype dtype; /* as the program declares it */
    int rank;
    int64_t dims[TENSOR_RANK_MAX];
} stablehlo_argument;

typedef struct stablehlo_program {
    char *text; /* malloc'd, as is `arguments` */
    size_t bytes;
    stablehlo_argument *arguments; /* in program order: graph inputs that are used first */
    int argument_count, output_count;
    int dense_count,
        dense_int8_count;   /* MatMul/Gemm with constant weights, and how many run in s8 */
    int dense_static_count; /* of these, with static scales of what they read */
    double flops;           /* 2 per multiply-add of dense layers, attention and convolutions */
} stablehlo_program;

/* Accepts a zeroed one. */
void stablehlo_program_dispose(stablehlo_program *p);

/* The argument's data as the device wants it, in memory of `a`; for AS_IS the constant's own. Only
 * for arguments that are constants. STATUS_OUT_OF_MEMORY. */
status stablehlo_argument_data(const stablehlo_argument *argument, arena *a,
                               tensor *out) MUST_CHECK;

#endif

#ifndef DEVICES_CPU_FUSED_CONV_DENSE_H
#define DEVICES_CPU_FUSED_CONV_DENSE_H

#include "devices/cpu/fused/conv_lines.h"
#include "devices/cpu/fused/conv_u8s8.h"
#include "devices/cpu/fused/epilogue.h"

/* A penstock.Conv or penstock.Dense, prepared: for conv_dense.c and conv_dense_run.c. */

/* Inputs of the operators. */
enum {
    CONV_DENSE_X,
    CONV_DENSE_WEIGHTS,
    CONV_DENSE_BIAS,
    CONV_DENSE_RESIDUAL,
    CONV_DENSE_X_SCALE,
    CONV_DENSE_X_ZERO,
    CONV_DENSE_W_SCALE,
    CONV_DENSE_Y_SCALE,
    CONV_DENSE_Y_ZERO
};

/* What an epilogue takes beside the operands. */
typedef struct conv_dense_factors {
    float *scale;    /* [n]: of the sums; quantised only */
    float *bias;     /* [n], or NULL */
    int32_t *start;  /* [n], or NULL */
    int32_t *x_zero; /* [rows] */
    uint8_t pad;
} conv_dense_factors;

typedef struct conv_dense {
    bool is_conv, is_u8, is_depthwise, is_direct;
    bool is_known; /* scales and zero points are constants: `known` holds them */
    int64_t images, groups;
    size_t multiplier;         /* of a depthwise convolution: results of a channel, in this order */
    size_t rows;               /* of A; of a convolution: per image */
    size_t rows_at_once, k, n; /* k and n of a group */
    image_window window;
    kernels_activation activation; /* of the GEMM */
    fused_epilogue after;          /* behind it */
    const void **packed;           /* by group */
    int32_t y_zero;
    int32_t weights_shift;   /* of fuse.h; then: */
    size_t row_start_offset; /* in the part of each thread */
    conv_dense_factors known;
    size_t rows_offset; /* scratch: after the factors */
    bool is_by_line;    /* windows of floats are read in place: */
    cpu_conv_lines lines;
    const cpu_conv_u8s8 *in_place; /* runs the whole convolution; NULL: windows are unfolded */
} conv_dense;

/* Factors that are computed in a run lie in `memory`: factors_bytes of conv_dense.c. */
void conv_dense_place_factors(const conv_dense *s, char *memory, conv_dense_factors *f);
/* All factors, in units of the result's scale. */
void conv_dense_fill_factors(const conv_dense *s, const tensor *const *inputs, const graph_node *n,
                             conv_dense_factors *f);

status conv_dense_run(const cpu_call *c) MUST_CHECK;

#endif

#ifndef TESTS_UNIT_GRAPH_ENCODER_BUILD_H
#define TESTS_UNIT_GRAPH_ENCODER_BUILD_H

#include "graph/graph.h"

/* Builds encoders of one size with random weights, in the ways that exporters and people write
 * them. A zeroed pattern is the plainest. */

typedef enum norm_pattern { NORM_FUSED, NORM_POW, NORM_SQUARE, NORM_RECIPROCAL } norm_pattern;
typedef enum activation_pattern {
    ACTIVATION_GELU,
    ACTIVATION_DIV_FIRST,  /* x * (erf(x / sqrt 2) + 1) * 0.5 */
    ACTIVATION_HALF_FIRST, /* (0.5 * x) * (1 + erf(x * sqrt 0.5)) */
    ACTIVATION_HALF_LAST,  /* x * ((erf + 1) * 0.5) */
    ACTIVATION_TANH_POW,
    ACTIVATION_TANH_SQUARE,
    ACTIVATION_SIGMOID, /* not supported */
    ACTIVATION_QUICK_GELU
} activation_pattern;
typedef enum dense_pattern {
    DENSE_MATMUL,
    DENSE_BIAS_FIRST,
    DENSE_GEMM,
    DENSE_GEMM_TRANSPOSED
} dense_pattern;
typedef enum qkv_pattern {
    QKV_APART,
    QKV_SPLIT,     /* one dense layer, cut in three */
    QKV_BY_GATHER, /* [B,S,3,heads,size], transposed, gathered */
    QKV_BY_HEAD,   /* each head's three parts side by side */
} qkv_pattern;
typedef enum scale_pattern {
    SCALE_DIV,
    SCALE_MUL,
    SCALE_QUERIES,
    SCALE_KEYS,
    SCALE_BOTH
} scale_pattern;
typedef enum mask_pattern {
    MASK_SUBTRACT,     /* scores + (1 - mask) * -1e4 */
    MASK_WHERE,        /* where(mask, scores, lowest) */
    MASK_INFINITE,     /* scores + where(mask, 0, -inf), NaN replaced after the softmax */
    MASK_BEFORE_SCALE, /* (scores + bias) / sqrt(size) */
    MASK_NONE,
    MASK_CAUSAL, /* this one and those below are not supported */
    MASK_AFTER_SOFTMAX,
    MASK_FROM_IDS,
    MASK_SMALL,     /* adds -1 only */
    MASK_OF_QUERIES /* also masks rows */
} mask_pattern;
typedef enum matmul_pattern { MATMUL_MATMUL, MATMUL_EINSUM, MATMUL_EINSUM_IN_PLACE } matmul_pattern;
typedef enum output_pattern {
    OUTPUT_HIDDEN,
    OUTPUT_MEAN,
    OUTPUT_MEAN_OF_ALL,
    OUTPUT_MAX,
    OUTPUT_FIRST,
    OUTPUT_CLASSES,
    OUTPUT_SOFTMAX,
    OUTPUT_LAST,
    OUTPUT_SPLIT_COLUMN, /* the second of two classes of each token */
    OUTPUT_GATHERED_COLUMN
} output_pattern;

typedef struct encoder_pattern {
    norm_pattern norm;
    activation_pattern activation;
    dense_pattern dense;
    qkv_pattern qkv;
    scale_pattern scale;
    mask_pattern mask;
    matmul_pattern matmul;
    output_pattern output;
    bool normalises_first;  /* pre-normalisation */
    bool scales_unevenly;   /* layer 1 by another factor */
    bool forgets_mask;      /* in layer 1 */
    bool adds_twice;        /* the residual */
    bool clips_positions;   /* at 18 */
    bool attends_in_window; /* of 20 tokens */
    bool finds_types;       /* token types from the ids: beyond id 25 */
    bool projects;          /* narrower embeddings, widened by a dense layer */
} encoder_pattern;

graph *build_encoder(const encoder_pattern *pattern);

#endif

#ifndef TESTS_ENCODER_BUILD_H
#define TESTS_ENCODER_BUILD_H

#include "graph/graph.h"

/* Makes encoders of one shape and random weights in the ways that exporters and people write
 * them. A zeroed form is the plainest. */

typedef enum norm_form { NORM_FUSED, NORM_POW, NORM_SQUARE, NORM_RECIPROCAL } norm_form;
typedef enum activation_form {
    ACTIVATION_GELU,
    ACTIVATION_DIV_FIRST,  /* x * (erf(x / sqrt 2) + 1) * 0.5 */
    ACTIVATION_HALF_FIRST, /* (0.5 * x) * (1 + erf(x * sqrt 0.5)) */
    ACTIVATION_HALF_LAST,  /* x * ((erf + 1) * 0.5) */
    ACTIVATION_TANH_POW,
    ACTIVATION_TANH_SQUARE,
    ACTIVATION_SIGMOID, /* of no encoder */
    ACTIVATION_QUICK_GELU
} activation_form;
typedef enum dense_form {
    DENSE_MATMUL,
    DENSE_BIAS_FIRST,
    DENSE_GEMM,
    DENSE_GEMM_TRANSPOSED
} dense_form;
typedef enum qkv_form {
    QKV_APART,
    QKV_SPLIT,     /* one dense layer, cut in three */
    QKV_BY_GATHER, /* [B,S,3,heads,size], transposed, gathered */
    QKV_BY_HEAD,   /* each head's three parts side by side */
} qkv_form;
typedef enum scale_form { SCALE_DIV, SCALE_MUL, SCALE_QUERIES, SCALE_KEYS, SCALE_BOTH } scale_form;
typedef enum mask_form {
    MASK_SUBTRACT,     /* scores + (1 - mask) * -1e4 */
    MASK_WHERE,        /* where(mask, scores, lowest) */
    MASK_INFINITE,     /* scores + where(mask, 0, -inf), NaN replaced after the softmax */
    MASK_BEFORE_SCALE, /* (scores + bias) / sqrt(size) */
    MASK_NONE,
    MASK_CAUSAL, /* none of ours */
    MASK_AFTER_SOFTMAX,
    MASK_FROM_IDS,
    MASK_SMALL,     /* adds -1 only */
    MASK_OF_QUERIES /* also masks rows */
} mask_form;
typedef enum product_form { PRODUCT_MATMUL, PRODUCT_EINSUM, PRODUCT_EINSUM_IN_PLACE } product_form;
typedef enum tail_form {
    TAIL_HIDDEN,
    TAIL_MEAN,
    TAIL_MEAN_OF_ALL,
    TAIL_MAX,
    TAIL_FIRST,
    TAIL_CLASSES,
    TAIL_SOFTMAX,
    TAIL_LAST,
    TAIL_SPLIT_COLUMN, /* the second of two classes of each position */
    TAIL_GATHERED_COLUMN
} tail_form;

typedef struct encoder_form {
    norm_form norm;
    activation_form activation;
    dense_form dense;
    qkv_form qkv;
    scale_form scale;
    mask_form mask;
    product_form product;
    tail_form tail;
    bool normalises_first;  /* pre-normalisation */
    bool scales_unevenly;   /* layer 1 by another factor */
    bool forgets_mask;      /* in layer 1 */
    bool adds_twice;        /* the residual */
    bool clips_positions;   /* at 18 */
    bool attends_in_window; /* of 20 positions */
    bool finds_types;       /* token types from the ids: beyond id 25 */
    bool projects;          /* narrower embeddings, widened by a dense layer */
} encoder_form;

graph *build_encoder(const encoder_form *form);

#endif

#ifndef GRAPH_ENCODER_ENCODER_H
#define GRAPH_ENCODER_ENCODER_H

#include "graph/specialise/specialise.h"

/* An encoder transformer (BERT family) recognised in a graph, whoever exported it: all that a
 * device needs to run it on ragged batches, without padding. Pointers are borrowed from the graph
 * or owned by `memory`. */

typedef struct encoder_linear {
    const tensor *weight; /* f32 [K,N], or [N,K] when is_transposed */
    const tensor *bias;   /* f32 [N], or NULL */
    bool is_transposed;
} encoder_linear;

typedef struct encoder_norm {
    const tensor *scale,
        *bias; /* f32 [hidden]; scale NULL: no normalisation here; bias may be NULL */
    float epsilon;
} encoder_norm;

typedef enum encoder_activation {
    ENCODER_GELU,
    ENCODER_GELU_TANH,
    ENCODER_RELU,
    ENCODER_SILU
} encoder_activation;

typedef struct encoder_layer { /* post-normalisation: x = norm(x + f(x)) */
    encoder_linear query, key, value, attention_output;
    encoder_norm attention_norm;
    encoder_linear up, down;
    encoder_activation activation;
    encoder_norm output_norm;
} encoder_layer;

typedef enum encoder_positions {
    ENCODER_POSITIONS_NONE,
    ENCODER_POSITIONS_COUNTED,  /* token i of a row uses table row i + offset */
    ENCODER_POSITIONS_FROM_IDS, /* RoBERTa: pad tokens (id == pad_id) use row pad_id, others count
                                   from pad_id + 1 */
} encoder_positions;

typedef enum encoder_pooling {
    ENCODER_POOLING_NONE,  /* output: hidden states [rows, length, hidden] */
    ENCODER_POOLING_MEAN,  /* [rows, hidden]: mean over the tokens whose mask is 1 */
    ENCODER_POOLING_MAX,   /* [rows, hidden]: maximum over them */
    ENCODER_POOLING_FIRST, /* [rows, hidden]: token 0 (CLS pooling) */
} encoder_pooling;

/* After the pooling: dense layers (with ENCODER_POOLING_NONE on each token), then optionally an L2
 * normalisation. */
typedef enum encoder_head_activation {
    ENCODER_HEAD_NONE,
    ENCODER_HEAD_TANH,
    ENCODER_HEAD_RELU,
    ENCODER_HEAD_GELU
} encoder_head_activation;
typedef struct encoder_head_layer {
    encoder_linear linear;
    encoder_head_activation activation;
} encoder_head_layer;
#define ENCODER_HEAD_LAYERS_MAX 4

typedef struct encoder_output { /* one per graph output, in order */
    encoder_pooling pooling;
    encoder_head_layer head[ENCODER_HEAD_LAYERS_MAX];
    int head_count;
    bool is_normalised; /* divided by its L2 norm, at least norm_epsilon */
    float norm_epsilon;
    bool is_column; /* the head has one column and the output no dim for it: [rows, length]
                       (extractive question answering) */
} encoder_output;

#define ENCODER_OUTPUTS_MAX 8

typedef struct encoder {
    arena memory;
    int64_t hidden, heads, head_dim, intermediate; /* hidden == heads * head_dim */
    float attention_scale;                         /* scores are multiplied by it before softmax */
    int ids_input, mask_input,
        token_type_input; /* graph inputs, or -1. Without a mask input every token counts. A row
                             whose mask is all zero attends to all of its tokens alike, as models
                             with lowest-float masks do */
    const tensor *word_table, *position_table,
        *token_type_table; /* f32 [rows, embedding width]; the latter two may be NULL */
    encoder_positions positions;
    int64_t position_offset, pad_id;
    encoder_norm embedding_norm;
    encoder_linear embedding_projection; /* after the norm, to hidden (ELECTRA); weight NULL: none,
                                            and the embedding width is hidden */
    /* Relative attention bias (MPNet): relative_table[bucket(j - i)][h] is added to the score of
     * tokens i and j in head h; NULL: none. Buckets as in T5, bidirectional. */
    const tensor *relative_table; /* f32 [buckets, heads] */
    int64_t relative_distance_max;
    encoder_layer *layers;
    int layer_count;
    encoder_output outputs[ENCODER_OUTPUTS_MAX];
    int output_count;
} encoder;

/* Recognises an encoder in a symbolic graph: its structure by pattern, its masks, positions,
 * scales, activations and pooling by evaluating those parts on random values. STATUS_OK: `*out`
 * describes the whole graph exactly. STATUS_UNSUPPORTED: the graph, or a part of it, is something
 * else; the message names the node ("node X (Op): attention has a bias that differs from row to
 * row"). STATUS_INVALID_ARGUMENT: it does not accept the few short rows of these experiments.
 * STATUS_TOO_LARGE: it costs more than `budget` (NULL: the default) even with them. Also the errors
 * of cancel_check(). */
status encoder_recognise(const graph *g, const graph_budget *budget, graph_evaluate_fn evaluate,
                         encoder *out) MUST_CHECK;
void encoder_dispose(encoder *e);

/* The row of relative_table for a key `distance` tokens after its query (negative: before), in both
 * directions (arXiv 1910.10683, T5). `buckets` is a multiple of 4. */
int64_t encoder_relative_bucket(int64_t buckets, int64_t distance_max, int64_t distance);

#endif

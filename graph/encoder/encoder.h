#ifndef GRAPH_ENCODER_ENCODER_H
#define GRAPH_ENCODER_ENCODER_H

#include "graph/specialise/specialise.h"

/* An encoder transformer: all that a device needs to run it on ragged batches, without padding.
 * Recognised in a graph, whoever exported it (BERT family), or described by the importer that built
 * the graph (graph.described). Pointers are borrowed from the graph or owned by `memory`. */

typedef struct encoder_linear {
    const tensor *weight; /* f32 [K,N], or [N,K] when is_transposed */
    const tensor *bias;   /* f32 [N], or NULL */
    bool is_transposed;
} encoder_linear;

typedef struct encoder_norm {
    const tensor *scale,
        *bias; /* f32 [hidden]; scale NULL: no normalisation here; bias may be NULL */
    float epsilon;
    bool is_rms; /* x / sqrt(mean(x^2) + epsilon) * scale: no mean is subtracted, no bias */
} encoder_norm;

typedef enum encoder_activation {
    ENCODER_GELU,
    ENCODER_GELU_TANH,
    ENCODER_RELU,
    ENCODER_SILU,
    ENCODER_QUICK_GELU, /* x * sigmoid(1.702 x) */
    ENCODER_TANH,
    ENCODER_SIGMOID,
    ENCODER_MISH,
    ENCODER_IDENTITY
} encoder_activation;

/* Rotary position embedding (arXiv 2104.09864): elements i and i + dims / 2 of a head, as a point
 * of the plane, turn by position * frequencies[i]. */
typedef struct encoder_rotary {
    int64_t dims;             /* even; at most head_dim: elements from there on stay as they are */
    const float *frequencies; /* [dims / 2] */
} encoder_rotary;

/* The four linear layers of a transformer layer; query, key and value are one, and so are the gate
 * and the layer that it gates. */
enum { ENCODER_QKV, ENCODER_ATTENTION_OUTPUT, ENCODER_UP, ENCODER_DOWN, ENCODER_LINEARS };

/* Post-normalisation: x = norm(x + f(x)). With encoder.is_pre_norm: x = x + f(norm(x)). */
typedef struct encoder_layer {
    encoder_linear query, key, value, attention_output;
    encoder_norm query_norm, key_norm; /* of each head, before it is rotated; scale: [head_dim] */
    /* Of the rows of distance_table; weight NULL: they add nothing to scores. */
    encoder_linear position_key, position_query;
    const encoder_rotary *rotary; /* of queries and keys; NULL: none */
    int64_t window;               /* tokens attend to those at a distance below it; 0: to all */
    encoder_norm attention_norm;
    encoder_linear gate, up, down; /* down(activation(gate(x)) * up(x)); gate.weight NULL:
                                      down(activation(up(x))) */
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
    ENCODER_POOLING_NONE,      /* output: hidden states [rows, length, hidden] */
    ENCODER_POOLING_MEAN,      /* [rows, hidden]: mean over the tokens whose mask is 1 */
    ENCODER_POOLING_MAX,       /* [rows, hidden]: maximum over them */
    ENCODER_POOLING_FIRST,     /* [rows, hidden]: token 0 (CLS pooling) */
    ENCODER_POOLING_MEAN_SQRT, /* [rows, hidden]: sum over the tokens whose mask is 1, divided by
                                  the square root of their count */
    ENCODER_POOLING_WEIGHTED_MEAN, /* [rows, hidden]: the i-th token from the first whose mask is
                                      1 on has weight i */
    ENCODER_POOLING_LAST,          /* [rows, hidden]: the last token whose mask is 1 */
} encoder_pooling;
#define ENCODER_POOLINGS_MAX 6 /* of one output: their results side by side */

/* After the pooling: dense layers (with ENCODER_POOLING_NONE on each token), then optionally an L2
 * normalisation. */
typedef enum encoder_head_activation {
    ENCODER_HEAD_NONE,
    ENCODER_HEAD_TANH,
    ENCODER_HEAD_RELU,
    ENCODER_HEAD_GELU,
    ENCODER_HEAD_GELU_TANH,
    ENCODER_HEAD_SILU,
    ENCODER_HEAD_SIGMOID
} encoder_head_activation;
typedef struct encoder_head_layer {
    encoder_linear linear; /* weight NULL: none */
    encoder_head_activation activation;
    encoder_norm norm;  /* after the activation; of the layer's width */
    bool is_normalised; /* after the norm: divided by its L2 norm, at least norm_epsilon */
    float norm_epsilon;
} encoder_head_layer;
#define ENCODER_HEAD_LAYERS_MAX 8

typedef struct encoder_output { /* one per graph output, in order */
    encoder_pooling pooling;
    encoder_pooling also[ENCODER_POOLINGS_MAX - 1]; /* whose results stand behind it */
    int also_count;
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
    int64_t hidden, heads, head_dim, intermediate;
    int64_t kv_heads; /* divides heads: heads / kv_heads query heads share a key and a value head */
    float attention_scale; /* scores are multiplied by it before softmax */
    bool is_causal;        /* tokens do not attend to later ones */
    const float *slopes;   /* [heads]: ALiBi (arXiv 2108.12409) in both directions: slope * distance
                              is subtracted from scores; NULL: none */
    int64_t length_max;    /* longest sequence; 0: what position_table allows */
    int ids_input, mask_input,
        token_type_input; /* graph inputs, or -1. Without a mask input every token counts. A row
                             whose mask is all zero attends to all of its tokens alike, as models
                             with lowest-float masks do */
    bool excludes_prompt; /* a mask of 2: a token of a prompt, which attention sees and pooling
                             leaves out (ENCODER_POOLING_FIRST: the first token behind it) */
    const tensor *word_table, *position_table,
        *token_type_table; /* f32 [rows, embedding width]; the latter two may be NULL */
    encoder_positions positions;
    int64_t position_offset, pad_id;
    encoder_norm embedding_norm;
    encoder_linear embedding_projection; /* after the norm, to hidden (ELECTRA, ALBERT); weight
                                            NULL: none, and the embedding width is hidden */
    /* Relative attention bias (MPNet): relative_table[bucket(j - i)][h] is added to the score of
     * tokens i and j in head h; NULL: none. Buckets as in T5, bidirectional. */
    const tensor *relative_table; /* f32 [buckets, heads] */
    int64_t relative_distance_max;
    /* Disentangled attention (DeBERTa, arXiv 2006.03654): before scores are scaled, the score of
     * query i and key j grows by query[i] . position_key(t) + key[j] . position_query(t), where t
     * is row encoder_distance_row(i - j) of distance_norm(distance_table); NULL: none. */
    const tensor *distance_table; /* f32 [2 * distance_span, hidden] */
    encoder_norm distance_norm;
    int64_t distance_span, distance_buckets,
        distance_longest; /* buckets 0: one for each distance */
    bool is_pre_norm;
    encoder_layer *layers;
    int layer_count;
    encoder_norm final_norm; /* after the layers */
    encoder_output outputs[ENCODER_OUTPUTS_MAX];
    int output_count;
} encoder;

/* Why most models that are no transformers at all are none to encoder_recognise(). */
#define ENCODER_WITHOUT_NORM "no layer normalisation of a vector per token"

/* The encoder that a symbolic graph is: as its importer describes it, or recognised: its structure
 * by pattern, its masks, positions, scales, activations and pooling by evaluating those parts on
 * random values. STATUS_OK: `*out` describes the whole graph exactly. STATUS_UNSUPPORTED: the
 * graph, or a part of it, is something else; the message names the node ("node X (Op): attention
 * has a bias that differs from row to row"). STATUS_INVALID_ARGUMENT: it does not accept the few
 * short rows of these experiments. STATUS_TOO_LARGE: it costs more than `budget` (NULL: the
 * default) even with them. Also the errors of cancel_check(). */
status encoder_recognise(const graph *g, const graph_budget *budget, graph_evaluate_fn evaluate,
                         encoder *out) MUST_CHECK;
void encoder_dispose(encoder *e);

/* The row of relative_table for a key `distance` tokens after its query (negative: before), in both
 * directions (arXiv 1910.10683, T5). `buckets` is a multiple of 4. */
int64_t encoder_relative_bucket(int64_t buckets, int64_t distance_max, int64_t distance);

/* The row of distance_table for a query `distance` tokens after its key (negative: before). */
int64_t encoder_distance_row(const encoder *e, int64_t distance);

#endif

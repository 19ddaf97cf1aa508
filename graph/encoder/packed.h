#ifndef GRAPH_ENCODER_PACKED_H
#define GRAPH_ENCODER_PACKED_H

#include "graph/encoder/encoder.h"
#include "graph/quantise/smooth.h"

/* Sequence packing: an encoder as a graph of static shape with several sequences in each row.
 * Attention is block-diagonal (it stays within a sequence), positions count from the start of each
 * sequence, and pooled outputs have one row per sequence. The result of a sequence does not depend
 * on the others in its row: it is that of the sequence alone.
 *
 * Inputs: those of the model in its order, [rows, length], followed by
 *
 *   - "packed_positions", i32 [rows, length]: index of the token in its sequence, from 0; padding:
 * 0
 *   - "packed_segments", i32 [rows, length]: number of the sequence, from 1 over all rows; padding:
 * 0
 *   - "packed_starts", i32 [sequences]: row * length + column of the first token of sequence i + 1;
 *     absent sequences: 0
 *
 * Products of the layers' linear layers have an attribute "linear": layer * ENCODER_LINEARS +
 * linear.
 *
 * Outputs: those of the model in its order, [rows, length, n] per token or [sequences, n] pooled.
 * Rows of absent sequences hold undefined numbers. */

#define ENCODER_PACKED_INPUTS 3 /* besides the model's inputs */

/* Of encoder_form.are_scores_clipped. In bf16 a score of 64 is off by up to 0.25 already; sums of
 * exp(64) stay far from the largest float. */
#define ENCODER_SCORE_MAX 64

typedef struct encoder_packing {
    int64_t rows, length, sequences; /* all at least 1 */
} encoder_packing;

/* Measures an encoder, or imitates in floats what int8 does to it. Linear layers are numbered
 * layer * ENCODER_LINEARS + linear. */
typedef struct encoder_trial {
    /* Two outputs more for each linear layer, f32 [K]: the least and the largest value of each
     * channel that it reads, and 0, over the tokens whose mask is not zero. Behind them one, f32
     * [1]: of the largest attention score of each such token and head, scaled, without biases, the
     * one that is furthest from 0, as its distance. */
    bool shows_ranges;
    /* What linear layers read is rounded by a scale for each row, and their weights by one for each
     * output. */
    bool is_by_row;
    /* By linear layer: how what it reads is rounded; its weights, divided by the factors, are
     * rounded by a scale for each output. Factors NULL: as it is. Or NULL. */
    const quantise_channels *channels;
} encoder_trial;

/* How the graph computes what the encoder means; the results differ in rounding only. */
typedef struct encoder_form {
    /* Not 0: attention computes as many heads at once as fit into so many columns, with keys and
     * values of the other heads set to zero, and sums by a product with ones: more multiplications,
     * no transposes and no sums over columns. Where heads do not fill the columns: as with 0. */
    int64_t block_width;
    bool
        are_heads_transposed; /* with block_width 0: by a node; else the compiler chooses layouts */
    /* Queries, keys and values are one matrix multiplication, of a weight that is made here. Where
     * their layers are not alike: three. */
    bool is_qkv_joined;
    /* The second matrix multiplication of attention has values as its first operand, so that its
     * result has heads and columns side by side before tokens. Not with transposed heads. */
    bool are_values_first;
    bool is_softmax_late;    /* divided by its sums after that multiplication; always in blocks */
    bool are_queries_scaled; /* instead of the scores */
    /* Where the softmax is divided late: scores are clipped to ENCODER_SCORE_MAX either way, and
     * exponentials are of them as they are, without the maximum of a row. */
    bool are_scores_clipped;
    bool are_scores_kept; /* clipped ones: computed before the exponentials, not with them */
    bool are_rows_apart;  /* a dimension of their own in all layers, not one with the tokens */
    bool is_mean_product; /* means over tokens are a matrix multiplication, in padded graphs too */
    bool are_embedding_sums_products; /* so are the sums in the normalisation of embeddings */
    const encoder_trial *trial;       /* or NULL; not with is_qkv_joined */
} encoder_form;

/* The packing of a bucket of rows x length tokens: one sequence per 8 tokens, at least one per row,
 * at most 1,024. */
encoder_packing encoder_packing_of(int64_t rows, int64_t length);

/* Whether `e`, recognised in `g`, can be packed. STATUS_UNSUPPORTED: the message names what
 * layers or outputs have that is not packed, or an input that is not one integer per token. */
status encoder_can_pack(const encoder *e, const graph *g) MUST_CHECK;

/* The specialised graph of that packing; encoder_can_pack() must hold. It borrows constants of `g`
 * and `e`, which must outlive it. `budget` is that of graph_binding. */
status encoder_pack(const encoder *e, const graph *g, const graph_budget *budget,
                    graph_evaluate_fn evaluate, encoder_packing packing, const encoder_form *form,
                    graph **out) MUST_CHECK;

/* The same with one sequence in each row, padded to `length`: inputs and outputs are those of the
 * model alone. */
status encoder_pad(const encoder *e, const graph *g, const graph_budget *budget,
                   graph_evaluate_fn evaluate, int64_t rows, int64_t length,
                   const encoder_form *form, graph **out) MUST_CHECK;

/* Whether graphs of that form clip the scores of `e`. */
bool encoder_clips_scores(const encoder *e, const encoder_form *form);

/* Multiplications and additions, 2 for each pair, of the dense layers and of attention within rows
 * of `length` tokens. */
double encoder_flops(const encoder *e, int64_t rows, int64_t length);

#endif

#ifndef GRAPH_ENCODER_PACKER_H
#define GRAPH_ENCODER_PACKER_H

#include "graph/encoder/packed.h"

/* Shared by packed.c, packed_output.c, attend.c and blocks.c, which alone may include this: the
 * graph of an encoder while it is built. */

typedef struct packer {
    graph *g; /* being built */
    const encoder *e;
    encoder_form form;
    bool is_padded; /* one sequence a row: no positions, segments and starts */
    encoder_packing size;
    int64_t tokens;                     /* rows * length */
    graph_value_index ids, types, mask; /* [rows, length]; types and mask may be GRAPH_NO_VALUE */
    graph_value_index positions, segments, starts;
    graph_value_index score_bias; /* [1 or rows, 1 or heads, 1 or length, length], or none */
    /* With form.are_scores_clipped, [rows, 1, 1 or length, length]: the largest score of a key, so
     * small that it counts nothing for those that a query does not attend to. Then no mask is in
     * the bias. None: ENCODER_SCORE_MAX for all. */
    graph_value_index score_bound;
    /* With form.block_width: bool [1, 1, 1, heads of a block, width], the columns of each head; and
     * f32 [heads of a block, length, width], the same as ones. */
    graph_value_index own_columns, column_sums;
    graph_value_index *ranges;    /* [layers * ENCODER_LINEARS][2], with form.trial->shows_ranges */
    graph_value_index score_most; /* f32 [1], of the layers so far, with the same; or none */
    graph_value_index members; /* bool [sequences, tokens]: the token is pooled for the sequence */
} packer;

/* A constant that outlives the graph, or is in its memory. */
graph_value_index packer_constant(packer *p, const tensor *t);
/* So many, not set, for a constant: they live as long as the graph. NULL without memory. */
float *packer_floats(packer *p, int64_t count);
/* Times the scale of attention. */
graph_value_index packer_scaled(packer *p, graph_value_index x);
/* Plus the bias, if there is one. */
graph_value_index packer_biased(packer *p, graph_value_index scores, graph_value_index bias);
/* What a softmax over the last axis divides by its sums. `bound`: of clipped scores, or none. */
graph_value_index packer_raised(packer *p, graph_value_index scores, graph_value_index bound);

/* What layers pass on: [tokens, width], or [rows, length, width] with form.are_rows_apart. */
graph_value_index packer_tokens(packer *p, graph_value_index x, int64_t width);
/* [n, K] to [n, N]. */
graph_value_index packer_linear(packer *p, const encoder_linear *l, graph_value_index x);
/* The same for a linear layer of a transformer layer, but ENCODER_QKV; x as packer_tokens(). */
graph_value_index packer_layer_linear(packer *p, const encoder_layer *of, int linear,
                                      graph_value_index x);

/* Adds the outputs of the trial. */
void packer_end_trial(packer *p);
/* Notes how far from 0 the largest of each row of scaled scores [rows, heads, length, length] is,
 * if form.trial shows it. */
void packer_note_scores(packer *p, graph_value_index scores);
/* What the linear layer of that number reads, and a weight of it: as they are, or as form.trial
 * has them. NULL: no memory. */
graph_value_index packer_read(packer *p, int64_t number, graph_value_index x);
const tensor *packer_weight(packer *p, int64_t number, const encoder_linear *l);
/* Sums over the letters that the result does not have. */
graph_value_index packer_einsum(packer *p, const char *equation, graph_value_index x,
                                graph_value_index y);

/* Attention of a layer with its four linear layers, of and to what packer_tokens() has. */
graph_value_index packer_attention(packer *p, const encoder_layer *l, graph_value_index x);

/* A mask as bool. */
graph_value_index packer_is_not_zero(packer *p, graph_value_index x);
/* Adds the output of the model that `o` makes of the last layer's [tokens, hidden]. */
void packer_add_output(packer *p, const encoder_output *o, graph_value_index x, const char *name);

/* Attention in blocks of heads: encoder_form.block_width. */
bool packer_can_block(const encoder *e, int64_t width);
/* Makes what all layers share; once, if form.block_width is not 0. */
void packer_make_columns(packer *p);
/* Queries, keys and values, [tokens, hidden] in any shape, to [rows, length, blocks, width]. */
graph_value_index packer_attend_in_blocks(packer *p, graph_value_index q, graph_value_index k,
                                          graph_value_index v);

#endif

#ifndef GRAPH_ENCODER_PACKED_H
#define GRAPH_ENCODER_PACKED_H

#include "graph/encoder/encoder.h"

/* Several sequences in each row of a static shape: an encoder as a graph whose attention stays
 * within a sequence (block-diagonal), whose positions are counted from each sequence's own start,
 * and whose pooled outputs have one row a sequence. What a sequence gets does not depend on its
 * neighbours, so the answers are those of the sequence alone.
 *
 * Inputs: those of the model in its order, [rows, length], and after them
 *   "packed_positions"  i32 [rows, length]  place in the own sequence, from 0; 0 where there is
 * none "packed_segments"   i32 [rows, length]  number of the sequence from 1, over all rows; 0:
 * padding "packed_starts"     i32 [sequences]     row * length + place of sequence i's first token
 * (its number is i + 1); 0 for those that are not there Outputs: those of the model in its order:
 * per position [rows, length, n], pooled [sequences, n]. Rows of sequences that are not there hold
 * numbers that mean nothing. */

#define ENCODER_PACKED_INPUTS 3 /* beside the model's own */

typedef struct encoder_packing {
    int64_t rows, length, sequences; /* all at least 1 */
} encoder_packing;

/* The packing of a bucket: as many sequences as average the shortest length worth it. */
encoder_packing encoder_packing_of(int64_t rows, int64_t length);

/* STATUS_UNSUPPORTED, with the reason: the model has an input that is not one whole number for each
 * position. `e` was recognised in `g`. */
status encoder_can_pack(const encoder *e, const graph *g) MUST_CHECK;

/* The specialised graph for that packing, which encoder_can_pack() allows. It borrows constants of
 * `g` and `e`, which must outlive it. */
status encoder_pack(const encoder *e, const graph *g, graph_evaluate_fn evaluate,
                    encoder_packing packing, graph **out) MUST_CHECK;

#endif

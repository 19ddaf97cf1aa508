#ifndef CLI_INSPECT_FACTS_H
#define CLI_INSPECT_FACTS_H

#include "models/model.h"

/* What both outputs of `penstock inspect` count. */

void inspect_count_operators(const graph *g, int counts[GRAPH_OP_COUNT]);

/* How many buckets have rows of one sequence. They stand before the packed ones. */
int inspect_padded_buckets(const model *m);

/* The matrix multiplications and convolutions of the model as it runs at its first bucket. */
typedef struct inspect_fusion {
    int fused, fused_int8; /* fused with the operators after them; of these, in int8 */
    int unfused;
} inspect_fusion;

/* Zeros for an exported program. */
inspect_fusion inspect_count_fused(const model *m);

#endif

#ifndef BATCHER_EXECUTE_PACK_COPY_H
#define BATCHER_EXECUTE_PACK_COPY_H

#include "batcher/policy/pack.h"
#include "batcher/queue/queue.h"

/* Copies the members' sequences to their places in the tensors of a packed bucket. `places` has an
 * entry for each sequence, in the members' order. Other tokens hold pad values, belong to no
 * sequence, and are 0 in a mask. */
void pack_copy_in(const model *m, const batch_member *members, const pack_place *places, int count,
                  tensor *inputs);

/* Copies each sequence's part of the packed outputs into its job's. */
void pack_copy_out(const model *m, const batch_member *members, const pack_place *places, int count,
                   const tensor *outputs);

#endif

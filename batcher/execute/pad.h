#ifndef BATCHER_EXECUTE_PAD_H
#define BATCHER_EXECUTE_PAD_H

#include "batcher/queue/queue.h"

/* Copies the members' rows into the bucket's tensors, one after another. Positions beyond a row's
 * length get the input's pad value, 0 in a mask. Rows beyond the last member repeat the first row:
 * an all-masked row would make NaN in a softmax, and pad values alone may be no legal input. */
void pad_batch(const model *m, const batch_member *members, int count, tensor *inputs);

#endif

#ifndef BATCHER_EXECUTE_PAD_H
#define BATCHER_EXECUTE_PAD_H

#include "batcher/execute/worker.h"

/* What a program reads and writes. */
typedef struct padded {
    device_batch work;
    bool is_staged; /* in copies, w->staging: outputs must be sliced */
} padded;

/* Prepares members [first, first + count) of the worker's batch for the program and stamps the
 * stage. A ragged program uses the members' own tensors, and so does a padded one whose bucket one
 * job fills exactly; else the rows are copied into the worker's staging memory. */
status pad_members(worker *w, const device_program *program, int first, int count,
                   padded *out) MUST_CHECK;

/* Copies the members' rows into the bucket's tensors, one after another. Tokens beyond a row's
 * length get the input's pad value, 0 in a mask. Rows beyond the last member repeat the first row:
 * an all-masked row would make NaN in a softmax, and pad values alone may be no legal input. */
void pad_rows(const model *m, const batch_member *members, int count, tensor *inputs);

#endif

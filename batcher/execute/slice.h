#ifndef BATCHER_EXECUTE_SLICE_H
#define BATCHER_EXECUTE_SLICE_H

#include "batcher/queue/queue.h"

/* Copies each member's rows out of the bucket's outputs into its job's, cut to the job's length. */
void slice_batch(const model *m, const batch_member *members, int count, const tensor *outputs);

#endif

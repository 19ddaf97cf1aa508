#ifndef BATCHER_EXECUTE_COMPLETE_H
#define BATCHER_EXECUTE_COMPLETE_H

#include "batcher/execute/worker.h"

/* Counts the worker's batch after its executions, and closes its stages: one that a failed batch
 * never reached took no time. */
void complete_batch(worker *w);

/* The member's rows are done, with `result` (message: status_message()). If they are the last of
 * its job, the job gets the times and the shape of this batch and goes back to its home. */
void complete_member(worker *w, const batch_member *member, status result);

#endif

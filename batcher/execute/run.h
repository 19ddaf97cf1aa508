#ifndef BATCHER_EXECUTE_RUN_H
#define BATCHER_EXECUTE_RUN_H

#include "batcher/execute/worker.h"

/* Runs the worker's batch to its end and gives its jobs back. A batch that fails through one of its
 * members is repeated member by member, so that only the member at fault fails. */
void run_batch(worker *w);

#endif

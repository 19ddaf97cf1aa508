#ifndef BATCHER_EXECUTE_RETRY_H
#define BATCHER_EXECUTE_RETRY_H

#include "batcher/execute/worker.h"

/* Runs members [first, first + count) of the worker's batch on its device and, after
 * STATUS_UNAVAILABLE, elsewhere: on the CPU, unless fallback is never; or, for models that no CPU
 * can run, on the first of its devices that is healthy again, waiting for one while somebody may
 * still want the results; STATUS_DEADLINE_EXCEEDED: all members' deadlines passed meanwhile. Other
 * failures: execute.h. */
status retry_members(worker *w, int first, int count) MUST_CHECK;

/* The batch ran on the CPU although the server has another device. */
void retry_count_fallback(worker *w, model_fallback reason);

#endif

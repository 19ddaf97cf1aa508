#ifndef BATCHER_EXECUTE_FORM_H
#define BATCHER_EXECUTE_FORM_H

#include "batcher/execute/worker.h"

/* Makes w->batch of the members that were taken at `now_ns`, which wait no longer: releases their
 * holds. With the scheduler's mutex held. */
void form_batch(worker *w, const dispatch_batch *taken, uint64_t now_ns);

/* Describes the members as segments, with views in w->views, and stamps the stage. Without the
 * mutex. STATUS_OUT_OF_MEMORY. */
status form_segments(worker *w) MUST_CHECK;

#endif

#ifndef TESTS_UNIT_BATCHER_SUBMIT_H
#define TESTS_UNIT_BATCHER_SUBMIT_H

#include <stdlib.h>

#include "base/clock.h"
#include "batcher/scheduler.h"

/* Admits the job, which must succeed, and submits it. */
static inline void submit_admitted(scheduler *s, job *j)
{
    uint64_t now_ns = clock_now_ns(), retry_after_ns;
    if (scheduler_admit(s, &j, 1, now_ns, &retry_after_ns))
        abort();
    j->stage_ns[STAGE_ADMIT] = now_ns;
    scheduler_submit(s, j);
}

#endif

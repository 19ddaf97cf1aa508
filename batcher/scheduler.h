#ifndef BATCHER_SCHEDULER_H
#define BATCHER_SCHEDULER_H

#include "batcher/job.h"

/* The batcher as the server sees it. Lanes (threads, `device->lanes` per device) pull: a lane that
 * becomes free asks the policy for the best batch now. Submission is lock-free; the queues belong
 * to whichever lane holds the scheduler's lock while it decides. */

typedef struct scheduler scheduler;

typedef enum scheduler_fallback {
    FALLBACK_NEVER,
    FALLBACK_ON_FAILURE,
    FALLBACK_WHEN_SOONER
} scheduler_fallback;

typedef struct scheduler_options {
    scheduler_fallback fallback;
} scheduler_options;

/* Starts the lanes' threads. Devices are borrowed and outlive the scheduler;
 * devices[device_count-1] is the CPU. */
status scheduler_create(const scheduler_options *options, device *const *devices, int device_count,
                        scheduler **out) MUST_CHECK;

/* Hands a job over. Any thread; never blocks, never fails: a job that cannot run comes back with
 * its result set. */
void scheduler_submit(scheduler *s, job *j);

/* Wakes a lane so that cancelled and overdue jobs come back soon. */
void scheduler_nudge(scheduler *s);

typedef struct scheduler_lane_status {
    const device *device;
    uint64_t batches, rows, busy_ns;
    uint64_t padded_tokens; /* positions computed for nothing; rows where there is no sequence */
    uint64_t real_tokens;
    uint64_t failures;                        /* executions that returned an error */
    uint64_t fallbacks[MODEL_FALLBACK_COUNT]; /* batches of this lane that ran on the CPU instead */
} scheduler_lane_status;

/* Counters since start, per lane; returns how many lanes there are, writes at most `capacity`. Any
 * thread. */
int scheduler_describe(scheduler *s, scheduler_lane_status *out, int capacity);

/* Returns when every submitted job has come back and the threads have ended. */
void scheduler_destroy(scheduler *s);

#endif

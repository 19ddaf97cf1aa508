#ifndef BATCHER_SCHEDULER_H
#define BATCHER_SCHEDULER_H

#include "batcher/job/job.h"
#include "batcher/policy/placement.h"

/* The batcher as the server sees it. Workers (threads, `device->slots` per device) pull: a worker
 * that becomes free asks the policy for the best batch now. Submission is lock-free; the queues
 * belong to whichever worker holds the scheduler's lock while it decides. */

typedef struct scheduler scheduler;

typedef struct scheduler_options {
    placement_fallback fallback;
    /* Shares of device time; tenants are numbered from 0, at most FAIR_TENANTS_MAX. None: one. */
    int tenant_count;
    const uint32_t *tenant_weights; /* copied */
} scheduler_options;

/* Starts the workers' threads. Devices are borrowed and outlive the scheduler;
 * devices[device_count-1] is the CPU. */
status scheduler_create(const scheduler_options *options, device *const *devices, int device_count,
                        scheduler **out) MUST_CHECK;

/* Admits the jobs of one request, all or none. Their model, rows, length, deadline, priority and
 * tenant are set. Each admitted job holds its rows (job->hold) and must be submitted. Any thread,
 * without a lock.
 *
 * STATUS_TOO_LARGE: a job has more rows than may wait for its model. STATUS_RESOURCE_EXHAUSTED: too
 * many rows wait; `*retry_after_ns` is how long the devices take to begin what waits now, 0 if that
 * is not known, and is written in this case only. STATUS_DEADLINE_EXCEEDED: a deadline can probably
 * not be met; the message has the estimate. */
status scheduler_admit(scheduler *s, job *const *jobs, int count, uint64_t now_ns,
                       uint64_t *retry_after_ns) MUST_CHECK;

/* STATUS_RESOURCE_EXHAUSTED, as above: no job of that tenant would be admitted now. Nothing is
 * held. Any thread, without a lock. */
status scheduler_has_room(const scheduler *s, const model *m, uint32_t tenant,
                          uint64_t *retry_after_ns) MUST_CHECK;

/* How long the devices that serve `m` take, by measured times, to begin all that waits for it now;
 * 0: not known. Any thread, without a lock. */
uint64_t scheduler_drain_ns(scheduler *s, const model *m);

/* Rows of `m` that were admitted and are in no batch yet. Any thread, without a lock. */
int64_t scheduler_queued_rows(const scheduler *s, const model *m);

/* Hands an admitted job over, with stage_ns[STAGE_ADMIT] set. Any thread; never blocks, never
 * fails: a job that cannot run comes back with its result set. */
void scheduler_submit(scheduler *s, job *j);

/* Wakes a worker so that cancelled and overdue jobs come back soon. */
void scheduler_nudge(scheduler *s);

/* Device time that tenant `tenant` received since start: of each batch, by the tokens of its
 * members, also where it failed. Any thread. */
uint64_t scheduler_tenant_ns(const scheduler *s, int tenant);

/* Devices [first, first + count), absent so far, are there: their workers start.
 * STATUS_UNAVAILABLE: the scheduler stops; STATUS_RESOURCE_EXHAUSTED: no thread. One thread at a
 * time. */
status scheduler_join_devices(scheduler *s, int first, int count) MUST_CHECK;

/* While it drains, a device takes only work that no other one may take; what it computes is
 * finished. Not the CPU. Any thread. */
void scheduler_drain_device(scheduler *s, int device_index, bool is_draining);
bool scheduler_is_draining(const scheduler *s, int device_index);

/* Returns when every submitted job has come back and the threads have ended. */
void scheduler_destroy(scheduler *s);

#endif

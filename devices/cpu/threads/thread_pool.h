#ifndef DEVICES_CPU_THREADS_THREAD_POOL_H
#define DEVICES_CPU_THREADS_THREAD_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Idle cores that help a busy one. Callers are the slots of the device, each on the thread that
 * executes on it; helpers are threads of the pool. Between a caller's begin and end, cores that no
 * caller uses take units of its loops: chunks of a batch, or parts of one GEMM. At most `cores`
 * threads work at once: helpers stop when callers need their cores.
 *
 * A loop costs about 1 us when helpers are awake. They spin for THREAD_POOL_SPIN_NS after their
 * last unit, then sleep on a futex. */

typedef struct thread_pool thread_pool;

#define THREAD_POOL_CALLERS_MAX 64 /* more slots than that get no help */
#define THREAD_POOL_UNITS_MAX 65535
#define THREAD_POOL_SPIN_NS 50000

/* `worker` is the number of the thread that runs the unit, callers first, then helpers: it selects
 * scratch memory. */
typedef void (*thread_pool_work)(void *context, int worker, size_t unit);

/* Starts cores - 1 helpers. Errors: STATUS_OUT_OF_MEMORY, STATUS_RESOURCE_EXHAUSTED (no
 * threads). */
status thread_pool_create(int callers, int cores, thread_pool **out) MUST_CHECK;
/* Joins the helpers; no caller may be working. Accepts NULL. */
void thread_pool_destroy(thread_pool *p);

/* Callers and helpers together; worker numbers are below it. */
int thread_pool_workers(const thread_pool *p);

/* The calling thread is `caller` until the end; no other thread may be. Every execution on a slot
 * runs between these two, even when it needs no help. Returns the number of idle cores. */
int thread_pool_begin(thread_pool *p, int caller);
void thread_pool_end(thread_pool *p, int caller);

/* Wakes up to `wanted` sleeping helpers (none below 1), and lets helpers join this caller until its
 * end. */
void thread_pool_call_helpers(thread_pool *p, int caller, int wanted);

/* Helpers that do not sleep, at work or not. Any thread; it may be different a moment later. */
int thread_pool_awake_helpers(const thread_pool *p);

/* work(context, worker, unit) for each unit below `units`, in no order, by this thread and whatever
 * helpers have joined; returns when all are done. */
void thread_pool_run(thread_pool *p, int caller, thread_pool_work work, void *context,
                     size_t units);

/* Has a helper delayed this caller a moment ago, as happens when another program takes the helper's
 * core? A helper that took several times as long for a unit as the caller did; "a moment" is a few
 * times the delay. Until then loops run faster alone. From the caller's thread. */
bool thread_pool_was_delayed(const thread_pool *p, int caller);

/* Notes a loop of about `ns` that begins now. True when the caller's loops of late, this one left
 * out, took about half of its time or more: then helpers are worth waking, and keeping awake, for
 * loops that none of them is worth alone. From the caller's thread. */
bool thread_pool_note_loop(thread_pool *p, int caller, uint64_t ns);

/* Between these two no unit runs as `worker`, so its memory may change. */
void thread_pool_lock_worker(thread_pool *p, int worker);
void thread_pool_unlock_worker(thread_pool *p, int worker);

/* Time that helpers spent with callers. Any thread. */
uint64_t thread_pool_helper_ns(const thread_pool *p);

#endif

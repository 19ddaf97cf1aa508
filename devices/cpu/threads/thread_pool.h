#ifndef DEVICES_CPU_THREADS_THREAD_POOL_H
#define DEVICES_CPU_THREADS_THREAD_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Idle cores that help a busy one. Callers are the slots of the device, each with the thread that
 * executes on it; helpers are threads of the pool. While a caller is between begin and end, cores
 * that no caller uses take units of its loops: chunks of a batch, or parts of one product.
 * At most `cores` threads work at once: helpers step back when callers need their cores.
 *
 * A loop costs about a microsecond when helpers are awake; they spin for THREAD_POOL_SPIN_NS after
 * their last unit, then sleep on a futex. */

typedef struct thread_pool thread_pool;

#define THREAD_POOL_CALLERS_MAX 64 /* more slots than that get no help */
#define THREAD_POOL_UNITS_MAX 65535
#define THREAD_POOL_SPIN_NS 50000

/* `worker` is the number of whoever runs it: callers first, then helpers; for scratch memory. */
typedef void (*thread_pool_work)(void *context, int worker, size_t unit);

/* One helper less than there are cores. Errors: STATUS_OUT_OF_MEMORY, STATUS_RESOURCE_EXHAUSTED (no
 * threads). */
status thread_pool_create(int callers, int cores, thread_pool **out) MUST_CHECK;
/* Joins the helpers; no caller may be working. Accepts NULL. */
void thread_pool_destroy(thread_pool *p);

/* Callers and helpers: numbers of workers are below that. */
int thread_pool_workers(const thread_pool *p);

/* The calling thread works as `caller` until the end; nobody else may meanwhile. Every execution on
 * a slot is between these two, also one that wants no help. Returns the cores that were idle. */
int thread_pool_begin(thread_pool *p, int caller);
void thread_pool_end(thread_pool *p, int caller);

/* Wakes sleeping helpers, at most `wanted`, and lets them join this caller until its end. */
void thread_pool_call_helpers(thread_pool *p, int caller, int wanted);

/* work(context, worker, unit) for each unit below `units`, in no order, by this thread and whatever
 * helpers have joined; returns when all are done. */
void thread_pool_run(thread_pool *p, int caller, thread_pool_work work, void *context,
                     size_t units);

/* Has a helper kept this caller waiting since its begin, as happens when another program takes the
 * helper's core? Then short loops are better run alone. The caller's thread. */
bool thread_pool_was_delayed(const thread_pool *p, int caller);

/* While `worker` is in here no unit runs under its number: for whoever changes its memory. */
void thread_pool_lock_worker(thread_pool *p, int worker);
void thread_pool_unlock_worker(thread_pool *p, int worker);

/* Time that helpers spent joined to callers. Any thread. */
uint64_t thread_pool_helper_ns(const thread_pool *p);

#endif

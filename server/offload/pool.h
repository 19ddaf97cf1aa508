#ifndef SERVER_OFFLOAD_POOL_H
#define SERVER_OFFLOAD_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* Helper threads for work that would hold an event loop: parsing large bodies, writing large
 * responses. A bounded queue; when a thread is free, the source (a connection) with the fewest
 * tasks running comes first, and of one source the oldest task. The threads run at a lower
 * priority than the loops and the batcher's workers. */
typedef struct offload_pool offload_pool;

/* A task, embedded in what it works on. */
typedef struct offload_task offload_task;
struct offload_task {
    offload_task *next; /* the pool's */
    const void *source; /* whose it is; only compared */
    /* Called once, on a helper thread; the pool does not touch the task afterwards, so its memory
     * may go. */
    void (*run)(offload_task *task);
};

/* STATUS_OUT_OF_MEMORY, STATUS_IO (no thread). Signals must be blocked in the calling thread. */
status offload_pool_create(int threads, int waiting_max, offload_pool **out) MUST_CHECK;

/* Any thread. False: `waiting_max` tasks wait, or a quarter of that of this source; `is_urgent`
 * tasks are not refused: what was begun is ended. */
bool offload_pool_submit(offload_pool *pool, offload_task *task, bool is_urgent) MUST_CHECK;

/* Frees memory of large_memory.h, `bytes` long: on a helper where that takes the kernel more than a
 * millisecond, because its pages are given back one by one. `pool` may be NULL. Any thread. */
void offload_pool_free(offload_pool *pool, void *p, size_t bytes);

/* Tasks that wait. Any thread. */
int offload_pool_waiting(offload_pool *pool);

/* Runs what waits, then ends the threads. Nothing is submitted any more. NULL is allowed. */
void offload_pool_destroy(offload_pool *pool);

#endif

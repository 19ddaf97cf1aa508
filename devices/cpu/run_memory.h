#ifndef DEVICES_CPU_RUN_MEMORY_H
#define DEVICES_CPU_RUN_MEMORY_H

#include <pthread.h>

#include "base/cancel.h"
#include "devices/device.h"

/* Memory of executions whose sizes requests choose, counted by whoever the device was given for
 * that. Any thread. */
typedef struct run_counter {
    device_memory memory; /* `take` NULL: nobody counts */
    pthread_mutex_t lock;
    pthread_cond_t ended; /* an execution that was counted */
    int runs;             /* that are counted now */
} run_counter;

/* `memory` is copied; NULL: nobody counts. */
void run_counter_init(run_counter *c, const device_memory *memory);
void run_counter_dispose(run_counter *c);

/* The smaller of `bytes` and what all executions may have. */
int64_t run_counter_bytes_max(const run_counter *c, int64_t bytes);

/* Memory of one execution; begins as zero. */
typedef struct run_memory {
    void *workspace;       /* its own, or NULL: that of the slot */
    size_t bytes, counted; /* of the workspace; by the counter */
} run_memory;

/* Counts `bytes`. Waits while other executions hold the room, which they give back.
 * STATUS_OUT_OF_MEMORY: others hold it; those of cancel_check(). */
status run_memory_count(run_memory *m, run_counter *c, size_t bytes,
                        const cancel_token *cancel) MUST_CHECK;
/* Zeroed memory, page aligned. STATUS_OUT_OF_MEMORY. */
status run_memory_allocate(run_memory *m, size_t bytes) MUST_CHECK;
/* The execution has ended. */
void run_memory_free(run_memory *m, run_counter *c);

#endif

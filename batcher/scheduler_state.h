#ifndef BATCHER_SCHEDULER_STATE_H
#define BATCHER_SCHEDULER_STATE_H

#include <pthread.h>

#include "batcher/execute/worker.h"
#include "batcher/scheduler.h"
#include "batcher/sleepers.h"

/* A scheduler and its threads, for the files of this folder. */

typedef struct worker_thread {
    struct scheduler *scheduler;
    int index; /* among all workers: by device, then slot */
    pthread_t thread;
    bool is_started;    /* set before others may join it; not before its device is there */
    uint32_t seen_left; /* scheduler->left when this worker last decided */
    bool *is_healthy, *is_draining; /* by device, as of the latest decision */
    worker worker;
} worker_thread;

struct scheduler {
    executor executor;
    admission admission;
    worker_thread *workers; /* by device, then slot: the CPU's are last */
    int worker_count;
    _Atomic int other_workers; /* of devices that are there, without the CPU's */
    sleepers sleepers;

    mailbox inbox;
    _Atomic bool sweep_wanted, is_stopping;
    _Atomic uint32_t left; /* goes up when a worker leaves work behind */

    /* Workers only, while they move arrivals into the queues and decide. Guards what follows. */
    pthread_mutex_t mutex;
    dispatch dispatch;
    int workers_alive;
};

/* worker_thread.c: the body of a worker's thread. */
void *worker_thread_main(void *thread);

/* drop.c: gives back jobs that were taken out of the queue, a chain linked by `next`, and releases
 * what they hold. A job of which a part still computes goes home with that part. */
void drop_jobs(scheduler *s, job *chain, status result, uint64_t now_ns);

#endif

#ifndef BATCHER_SCHEDULER_INTERNAL_H
#define BATCHER_SCHEDULER_INTERNAL_H

#include <pthread.h>

#include "batcher/admission/admission.h"
#include "batcher/execute/staging.h"
#include "batcher/queue/dispatch.h"
#include "batcher/scheduler.h"

/* What scheduler.c, worker.c, form.c and place.c share. */

#define BATCH_MEMBERS_MAX 1024

/* One batch on its way through a worker. */
typedef struct batch {
    const model *model;
    model_queue *queue;
    batch_member members[BATCH_MEMBERS_MAX];
    device_segment segments[BATCH_MEMBERS_MAX];
    int count;
    int64_t rows, length_max, tokens;
    uint64_t cost_ns; /* what the door thought its members would take */
    bool is_exact;
    int bucket;                  /* index of model->buckets, as the policy chose; -1: exact */
    const bucket_packed *packed; /* of a packed bucket, else NULL */
    pack_place places[PACK_SEQUENCES_MAX]; /* packed: of each sequence, in the members' order */
    bill bill;                             /* settled when the worker next decides */
    /* Filled by running it. */
    device_bucket shape;
    bool is_packed; /* it ran as such: the CPU, which takes over, does not pack */
    int device_index;
    bool fell_back;
    uint64_t device_ns; /* of all its executions */
    uint64_t stage_ns[STAGE_COUNT];
} batch;

typedef struct worker {
    struct scheduler *scheduler;
    pthread_t thread;
    bool is_started;
    int device_index, number;     /* of that device's workers */
    int first_peer, peers;        /* workers of devices of this kind; peers 0: the CPU's */
    _Atomic uint32_t is_sleeping; /* futex */
    uint32_t seen_left;           /* scheduler->left when this worker last decided */
    staging staging;
    arena views; /* of segments that are parts of jobs; emptied for each batch */
    batch batch;
    /* One writer, the worker; any reader. */
    _Atomic uint64_t batches, rows, busy_ns, real_tokens, computed_tokens, failures;
    _Atomic uint64_t fallbacks[MODEL_FALLBACK_COUNT];
} worker;

typedef struct device_health {
    _Atomic bool has_failed;
    _Atomic uint64_t check_ns; /* when to ask the device again */
} device_health;

struct scheduler {
    scheduler_options options;
    device *const *devices;
    int device_count;
    device_health *health;
    worker *workers; /* by device, then number: the CPU's are last */
    int worker_count;

    mailbox inbox;
    _Atomic bool sweep_wanted, is_stopping;
    _Atomic uint32_t left; /* goes up when a worker leaves work behind */
    _Atomic uint32_t turn; /* whose turn it is to be woken first, among equals */

    admission admission;
    _Atomic uint64_t tenant_ns[FAIR_TENANTS_MAX]; /* device time they received, measured */

    pthread_mutex_t mutex; /* held only while a worker decides; guards what follows */
    dispatch dispatch;
    int workers_alive;
};

/* scheduler.c */
/* Wakes the first sleeping worker at or after `from`, unless it serves device `except`. */
void scheduler_wake(scheduler *s, int from, int except);
/* Gives back the rows that a dropped job had waiting; calls on_done when they were its last. Takes
 * a chain linked by `next`. */
void scheduler_return(scheduler *s, job *chain, status result, uint64_t now_ns);

/* worker.c */
void *worker_main(void *worker_pointer);

/* form.c: makes l->batch of what was taken. With the mutex held. */
void form_batch(worker *l, const dispatch_batch *taken);
/* Describes the members as segments, taking views from l->views. Without the mutex. */
status form_segments(worker *l) MUST_CHECK;

/* place.c */
bool place_is_healthy(scheduler *s, int device_index, uint64_t now_ns);
void place_report_failure(scheduler *s, int device_index, uint64_t now_ns);
/* May a worker of that device take work of this model now? With the mutex held. */
bool place_is_eligible(scheduler *s, int device_index, const model_queue *q, uint64_t now_ns);
/* Runs l->batch to its end (on the worker's device, after STATUS_UNAVAILABLE on the CPU) and
 * returns its jobs. */
void place_run(worker *l);

static inline int scheduler_cpu(const scheduler *s)
{
    return s->device_count - 1;
}

static inline void counter_add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

#endif

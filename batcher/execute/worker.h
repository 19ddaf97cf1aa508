#ifndef BATCHER_EXECUTE_WORKER_H
#define BATCHER_EXECUTE_WORKER_H

#include "batcher/admission/admission.h"
#include "batcher/execute/health.h"
#include "batcher/execute/staging.h"
#include "batcher/policy/placement.h"
#include "batcher/queue/dispatch.h"

#define BATCH_MEMBERS_MAX 1024

/* One batch on its way through a worker. */
typedef struct batch {
    const model *model;
    model_queue *queue;
    batch_member members[BATCH_MEMBERS_MAX];
    device_segment segments[BATCH_MEMBERS_MAX];
    int count;
    int64_t rows, length_max, tokens;
    int64_t rows_behind; /* that its bucket queue still held; 0 where that does not matter */
    uint64_t cost_ns;    /* what admission expected its members to take */
    bool is_exact;
    int bucket;                  /* index of model->buckets, as the policy chose; -1: exact */
    const bucket_packed *packed; /* of a packed bucket, else NULL */
    pack_place places[PACK_SEQUENCES_MAX]; /* packed: of each sequence, in the members' order */
    cost_attribution attribution;          /* settled when the worker next decides */
    /* Of its latest execution. */
    device_bucket shape;
    bool is_packed; /* false where the CPU took over: it does not pack */
    int device_index;
    bool fell_back;
    uint64_t device_ns; /* of all its executions */
    uint64_t stage_ns[STAGE_COUNT];
} batch;

/* What all workers of a scheduler share while they execute. */
typedef struct executor {
    device *const *devices; /* the last is the CPU */
    int device_count;
    placement_fallback fallback;
    health health;
    admission *admission;
    const _Atomic bool *is_stopping;
    _Atomic uint64_t tenant_ns[FAIR_TENANTS_MAX]; /* device time they received, measured */
    /* A device failed: what waits for it may now be the CPU's. Called by a worker of the device. */
    void (*on_device_failed)(void *context, int device_index);
    void *context;
} executor;

/* The part of a worker that runs batches. One thread uses it. */
typedef struct worker {
    executor *executor;
    int device_index, number; /* of that device's workers */
    staging staging;
    arena views; /* of segments that are parts of jobs; emptied for each batch */
    batch batch;
} worker;

static inline int executor_cpu(const executor *e)
{
    return e->device_count - 1;
}

static inline void counter_add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

#endif

#ifndef BATCHER_POLICY_H
#define BATCHER_POLICY_H

#include "batcher/bucket.h"

/* What a free device should run now: a pure function. It reads no clock, allocates nothing and
 * keeps nothing, so the same code decides in the server and under a simulated clock (tests/sim).
 *
 * The snapshot is complete on purpose: whoever makes the policy cleverer changes policy.c only. */

/* The jobs of one model that share a sequence bucket, oldest first. Only those with rows. */
typedef struct policy_queue {
    int model;    /* index into snapshot.models */
    int sequence; /* position on the model's sequence axis; 0 for exact models */
    int64_t jobs, rows;
    uint64_t oldest_ns;   /* when the head was admitted */
    uint64_t deadline_ns; /* no member's deadline is earlier; UINT64_MAX: none has one */
    int priority;         /* no member's class is higher (a smaller number) */
    int64_t head_rows;    /* rows of the head not yet in a batch */
    uint32_t head_tenant;
} policy_queue;

typedef struct policy_model {
    const bucket_table *table; /* what the asking device can run */
    const _Atomic uint64_t
        *latency_ns; /* by bucket index: measured on the asking device; 0: not known */
    uint64_t queue_delay_ns;
    int64_t rows_max; /* of one batch, for exact models */
    bool is_exact;    /* a batch is jobs of the head's own length; bucket index is -1 */
    bool is_alone;    /* exact, and a batch is the head alone, whole */
    bool is_eligible; /* this device may run it: place.c decides from health and fallback */
    int64_t rows_queued;
} policy_model;

typedef struct policy_snapshot {
    uint64_t now_ns;
    const policy_queue *queues;
    int queue_count;
    const policy_model *models;
    int model_count;
    bool is_flushing; /* shutting down: wait for nobody */
} policy_snapshot;

typedef enum policy_action {
    POLICY_NOTHING, /* no queue holds work for this device */
    POLICY_WAIT,    /* ask again at `until_ns`, or when a job arrives */
    POLICY_RUN
} policy_action;

typedef struct policy_decision {
    policy_action action;
    uint64_t until_ns;
    int queue;         /* index into snapshot.queues: its head is in the batch */
    int bucket;        /* index of model->buckets; -1 for exact models */
    int64_t rows;      /* from that queue */
    int64_t fill_rows; /* then this many from the same model's queues of shorter sequences, longest
                          first; of any sequence when the program is ragged */
} policy_decision;

void policy_decide(const policy_snapshot *s, policy_decision *out);

#endif

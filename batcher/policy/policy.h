#ifndef BATCHER_POLICY_POLICY_H
#define BATCHER_POLICY_POLICY_H

#include "batcher/policy/bucket.h"
#include "models/latency.h"

/* What a free device should run now: a pure function. It reads no clock, allocates nothing and
 * keeps nothing, so the same code decides in the server and under a simulated clock (tests/sim).
 *
 * It is asked about one tenant's priority class, which fair.h chose: a bucket queue of that class
 * leads the batch, others backfill it where there is room. It runs the batch that earns most per
 * time:
 *
 *     index = sum over members of urgency(slack) / time of the batch
 *
 * This is "apparent tardiness cost" (Vepsalainen and Morton 1987) with a batch in place of a job.
 * Urgency falls with the slack that is left after the batch, from 1 (no slack) to a floor, and is 0
 * for a member that would be late. While there is slack everywhere the fullest batch wins, which is
 * best for throughput. As a deadline nears, the index of its bucket queue rises. Where not all
 * deadlines can be met the cheapest batch goes first, and no device works for a request that is
 * late already. */

/* A bucket queue of the leading class: its waiting jobs of one model and sequence bucket. Only
 * those with rows. */
typedef struct policy_queue {
    int model;    /* index into snapshot.models */
    int sequence; /* position on the model's sequence axis; 0 for exact models */
    int64_t jobs, rows;
    uint64_t oldest_ns;           /* when the most urgent one was admitted */
    uint64_t deadline_ns;         /* no member's deadline is earlier; UINT64_MAX: none has one */
    uint64_t mean_deadline_ns;    /* of those that have one; 0: as `deadline_ns` */
    int64_t timed_rows;           /* rows with a deadline; the rest have an implied one */
    uint64_t implied_deadline_ns; /* the earliest of the rest (queue.h); UINT64_MAX: none */
    int64_t head_rows;            /* rows of the head not yet in a batch */
    int64_t head_length;
} policy_queue;

typedef struct policy_model {
    const bucket_table *table;          /* what the asking device can run */
    const latency *latency;             /* of the model; NULL: nothing is known */
    int device_index;                   /* the asking device */
    const int64_t *bucket_queue_rows;   /* of all tenants, by sequence; NULL: those in `queues` */
    const int64_t *bucket_queue_tokens; /* their tokens; NULL: not known, and nothing is packed */
    uint64_t virtual_ns;                /* device time the model received / weight */
    uint64_t queue_delay_ns;
    uint64_t time_max_ns; /* no longer batch while a shorter one is there; 0: no bound */
    int64_t rows_max;     /* of one batch, for exact models */
    bool is_exact;        /* a batch is jobs of the head's own length; bucket index is -1 */
    bool is_alone;        /* exact, and a batch is the head alone, whole */
    bool is_eligible;     /* this device may run it: placement.h */
    bool saves_tokens;    /* packs where that pads less, whatever the times are */
    int64_t rows_queued;
} policy_model;

typedef struct policy_snapshot {
    uint64_t now_ns;
    const policy_queue *queues;
    int queue_count;
    const policy_model *models;
    int model_count;
    int workers;        /* that take such work at once: how soon another decision comes; 0: 1 */
    bool is_flushing;   /* shutting down: no batching delay */
    bool is_aged_first; /* this time the job whose implied deadline passed first leads, if there is
                           one */
} policy_snapshot;

typedef enum policy_action {
    POLICY_NOTHING, /* no queue holds work for this device */
    POLICY_WAIT,    /* ask again at `until_ns`, or when a job arrives */
    POLICY_RUN
} policy_action;

typedef struct policy_decision {
    policy_action action;
    uint64_t until_ns;
    int queue;                   /* index into snapshot.queues: its head is in the batch */
    int bucket;                  /* index of model->buckets; -1 for exact models */
    int64_t rows;                /* from that queue */
    int64_t backfill_rows;       /* then so many of other tenants and classes and of shorter
                                    sequences; packed: of all that the bucket holds */
    const bucket_packed *packed; /* of the bucket, in the model's table; NULL: it is none */
    uint64_t expected_ns;        /* the batch will take; 0: not known */
    uint64_t late_ns; /* members with an earlier deadline would be late: they are left out */
    double budget_ns; /* ragged programs: no more members than this takes; 0: no bound */
} policy_decision;

/* Ragged programs: batches are sized by cost. The fixed cost F of a batch delays all requests
 * behind it, and a long batch makes its members wait for each other: with B of device time waiting,
 * batches of T make them wait F * B / T + T, which is least at T = sqrt(F * B) (Harris 1913). But a
 * batch grows at least until its fixed cost is this part of it. */
#define POLICY_FIXED_SHARE (1.0 / 16)
/* How far models' received times (by weight) may drift apart before the one behind must lead. */
#define POLICY_MODEL_LAG_NS UINT64_C(100000000)

void policy_decide(const policy_snapshot *s, policy_decision *out);

#endif

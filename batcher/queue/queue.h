#ifndef BATCHER_QUEUE_QUEUE_H
#define BATCHER_QUEUE_QUEUE_H

#include "batcher/job/job.h"
#include "batcher/policy/fair.h"
#include "batcher/policy/pack.h"
#include "batcher/policy/policy.h"
#include "batcher/policy/slo.h"
#include "models/latency.h"

/* The waiting jobs of one model: a bucket queue for each tenant, priority class and sequence
 * bucket. Within a bucket queue the job with the earliest deadline is first. Belongs to the worker
 * that holds the scheduler's mutex. `sequence` is a position on the model's sequence axis. */

/* Jobs without a deadline are ordered as if they had one so long after admission. They are not
 * dropped when it passes. */
#define QUEUE_PATIENCE_NS UINT64_C(1000000000)

/* A binary heap with its keys in place, so that ordering touches no job. */
typedef struct queue_entry {
    uint64_t deadline_ns, order; /* given or implied; of equal deadlines the first to come */
    job *job;
} queue_entry;

typedef struct job_heap {
    queue_entry *entries;
    int count, capacity;
    int64_t rows;
    uint64_t deadline_sum_us; /* of all: for the mean */
} job_heap;

typedef struct bucket_queue {
    job_heap timed, untimed; /* with a deadline; without */
} bucket_queue;

typedef struct tenant_class_queue {
    int64_t rows;
    bucket_queue buckets[]; /* by sequence: model_queue.bucket_queue_count */
} tenant_class_queue;

typedef struct model_queue {
    const model *model;
    uint64_t serial;
    bucket_table axes; /* the axes alone, of no device: which bucket queue a length belongs to */
    int bucket_queue_count;
    int64_t rows;
    int64_t bucket_queue_rows[MODEL_AXIS_MAX], bucket_queue_tokens[MODEL_AXIS_MAX]; /* of all
                                                                                       tenants */
    uint64_t order;                                             /* of the latest job */
    tenant_class_queue *queues[FAIR_TENANTS_MAX][FAIR_CLASSES]; /* made at first use */
    fair *fair;                                                 /* borrowed: who waits */
    uint64_t virtual_ns;                                        /* device time received / weight */
    slo_controller slo; /* written at the end of batches, without the mutex */
    int device_count;
    bucket_table *tables; /* by device */
    uint32_t made_seen;   /* deferred_buckets_made() when the tables were read */
    latency *latency;     /* the model's, or own when it has none */
    bool owns_latency;
} model_queue;

/* Some rows of one job, in one batch. */
typedef struct batch_member {
    job *job;
    int64_t row, rows; /* the job's rows [row, row + rows) */
} batch_member;

/* Rows times their length; a row without a sequence counts as one token. */
static inline int64_t member_tokens(const batch_member *m)
{
    return m->rows * (m->job->length > 0 ? m->job->length : 1);
}

/* What taking respects, beside the order of the heap. */
typedef struct queue_take {
    int64_t rows;          /* at most */
    int64_t length;        /* while the head has that length; -1: any */
    bool is_whole;         /* no parts of jobs */
    bool is_backfill;      /* beside the rows that lead the batch: who would be late stays */
    uint64_t until_ns;     /* jobs with an earlier deadline are dropped: the batch ends then */
    double budget_ns;      /* stop when the members' cost is over it; the first always goes */
    double busy_budget_ns; /* the budget for rows of tenants that are not quiet, in a batch that a
                              quiet tenant leads */
    latency_fit fit;       /* for the budget */
    struct pack *pack;     /* takes what finds a place in it; NULL: a row for each */
    pack_place *places;    /* with `pack`: of each sequence, in the members' order */
    batch_member *members;
    int count, capacity;
    double cost_ns;
    job *overdue, *dead; /* dropped: too late; cancelled or failed */
} queue_take;

/* NULL when memory is out. */
model_queue *model_queue_create(const model *m, int device_count, fair *f);
void model_queue_destroy(model_queue *q); /* must hold no jobs */

/* Takes over buckets that were made since. */
void model_queue_refresh(model_queue *q);

/* Takes the job in; it has at least one row and a length that some bucket holds. False: no memory.
 * Amortised O(log n) and, once the heaps have grown, without allocation. */
bool model_queue_push(model_queue *q, job *j);

/* The first job of a bucket queue that is neither cancelled nor failed, or NULL; those before it go
 * to `dead`. */
job *model_queue_head(model_queue *q, tenant_class whose, int sequence, job **dead);

/* Takes members from the head of one bucket queue. Returns the rows taken. */
int64_t model_queue_take(model_queue *q, tenant_class whose, int sequence, queue_take *t);

/* Unlinks every job whose deadline has passed; with `looks_ahead` also those whose deadline is
 * before `now_ns` + the least time that a batch of their bucket queue takes on any of the model's
 * devices: they could not be met if they started now. */
void model_queue_drop_late(model_queue *q, uint64_t now_ns, bool looks_ahead, job **overdue);
/* Unlinks cancelled and failed jobs wherever they stand: O(n). */
void model_queue_drop_dead(model_queue *q, job **dead);
/* Unlinks all. */
void model_queue_empty(model_queue *q, job **dropped);

/* The rows of a batch, or a dropped job, wait no longer: ends the stage "queue". */
void queue_stamp(uint64_t stage_ns[STAGE_COUNT], uint64_t now_ns);

/* The earliest deadline of all; UINT64_MAX: none. */
uint64_t model_queue_deadline(const model_queue *q);

/* Least time that one row of that bucket queue takes on device `d`, from its table; 0: not known.
 */
uint64_t model_queue_least_ns(const model_queue *q, int sequence, int d);

#endif

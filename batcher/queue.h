#ifndef BATCHER_QUEUE_H
#define BATCHER_QUEUE_H

#include "batcher/job.h"
#include "batcher/policy.h"

/* The waiting jobs of one model: a first-in-first-out list per sequence bucket. Belongs to whoever
 * holds the scheduler's mutex. */
typedef struct job_list {
    job *first, *last;
    int64_t jobs, rows;   /* rows not yet in a batch */
    uint64_t deadline_ns; /* lower bound of the members' deadlines */
    int priority;         /* lower bound of the members' classes */
} job_list;

typedef struct model_queue {
    const model *model;
    uint64_t serial;
    bucket_table axes; /* the axes alone, of no device: which list a length belongs to */
    job_list lists[MODEL_AXIS_MAX];
    int list_count;
    int64_t rows;
    int device_count;
    bucket_table *tables;         /* by device */
    _Atomic uint64_t *latency_ns; /* [device][bucket]: moving average of executions */
    size_t staging_bytes;         /* of the largest bucket's inputs and outputs */
} model_queue;

/* Some rows of one job, in one batch. */
typedef struct batch_member {
    job *job;
    int64_t row, rows; /* the job's rows [row, row + rows) */
} batch_member;

/* NULL when memory is out. */
model_queue *model_queue_create(const model *m, int device_count);
void model_queue_destroy(model_queue *q); /* must hold no jobs */

/* Appends. The job has at least one row and a length that some bucket holds. */
void model_queue_push(model_queue *q, job *j);

/* Unlinks cancelled and failed jobs from the head of a list to `*dropped`. */
void model_queue_drop_head(model_queue *q, int list, job **dropped);

/* Takes up to `rows` rows from the head of list `list`; adds members at `*count`. Jobs that were
 * cancelled are unlinked to `*dropped` instead. With `length` >= 0 only while the head has that
 * length. Returns the rows taken. */
int64_t model_queue_take(model_queue *q, int list, int64_t rows, int64_t length, bool whole_jobs,
                         batch_member *members, int *count, int capacity, job **dropped);

/* Unlinks every job that is cancelled or whose deadline is past to `*dropped`. */
void model_queue_sweep(model_queue *q, uint64_t now_ns, bool cancelled_too, job **dropped);
/* Unlinks all. */
void model_queue_empty(model_queue *q, job **dropped);

/* The earliest deadline of all lists (a lower bound). */
uint64_t model_queue_deadline(const model_queue *q);

#endif

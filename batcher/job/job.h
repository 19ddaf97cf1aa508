#ifndef BATCHER_JOB_JOB_H
#define BATCHER_JOB_JOB_H

#include "base/arena.h"
#include "base/mailbox.h"
#include "batcher/job/hold.h"
#include "batcher/job/stage.h"
#include "batcher/policy/fair.h"
#include "models/model.h"

/* A piece of work: rows of equal length for one model. server/ makes it, batcher/ runs it, and it
 * always comes back exactly once, through `on_done`, also when cancelled. It holds no pointer
 * into an HTTP library, whose request may be gone before the job is done. A request whose rows
 * differ in length is several jobs.
 *
 * Owner: the server loop until scheduler_submit(), the batcher until on_done() is called, then the
 * server loop again. */
typedef struct job job;
struct job {
    mailbox_node node; /* first: in the scheduler's mailbox going in, in the loop's coming back */
    job *next;         /* in the batcher's queue */
    /* Called on a worker's thread, once; must only post the job to its home (non-blocking). */
    void (*on_done)(job *j);
    void *home;   /* for on_done */
    void *owner;  /* the submitter's own: what this belongs to; the batcher reads neither */
    uint64_t tag; /* the submitter's own, beside it */

    const model *model;   /* holds a reference */
    int64_t rows, length; /* length 0 when the model has no sequence axis */
    arena memory;

    uint64_t deadline_ns; /* clock_now_ns() scale; UINT64_MAX: none */
    int priority;         /* 0 is the highest class */
    uint32_t tenant;      /* dense number; 0 is the default tenant */
    hold hold;            /* acquired by scheduler_admit(), empty before on_done() */
    uint64_t backlog_ns;  /* of device time that scheduler_admit() found ahead of it */

    /* Set by the server loop; the batcher then drops what has not started. */
    _Atomic bool is_cancelled;

    /* Results; written by the batcher. */
    status result;
    char error[STATUS_MESSAGE_BYTES_MAX];
    /* The submitter sets the stages up to STAGE_ADMIT, the batcher the others. */
    uint64_t stage_ns[STAGE_COUNT];
    /* For statistics: the batch that held its last rows. */
    device_bucket bucket;
    bool is_packed; /* with several sequences in each row */
    int32_t device_index;
    int64_t batch_rows; /* real rows in that batch */
    bool fell_back;     /* ran on the CPU after or instead of its device */

    /* The batcher's own: the first row that is in no batch yet; rows that are not done. */
    int64_t row_next;
    _Atomic int64_t rows_left;
    _Atomic bool has_failed;

    /* Last, because they are 12 KiB and the scheduler reads only what is above. */
    bool output_wanted[MODEL_TENSORS_MAX];
    tensor inputs[MODEL_TENSORS_MAX]; /* data lives in `memory`, or in the request's body, which its
                                         owner keeps until the job is back */
    tensor outputs[MODEL_TENSORS_MAX]; /* allocated in `memory` before submission: shapes are known
                                          then */
};

/* On the caller's storage; batcher/job/pool.h has them ready-made. Empty memory, rows and length 0,
 * no model, no deadline. */
void job_init(job *j);
/* As after job_init(), but for at most `keep_bytes` of its memory, which stay for reuse. Releases
 * the model. */
void job_reset(job *j, size_t keep_bytes);
void job_dispose(job *j);

/* Gives `j->outputs` their shapes for j->model, j->rows and j->length and memory from j->memory,
 * not zeroed. STATUS_UNSUPPORTED: a dim is not known beforehand; STATUS_OUT_OF_MEMORY. */
status job_allocate_outputs(job *j) MUST_CHECK;

/* The batcher's: `rows` of the job are done, with `result` (message: status_message()). True when
 * they were the last: the job's fields then belong to the caller, who calls on_done. */
bool job_finish_rows(job *j, int64_t rows, status result) MUST_CHECK;

static inline tenant_class job_tenant_class(const job *j)
{
    return (tenant_class){(int)j->tenant, fair_class(j->priority)};
}

#endif

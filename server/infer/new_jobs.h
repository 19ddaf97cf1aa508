#ifndef SERVER_INFER_NEW_JOBS_H
#define SERVER_INFER_NEW_JOBS_H

#include "server/request/request.h"

/* Where parsers get a request's jobs: on its loop from the loop's pool, on a helper thread from
 * what the loop has set aside. The first job takes over the request's reference to the model. */

/* infer_context.acquire_job on the loop; `context` is the request. */
job *new_jobs_acquire(void *context);

/* The jobs move from where a parser put them to where they live as long as they do.
 * STATUS_OUT_OF_MEMORY. */
status new_jobs_keep(request *r) MUST_CHECK;
/* The request gets no further: gives them back to the pool. */
void new_jobs_drop(request *r);

/* What a helper may take: one job of the pool, and more where rows of different lengths make a job
 * each. */
typedef struct helper_jobs {
    const model *model;
    job *first;   /* of the loop's pool, until it is taken; or NULL */
    int reserved; /* jobs that the loop's pool has counted, and the helper may still create */
    bool holds_model;
} helper_jobs;

/* On the loop: takes the request's reference to the model, if it still has it, and sets jobs aside:
 * at most `capacity`, with those the request has. */
void helper_jobs_reserve(helper_jobs *h, request *r, int capacity);
/* On the loop, when the helper is done, or has never begun: gives back what is left. */
void helper_jobs_return(helper_jobs *h, request *r);

/* infer_context.acquire_job on a helper thread; `context` is a helper_jobs. */
job *helper_jobs_acquire(void *context);

#endif

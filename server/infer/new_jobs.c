#include "server/infer/new_jobs.h"

#include <stdlib.h>

static void prepare(job *j, const model *m, bool *holds_model)
{
    if (!*holds_model)
        model_retain(m);
    *holds_model = false;
    j->model = m;
    j->rows = j->length = -1;
}

job *new_jobs_acquire(void *context)
{
    request *r = context;
    job *j = job_pool_acquire(&r->loop->jobs);
    if (j != NULL)
        prepare(j, r->infer.model, &r->holds_model);
    return j;
}

status new_jobs_keep(request *r)
{
    infer_request *q = &r->infer;
    if (q->job_count <= 1) {
        r->one_job = q->job_count ? q->jobs[0] : NULL;
        q->jobs = &r->one_job;
        return STATUS_OK;
    }
    size_t bytes = (size_t)q->job_count * sizeof(job *);
    job **kept = arena_allocate(&q->jobs[0]->memory, bytes);
    if (kept == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %d jobs", q->job_count);
    q->jobs = memcpy(kept, q->jobs, bytes);
    return STATUS_OK;
}

void new_jobs_drop(request *r)
{
    request_release_jobs(r);
}

void helper_jobs_reserve(helper_jobs *h, request *r, int capacity)
{
    int more = capacity - 1;
    *h = (helper_jobs){.model = r->infer.model, .holds_model = r->holds_model};
    r->holds_model = false;
    if (r->infer.job_count == 0)
        h->first = job_pool_acquire(&r->loop->jobs);
    if (h->model->batching.sequence_max > 0 && job_pool_reserve(&r->loop->jobs, more))
        h->reserved = more;
}

void helper_jobs_return(helper_jobs *h, request *r)
{
    if (h->first != NULL)
        job_pool_release(&r->loop->jobs, h->first);
    job_pool_unreserve(&r->loop->jobs, h->reserved);
    r->holds_model = h->holds_model;
}

job *helper_jobs_acquire(void *context)
{
    helper_jobs *h = context;
    job *j = h->first;
    h->first = NULL;
    if (j == NULL && h->reserved > 0 && (j = malloc(sizeof *j)) != NULL) {
        job_init(j);
        h->reserved--;
    }
    if (j != NULL)
        prepare(j, h->model, &h->holds_model);
    return j;
}

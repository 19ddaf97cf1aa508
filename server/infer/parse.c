#include "server/infer/parse.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "server/infer/body.h"
#include "server/infer/decimal.h"
#include "server/request/work.h"

#define DAY_MS 86400000u

/* A body that a helper thread parses. */
typedef struct parsing {
    request_work work; /* first */
    const server_options *options;
    infer_body body;
    budget_account held; /* the helper's */
    infer_request infer;
    job *first;   /* of the loop's pool, until the parser takes it */
    int reserved; /* jobs that the loop's pool has counted, and the parser may still create */
    bool holds_model;
    status result;
    char error[STATUS_MESSAGE_BYTES_MAX];
    job *jobs[]; /* infer.jobs */
} parsing;

/* The first job takes over the request's reference to the model. */
static void prepare_job(job *j, const model *m, bool *holds_model)
{
    if (!*holds_model)
        model_retain(m);
    *holds_model = false;
    j->model = m;
    j->rows = j->length = -1;
}

/* infer_context.acquire_job, on the loop. */
static job *acquire_job(void *context)
{
    request *r = context;
    job *j = job_pool_acquire(&r->loop->jobs);
    if (j != NULL)
        prepare_job(j, r->infer.model, &r->holds_model);
    return j;
}

/* infer_context.acquire_job, on a helper thread. */
static job *create_job(void *context)
{
    parsing *p = context;
    job *j = p->first;
    p->first = NULL;
    if (j == NULL && p->reserved > 0 && (j = malloc(sizeof *j)) != NULL) {
        job_init(j);
        p->reserved--;
    }
    if (j != NULL)
        prepare_job(j, p->infer.model, &p->holds_model);
    return j;
}

/* The jobs move from where the parser put them to where they live as long as they do. */
static status keep_jobs(request *r)
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

static void drop_jobs(request *r)
{
    for (int i = 0; i < r->infer.job_count; i++)
        job_pool_release(&r->loop->jobs, r->infer.jobs[i]);
    r->infer.job_count = 0;
}

static uint64_t deadline_of(const request *r)
{
    const server_options *o = request_service(r)->options;
    request_text header = request_header(r, "x-request-timeout-ms");
    uint64_t ms, span_ns = r->infer.timeout_ns;
    if (header.data != NULL && decimal_read(header, &ms) && ms > 0 && ms < DAY_MS &&
        (span_ns == 0 || ms * 1000000 < span_ns))
        span_ns = ms * 1000000;
    if (span_ns == 0 && o->slo_deadline)
        span_ns = r->infer.model->slo_ns;
    if (span_ns == 0)
        span_ns = o->timeouts.deadline_ms * 1000000;
    return span_ns == 0 ? UINT64_MAX : r->life.since_ns[LIFE_RECEIVED] + span_ns;
}

/* `failure` is the parser's. */
static status finish(request *r, status failure)
{
    if (!failure)
        failure = keep_jobs(r);
    uint64_t now_ns = clock_now_ns();
    stage_stamp(r->sample.stage_ns, STAGE_PARSE, now_ns);
    if (failure || request_has_ended(r)) {
        drop_jobs(r);
        return failure;
    }
    r->deadline_ns = deadline_of(r);
    request_advance(r, LIFE_PARSE, now_ns);
    return STATUS_OK;
}

static status parse_here(request *r, const infer_body *body)
{
    const server_options *o = request_service(r)->options;
    infer_context context = {.limits = &o->limits,
                             .is_strict = o->strict_json,
                             .acquire_job = acquire_job,
                             .context = r,
                             .scratch = &r->loop->scratch};
    return finish(r, infer_body_parse(body, &r->infer, &context, o->limits.decompressed_bytes_max));
}

/* On a helper thread. */
static void run(request_work *work)
{
    parsing *p = (parsing *)work;
    const server_options *o = p->options;
    infer_scratch scratch = {0};
    infer_context context = {.limits = &o->limits,
                             .is_strict = o->strict_json,
                             .acquire_job = create_job,
                             .context = p,
                             .scratch = &scratch,
                             .cancel = &work->cancel};
    p->result = cancel_check(&work->cancel);
    if (!p->result)
        p->result =
            infer_body_parse(&p->body, &p->infer, &context, o->limits.decompressed_bytes_max);
    if (p->result)
        strncpy(p->error, status_message(), sizeof p->error - 1);
    infer_scratch_dispose(&scratch);
    budget_return(&p->held);
}

/* What a helper may need of the loop's jobs: one; more where rows of different lengths make a job
 * each. */
static void reserve_jobs(request *r, parsing *p)
{
    int more = p->infer.job_capacity - 1;
    p->first = job_pool_acquire(&r->loop->jobs);
    if (r->infer.model->batching.sequence_max > 0 && job_pool_reserve(&r->loop->jobs, more))
        p->reserved = more;
}

static void return_jobs(request *r, parsing *p)
{
    if (p->first != NULL)
        job_pool_release(&r->loop->jobs, p->first);
    job_pool_unreserve(&r->loop->jobs, p->reserved);
}

static status parse_beside(request *r, const infer_body *body, request_handler resume)
{
    infer_request *q = &r->infer;
    parsing *p = calloc(1, sizeof *p + (size_t)q->job_capacity * sizeof(job *));
    if (p == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to parse a body");
    p->options = request_service(r)->options;
    p->body = *body;
    p->body.held = &p->held;
    budget_lend(&r->connection->held, &p->held);
    p->holds_model = true;
    infer_request_init(&p->infer, q->model, q->protocol, p->jobs, q->job_capacity);
    reserve_jobs(r, p);
    r->deadline_ns = deadline_of(r);
    p->work.run = run;
    p->work.cancel.deadline_ns = r->deadline_ns == UINT64_MAX ? 0 : r->deadline_ns;
    if (!request_offload(r, &p->work, false, resume)) {
        return_jobs(r, p);
        free(p);
        return status_fail(STATUS_UNAVAILABLE, "too many large bodies wait to be parsed");
    }
    r->holds_model = false; /* the work has it */
    r->reads_body = true;
    if (r->deadline_ns != UINT64_MAX)
        deadlines_add(&r->loop->deadlines, &r->deadline, r->deadline_ns);
    return STATUS_OK;
}

status parse_finish(request *r)
{
    parsing *p = r->waits_for;
    r->on_cancel = NULL;
    r->waits_for = NULL;
    r->reads_body = false;
    deadlines_remove(&r->loop->deadlines, &r->deadline);
    r->infer = p->infer;
    r->holds_model = p->holds_model;
    return_jobs(r, p);
    status failure = finish(r, p->result ? status_fail(p->result, "%s", p->error) : STATUS_OK);
    free(p);
    return failure;
}

status parse_request(request *r, const model *m, request_handler resume, bool *is_later)
{
    request_loop *l = r->loop;
    bool is_kserve = r->route.kind == ROUTE_INFER;
    infer_body body;
    infer_request_init(&r->infer, m, is_kserve ? INFER_KSERVE : INFER_TENSORFLOW_ROWS,
                       l->parsed_jobs,
                       is_kserve ? 1 : l->service->options->limits.request_jobs_max);
    r->holds_model = true;
    status failure = infer_body_read_headers(r, &body);
    *is_later = !failure && infer_body_is_long(&body) && l->service->helpers != NULL;
    if (!*is_later)
        return failure ? finish(r, failure) : parse_here(r, &body);
    failure = parse_beside(r, &body, resume);
    *is_later = !failure;
    return failure ? finish(r, failure) : STATUS_OK;
}

#include "server/infer/parse.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "server/call/invocation.h"
#include "server/infer/body.h"
#include "server/infer/deadline.h"
#include "server/infer/new_jobs.h"
#include "server/request/work.h"
#include "server/service/shared_tensors.h"

/* A body that a helper thread parses. */
typedef struct parsing {
    request_work work; /* first */
    const server_options *options;
    shared_memory *regions;
    infer_body body;
    budget_account held, parsed; /* the helper's: decompressed; what is made of it */
    language_request *language;  /* of a route that takes text; then there are no jobs */
    route_kind kind;
    infer_request infer;
    helper_jobs new_jobs;
    status result;
    char error[STATUS_MESSAGE_BYTES_MAX];
    job *jobs[]; /* infer.jobs */
} parsing;

/* `failure` is the parser's. */
static status finish(request *r, status failure)
{
    if (!failure && r->infer.model != NULL)
        failure = new_jobs_keep(r);
    uint64_t now_ns = clock_now_ns();
    stage_stamp(r->sample.stage_ns, STAGE_PARSE, now_ns);
    if (failure || request_has_ended(r)) {
        new_jobs_drop(r);
        return failure;
    }
    r->deadline_ns = infer_deadline_of(r);
    if (r->language == NULL && r->infer.texts.count == 0)
        request_advance(r, LIFE_PARSE, now_ns); /* else it has no rows before it has tokens */
    return STATUS_OK;
}

static status parse_here(request *r, const infer_body *body)
{
    const server_options *o = request_service(r)->options;
    infer_context context = {.limits = &o->limits,
                             .is_strict = o->strict_json,
                             .acquire_job = new_jobs_acquire,
                             .context = r,
                             .scratch = &r->loop->scratch};
    return finish(r, infer_body_parse(body, &r->infer, &context, o->limits.decompressed_bytes_max));
}

static status parse_text(const server_options *o, const infer_body *body, language_request *to,
                         route_kind kind, const cancel_token *cancel)
{
    language_limits limits = {.items_max = o->limits.text_items_max,
                              .bytes_max = o->limits.text_bytes_max,
                              .json_depth_max = o->limits.json_depth_max,
                              .cancel = cancel};
    return infer_body_parse_language(body, to, kind, &limits, o->limits.decompressed_bytes_max);
}

/* On a helper thread. */
static void run(request_work *work)
{
    parsing *p = (parsing *)work;
    const server_options *o = p->options;
    infer_scratch scratch = {0};
    shared_tensors regions;
    shared_tensors_init(&regions, p->regions, &p->parsed);
    infer_context context = {.limits = &o->limits,
                             .is_strict = o->strict_json,
                             .regions = p->body.names_regions ? &regions.base : NULL,
                             .acquire_job = helper_jobs_acquire,
                             .context = &p->new_jobs,
                             .scratch = &scratch,
                             .cancel = &work->cancel};
    p->result = cancel_check(&work->cancel);
    if (!p->result && p->language != NULL)
        p->result = parse_text(o, &p->body, p->language, p->kind, &work->cancel);
    else if (!p->result)
        p->result =
            infer_body_parse(&p->body, &p->infer, &context, o->limits.decompressed_bytes_max);
    if (p->result)
        strncpy(p->error, status_message(), sizeof p->error - 1);
    infer_scratch_dispose(&scratch);
    budget_return(&p->held);
    budget_return(&p->parsed);
}

static status parse_beside(request *r, const infer_body *body, request_handler resume)
{
    infer_request *q = &r->infer;
    int capacity = r->language != NULL ? 0 : q->job_capacity;
    parsing *p = calloc(1, sizeof *p + (size_t)capacity * sizeof(job *));
    if (p == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to parse a body");
    p->options = request_service(r)->options;
    p->regions = request_service(r)->regions;
    p->body = *body;
    p->body.held = &p->held;
    p->body.parsed = &p->parsed;
    budget_lend(&r->connection->held, &p->held);
    budget_lend(&r->connection->held, &p->parsed);
    p->language = r->language;
    p->kind = r->route.kind;
    if (p->language == NULL) {
        infer_request_init(&p->infer, q->model, q->protocol, p->jobs, capacity);
        p->infer.rows_as = q->rows_as;
        helper_jobs_reserve(&p->new_jobs, r, capacity);
    }
    r->deadline_ns = infer_deadline_of(r);
    p->work.run = run;
    p->work.cancel.deadline_ns = r->deadline_ns == UINT64_MAX ? 0 : r->deadline_ns;
    if (!request_offload(r, &p->work, false, resume)) {
        if (p->language == NULL)
            helper_jobs_return(&p->new_jobs, r);
        free(p);
        return status_fail(STATUS_UNAVAILABLE, "too many large bodies wait to be parsed");
    }
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
    if (p->language == NULL) {
        r->infer = p->infer;
        helper_jobs_return(&p->new_jobs, r);
    }
    status failure = finish(r, p->result ? status_fail(p->result, "%s", p->error) : STATUS_OK);
    free(p);
    return failure;
}

status parse_language(request *r, request_handler resume, bool *is_later)
{
    service *s = request_service(r);
    infer_body body;
    status failure = infer_body_read_headers(r, &body);
    *is_later = !failure && infer_body_is_long(&body) && s->helpers != NULL;
    if (failure)
        return finish(r, failure);
    if (!*is_later)
        return finish(r, parse_text(s->options, &body, r->language, r->route.kind, NULL));
    failure = parse_beside(r, &body, resume);
    *is_later = !failure;
    return failure ? finish(r, failure) : STATUS_OK;
}

status parse_request(request *r, const model *m, request_handler resume, bool *is_later)
{
    request_loop *l = r->loop;
    infer_protocol protocol = r->route.kind == ROUTE_INFER             ? INFER_KSERVE
                              : r->route.kind == ROUTE_GRPC_TF_PREDICT ? INFER_GRPC_TENSORFLOW
                              : route_is_grpc_infer(r->route.kind)     ? INFER_GRPC
                                                                       : INFER_TENSORFLOW_ROWS;
    infer_body body;
    infer_request_init(
        &r->infer, m, protocol, l->parsed_jobs,
        protocol == INFER_TENSORFLOW_ROWS ? l->service->options->limits.request_jobs_max : 1);
    r->infer.rows_as = invocation_rows_as(r);
    r->holds_model = true;
    status failure = infer_body_read_headers(r, &body);
    *is_later = !failure && infer_body_is_long(&body) && l->service->helpers != NULL;
    if (!*is_later)
        return failure ? finish(r, failure) : parse_here(r, &body);
    failure = parse_beside(r, &body, resume);
    *is_later = !failure;
    return failure ? finish(r, failure) : STATUS_OK;
}

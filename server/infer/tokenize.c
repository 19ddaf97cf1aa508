#include "server/infer/tokenize.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "server/infer/new_jobs.h"
#include "server/protocol/rows/text_rows.h"
#include "server/request/work.h"

/* Texts that a helper thread tokenizes. */
typedef struct tokenizing {
    request_work work; /* first */
    service *service;
    const text_list *texts; /* with jobs[0], or of the request's language_request */
    text_options options;
    infer_request infer;
    helper_jobs new_jobs;
    int64_t tokens;
    status result;
    char error[STATUS_MESSAGE_BYTES_MAX];
    job *jobs[]; /* infer.jobs */
} tokenizing;

static const text_list *texts_of(const request *r)
{
    return r->language != NULL ? &r->language->texts : &r->infer.texts;
}

static const text_options *options_of(const request *r)
{
    return r->language != NULL ? &r->language->options : &r->infer.text_options;
}

static status finish(request *r, status failure, int64_t tokens)
{
    if (!failure)
        failure = new_jobs_keep(r);
    uint64_t now_ns = clock_now_ns();
    stage_stamp(r->sample.stage_ns, STAGE_TOKENIZE, now_ns);
    if (failure || request_has_ended(r)) {
        new_jobs_drop(r);
        return failure;
    }
    if (r->language != NULL)
        r->language->tokens = tokens;
    request_advance(r, LIFE_PARSE, now_ns);
    return STATUS_OK;
}

/* The request's job, if it has one, moves to where there is room for more. */
static void widen(infer_request *q, job **jobs, int capacity)
{
    if (q->job_count > 0)
        jobs[0] = q->jobs[0];
    q->jobs = jobs;
    q->job_capacity = capacity;
}

static status tokenize_here(request *r)
{
    request_loop *l = r->loop;
    const server_options *o = l->service->options;
    infer_context context = {.limits = &o->limits,
                             .acquire_job = new_jobs_acquire,
                             .context = r,
                             .scratch = &l->scratch};
    int64_t tokens = 0;
    if (l->text_scratch == NULL)
        l->text_scratch = tokenizer_scratch_create();
    if (l->text_scratch == NULL)
        return finish(r, status_fail(STATUS_OUT_OF_MEMORY, "no memory to tokenize"), 0);
    widen(&r->infer, l->parsed_jobs, o->limits.request_jobs_max);
    status failure =
        text_rows_make(&r->infer, &context, texts_of(r), options_of(r), l->text_scratch, &tokens);
    return finish(r, failure, tokens);
}

/* On a helper thread. */
static void run(request_work *work)
{
    tokenizing *t = (tokenizing *)work;
    infer_scratch scratch = {0};
    tokenizer_scratch *text_scratch = text_scratches_take(&t->service->text_scratches);
    infer_context context = {.limits = &t->service->options->limits,
                             .acquire_job = helper_jobs_acquire,
                             .context = &t->new_jobs,
                             .scratch = &scratch,
                             .cancel = &work->cancel};
    t->result = text_scratch == NULL ? status_fail(STATUS_OUT_OF_MEMORY, "no memory to tokenize")
                                     : cancel_check(&work->cancel);
    if (!t->result)
        t->result =
            text_rows_make(&t->infer, &context, t->texts, &t->options, text_scratch, &t->tokens);
    if (t->result)
        strncpy(t->error, status_message(), sizeof t->error - 1);
    infer_scratch_dispose(&scratch);
    if (text_scratch != NULL)
        text_scratches_return(&t->service->text_scratches, text_scratch);
}

static status tokenize_beside(request *r, request_handler resume)
{
    service *s = request_service(r);
    const text_list *texts = r->language != NULL ? &r->language->texts : &r->infer.texts;
    int limit = s->options->limits.request_jobs_max;
    /* No more lengths than texts; the request may have a job already. */
    int capacity = texts->count < limit ? (int)texts->count + 1 : limit;
    tokenizing *t = calloc(1, sizeof *t + (size_t)capacity * sizeof(job *));
    if (t == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to tokenize");
    t->service = s;
    t->options = *options_of(r);
    t->infer = r->infer;
    t->texts = r->language != NULL ? &r->language->texts : &t->infer.texts;
    widen(&t->infer, t->jobs, capacity);
    helper_jobs_reserve(&t->new_jobs, r, capacity);
    t->work.run = run;
    t->work.cancel.deadline_ns = r->deadline_ns == UINT64_MAX ? 0 : r->deadline_ns;
    if (!request_offload(r, &t->work, false, resume)) {
        helper_jobs_return(&t->new_jobs, r);
        free(t);
        return status_fail(STATUS_UNAVAILABLE, "too many large texts wait to be tokenized");
    }
    r->infer.job_count = 0; /* the work has it */
    r->reads_body = true;
    if (r->deadline_ns != UINT64_MAX)
        deadlines_add(&r->loop->deadlines, &r->deadline, r->deadline_ns);
    return STATUS_OK;
}

status tokenize_finish(request *r)
{
    tokenizing *t = r->waits_for;
    r->on_cancel = NULL;
    r->waits_for = NULL;
    r->reads_body = false;
    deadlines_remove(&r->loop->deadlines, &r->deadline);
    r->infer = t->infer;
    helper_jobs_return(&t->new_jobs, r);
    status failure =
        finish(r, t->result ? status_fail(t->result, "%s", t->error) : STATUS_OK, t->tokens);
    free(t);
    return failure;
}

status tokenize_request(request *r, request_handler resume, bool *is_later)
{
    *is_later = text_rows_are_long(texts_of(r)) && request_service(r)->helpers != NULL;
    if (!*is_later)
        return tokenize_here(r);
    status failure = tokenize_beside(r, resume);
    *is_later = !failure;
    return failure ? finish(r, failure, 0) : STATUS_OK;
}

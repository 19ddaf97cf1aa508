#include "server/request/request.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "server/offload/pool.h"

/* For smaller ones nobody looks at the memory behind them; small jobs are the pool's. */
#define LARGE_RESPONSE_BYTES 65536
#define LARGE_JOBS_BYTES ((size_t)262144)

static request *acquire(request_loop *l)
{
    request *r = l->idle;
    if (r != NULL) {
        l->idle = r->next;
        return r;
    }
    if (l->request_count == l->capacity.requests_max || (r = malloc(sizeof(*r))) == NULL)
        return NULL;
    r->deadline.place = 0;
    return l->requests[l->request_count++] = r;
}

request *request_begin(request_loop *l, request_connection *c, void *stream, uint64_t now_ns)
{
    request *r = acquire(l);
    if (r == NULL)
        return NULL;
    /* Field by field: most of it is names and outputs, which have their own counts. */
    r->next = NULL;
    life_begin(&r->life, now_ns);
    r->serial = ++l->next_serial;
    r->loop = l;
    r->connection = c;
    r->stream = stream;
    r->kept_body = NULL;
    r->kept_body_bytes = 0;
    r->unpacked = NULL;
    r->unpacked_capacity = 0;
    r->can_borrow_body = false;
    r->body = (request_text){NULL, 0};
    r->is_head = false;
    r->reads_body = false;
    r->resume = NULL;
    r->on_due = NULL;
    r->waits_for = NULL;
    r->on_cancel = NULL;
    r->language = NULL;
    r->infer.model = NULL;
    r->infer.job_count = 0;
    r->infer.borrows_body = false;
    r->holds_model = false;
    r->access = NULL;
    r->identity = NULL;
    r->rights = 0;
    r->has_key = r->is_ambiguous = false;
    r->tenant = 0;
    r->jobs_out = 0;
    r->jobs_held = (budget_account){.of = NULL};
    r->deadline_ns = UINT64_MAX;
    assert(r->deadline.place == 0);
    r->code = 0;
    r->is_short_of_memory = false;
    r->response_bytes = 0;
    r->compressed = NULL;
    r->record = NULL;
    r->sample = (record_sample){.begin_ns = now_ns, .bucket_index = -1};
    c->references++;
    c->requests++;
    c->unanswered++;
    service_loop *counters = &l->service->loops[l->index];
    atomic_fetch_add_explicit(&counters->requests, 1, memory_order_relaxed);
    atomic_store_explicit(&counters->last_request_ns, now_ns, memory_order_relaxed);
    return r;
}

status request_find_model(const request *r, const model **out)
{
    const route *at = &r->route;
    repository *models = request_service(r)->models;
    if (at->label_bytes > 0)
        return repository_find_label(models, at->name, at->name_bytes, at->label, at->label_bytes,
                                     out);
    return repository_find(models, at->name, at->name_bytes, at->version, out);
}

void request_release_jobs(request *r)
{
    /* The first one's memory holds the list: it goes last. */
    while (r->infer.job_count > 0)
        job_pool_release(&r->loop->jobs, r->infer.jobs[--r->infer.job_count]);
}

/* Nobody uses it: everything goes back where it came from. */
static void release(request *r)
{
    request_loop *l = r->loop;
    assert(r->jobs_out == 0 && r->deadline.place == 0 && r->stream == NULL);
    request_release_jobs(r);
    if (r->holds_model)
        model_release(r->infer.model);
    if (r->language != NULL)
        request_loop_release_language(l, r->language);
    if (r->kept_body != NULL)
        r->connection->transport->drop_body(r);
    free(r->compressed);
    r->compressed = NULL;
    budget_return(&r->jobs_held);
    access_table_release(r->access);
    if (r->unpacked != NULL) {
        offload_pool_free(request_service(r)->helpers, r->unpacked, r->unpacked_capacity);
        budget_subtract(&r->connection->held, r->unpacked_capacity);
    }
    request_connection_release(r->connection);
    r->connection = NULL;
    r->next = l->idle;
    l->idle = r;
}

void request_advance(request *r, life_event event, uint64_t now_ns)
{
    if (life_advance(&r->life, event, now_ns) == LIFE_RELEASED)
        release(r);
}

void request_run(request *r, request_handler handle)
{
    handle(r);
    if (r->resume == NULL) {
        assert(request_has_ended(r));
        request_advance(r, LIFE_WORK_DONE, clock_now_ns());
    }
}

void request_cancel(request *r)
{
    request_handler on_cancel = r->on_cancel;
    r->on_cancel = NULL;
    if (on_cancel != NULL)
        on_cancel(r);
    if (r->jobs_out == 0)
        return;
    for (int i = 0; i < r->infer.job_count; i++)
        atomic_store_explicit(&r->infer.jobs[i]->is_cancelled, true, memory_order_relaxed);
    scheduler_nudge(request_service(r)->work);
}

void request_end(request *r, life_event reason)
{
    assert(reason < LIFE_REASON_COUNT);
    request_advance(r, reason, clock_now_ns());
    r->connection->unanswered--;
    deadlines_remove(&r->loop->deadlines, &r->deadline);
    if (r->connection->waiting == r)
        r->connection->waiting = NULL;
    request_cancel(r);
}

static size_t jobs_bytes(const request *r)
{
    size_t bytes = 0;
    for (int i = 0; i < r->infer.job_count; i++)
        bytes += arena_held_bytes(&r->infer.jobs[i]->memory);
    return bytes;
}

status request_hold_jobs(request *r)
{
    size_t bytes = jobs_bytes(r);
    if (bytes < LARGE_JOBS_BYTES)
        return STATUS_OK;
    budget_lend(&r->connection->held, &r->jobs_held);
    return budget_add(&r->jobs_held, bytes) == BUDGET_GRANTED
               ? STATUS_OK
               : status_fail(STATUS_UNAVAILABLE, "there is no room for the request's tensors now");
}

size_t request_count_response(request *r)
{
    size_t bytes = r->response_bytes;
    if (bytes < LARGE_RESPONSE_BYTES || r->code != 200)
        return bytes;
    budget_return(&r->jobs_held);
    size_t jobs = jobs_bytes(r);
    return jobs > bytes ? jobs : bytes;
}

void request_stream_closed(request *r)
{
    request_connection *c = r->connection;
    service *s = request_service(r);
    assert(r->stream != NULL);
    r->stream = NULL;
    if (!request_has_ended(r)) {
        r->code = 499;
        request_end(r, LIFE_CLIENT_GONE);
        r->sample.code = r->code;
        record_request(s->recorder, r->record, r->loop->index, &r->sample, clock_now_ns());
    }
    c->requests--;
    atomic_fetch_sub_explicit(&s->loops[r->loop->index].requests, 1, memory_order_relaxed);
    request_advance(r, LIFE_STREAM_CLOSED, clock_now_ns());
}

/* What it waited for is done. */
static void resume(request *r)
{
    request_handler handle = r->resume;
    r->resume = NULL;
    request_run(r, handle);
}

void request_due(request *r, request_handler handle, uint64_t due_ns)
{
    deadlines_remove(&r->loop->deadlines, &r->deadline);
    r->resume = r->on_due = handle;
    if (handle != NULL)
        deadlines_add(&r->loop->deadlines, &r->deadline, due_ns);
}

/* On a worker's thread. */
static void on_job_done(job *j)
{
    request_loop *l = j->home;
    if (mailbox_post(&l->returned, &j->node))
        request_loop_wake(l); /* else whoever found the box empty woke it */
}

void request_submit(request *r, request_handler resume_with)
{
    request_connection *c = r->connection;
    infer_request *q = &r->infer;
    assert(q->job_count > 0 && r->jobs_out == 0);
    r->resume = resume_with;
    r->jobs_out = q->job_count;
    c->jobs += q->job_count;
    if (r->deadline_ns != UINT64_MAX)
        deadlines_add(&r->loop->deadlines, &r->deadline, r->deadline_ns);
    c->transport->watch(r);
    request_advance(r, LIFE_SUBMIT, r->sample.stage_ns[STAGE_ADMIT]);
    for (int i = 0; i < q->job_count; i++) {
        job *j = q->jobs[i];
        j->on_done = on_job_done;
        j->home = r->loop;
        j->owner = r;
        j->tag = r->serial;
        memcpy(j->stage_ns, r->sample.stage_ns, (STAGE_ADMIT + 1) * sizeof(j->stage_ns[0]));
        scheduler_submit(request_service(r)->work, j);
    }
}

static void take_job_home(job *j)
{
    request *r = j->owner;
    assert(j->tag == r->serial && r->jobs_out > 0);
    r->connection->jobs--;
    if (--r->jobs_out == 0)
        resume(r);
}

void request_take_returned(request_loop *l)
{
    for (mailbox_node *n = mailbox_take_all(&l->returned), *next; n != NULL; n = next) {
        next = n->next;
        take_job_home((job *)n);
    }
    for (mailbox_node *n = mailbox_take_all(&l->messages), *next; n != NULL; n = next) {
        next = n->next;
        resume(((request_message *)n)->request);
    }
}

bool request_has_returned(const request_loop *l)
{
    return !mailbox_is_empty(&l->returned) || !mailbox_is_empty(&l->messages);
}

void request_post(request_message *m)
{
    request_loop *l = m->request->loop;
    if (mailbox_post(&l->messages, &m->node))
        request_loop_wake(l);
}

void request_end_all(request_loop *l)
{
    for (int i = 0; i < l->request_count; i++) {
        if (l->requests[i]->connection != NULL && !request_has_ended(l->requests[i]))
            request_end(l->requests[i], LIFE_SHUTDOWN);
    }
}

/* Jobs go to the batcher and always come back; requests may be gone by then. A ticket joins the
 * two: it belongs to the loop, lives until its last job is home, and knows whether anybody still
 * waits (DESIGN, decision 10). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "server/http/edge.h"

ticket *ticket_take(loop *l, exchange *e)
{
    ticket *t = l->free_tickets;
    if (t != NULL) {
        l->free_tickets = t->next;
    } else {
        t = calloc(1, sizeof(*t));
        if (t == NULL)
            return NULL;
        t->loop = l;
        t->deadline_at = SIZE_MAX;
    }
    t->generation++;
    t->exchange = e;
    t->connection = e->connection;
    t->connection->references++;
    t->jobs_waiting = 0;
    t->is_cancelled = false;
    t->deadline_ns = UINT64_MAX;
    e->ticket = t;
    return t;
}

job *ticket_take_job(void *context)
{
    ticket *t = context;
    job *j = job_pool_acquire(&t->loop->jobs);
    if (j == NULL)
        return NULL;
    j->on_done = loop_on_job_done;
    j->home = t->loop;
    j->owner = t;
    j->tag = t->generation;
    j->model = t->request.model;
    model_retain(j->model);
    j->rows = j->length = -1;
    return j;
}

static void heap_swap(loop *l, size_t a, size_t b)
{
    ticket *t = l->deadlines[a];
    l->deadlines[a] = l->deadlines[b];
    l->deadlines[b] = t;
    l->deadlines[a]->deadline_at = a;
    l->deadlines[b]->deadline_at = b;
}

static void heap_settle(loop *l, size_t at)
{
    for (; at > 0; at = (at - 1) / 2) {
        size_t up = (at - 1) / 2;
        if (l->deadlines[up]->deadline_ns <= l->deadlines[at]->deadline_ns)
            break;
        heap_swap(l, up, at);
    }
    for (;;) {
        size_t least = at, child = 2 * at + 1;
        for (size_t i = child; i < child + 2 && i < l->deadline_count; i++) {
            if (l->deadlines[i]->deadline_ns < l->deadlines[least]->deadline_ns)
                least = i;
        }
        if (least == at)
            return;
        heap_swap(l, at, least);
        at = least;
    }
}

static void forget_deadline(ticket *t)
{
    loop *l = t->loop;
    size_t at = t->deadline_at;
    if (at == SIZE_MAX)
        return;
    size_t last = --l->deadline_count;
    if (at != last) {
        heap_swap(l, at, last);
        heap_settle(l, at);
    }
    t->deadline_at = SIZE_MAX;
    if (l->deadline_count == 0 && h2o_timeout_is_linked(&l->tick_entry))
        h2o_timeout_unlink(&l->tick_entry);
}

void ticket_set_deadline(ticket *t, uint64_t deadline_ns)
{
    loop *l = t->loop;
    assert(t->deadline_at == SIZE_MAX);
    t->deadline_ns = deadline_ns;
    if (l->deadline_count == l->deadline_capacity) {
        size_t larger = l->deadline_capacity ? l->deadline_capacity * 2 : 64;
        ticket **moved = realloc(l->deadlines, larger * sizeof(*moved));
        if (moved == NULL)
            return; /* the batcher still knows the deadline */
        l->deadlines = moved;
        l->deadline_capacity = larger;
    }
    t->deadline_at = l->deadline_count++;
    l->deadlines[t->deadline_at] = t;
    heap_settle(l, t->deadline_at);
    if (!h2o_timeout_is_linked(&l->tick_entry))
        h2o_timeout_link(l->context.loop, &l->tick, &l->tick_entry);
}

static void release(ticket *t)
{
    loop *l = t->loop;
    assert(t->jobs_waiting == 0 && t->exchange == NULL);
    forget_deadline(t);
    infer_request *r = &t->request;
    for (int i = 0; i < r->job_count; i++)
        job_pool_release(&l->jobs, r->jobs[i]);
    if (r->jobs != &t->one_job)
        free(r->jobs);
    model_release(r->model);
    free(t->unpacked);
    t->unpacked = NULL;
    if (t->body != NULL)
        h2o_buffer_dispose(&t->body);
    t->body = NULL;
    connection_release(t->connection);
    t->connection = NULL;
    t->next = l->free_tickets;
    l->free_tickets = t;
}

void ticket_submit(ticket *t)
{
    infer_request *r = &t->request;
    exchange *e = t->exchange;
    if (e->request->version < 0x200)
        connection_watch(t->connection, e);
    t->jobs_waiting = r->job_count;
    t->connection->jobs += r->job_count;
    if (t->deadline_ns != UINT64_MAX)
        ticket_set_deadline(t, t->deadline_ns);
    uint64_t now_ns = clock_now_ns();
    for (int i = 0; i < r->job_count; i++) {
        job *j = r->jobs[i];
        j->deadline_ns = t->deadline_ns;
        j->priority = r->priority;
        memset(j->output_wanted, 0, (size_t)r->model->output_count * sizeof(j->output_wanted[0]));
        for (int o = 0; o < r->output_count; o++)
            j->output_wanted[r->outputs[o].index] = true;
        j->stage_ns[STAGE_ACCEPT] = e->accept_ns;
        j->stage_ns[STAGE_PARSE] = e->stage_ns[STAGE_PARSE];
        j->stage_ns[STAGE_ADMIT] = now_ns;
        scheduler_submit(t->loop->server->work, j);
    }
}

void ticket_abandon(ticket *t)
{
    exchange *e = t->exchange;
    t->exchange = NULL;
    if (e != NULL) {
        e->ticket = NULL;
        if (e->connection->pending == e)
            e->connection->pending = NULL;
    }
    forget_deadline(t);
    if (t->jobs_waiting == 0) {
        release(t);
        return;
    }
    t->is_cancelled = true;
    for (int i = 0; i < t->request.job_count; i++)
        atomic_store_explicit(&t->request.jobs[i]->is_cancelled, true, memory_order_relaxed);
    scheduler_nudge(t->loop->server->work);
}

void ticket_on_job(job *j)
{
    ticket *t = j->owner;
    assert(j->tag == t->generation && t->jobs_waiting > 0);
    t->connection->jobs--;
    if (--t->jobs_waiting > 0)
        return;
    forget_deadline(t);
    if (t->exchange == NULL) {
        release(t);
        return;
    }
    if (t->connection->pending == t->exchange)
        t->connection->pending = NULL;
    respond_infer(t->exchange, &t->request);
}

/* Over HTTP/1 (over HTTP/2 they are copied, since the stream may go any time) the tensors may lie
 * in the connection's input, which the next request would overwrite: the ticket takes it and the
 * connection ends with this answer. */
static void take_input(ticket *t)
{
    h2o_req_t *request = t->exchange->request;
    if (!t->request.borrows_body || t->unpacked != NULL || request->version >= 0x200)
        return;
    h2o_socket_t *socket = t->connection->socket;
    request->http1_is_persistent = 0;
    t->body = socket->input;
    h2o_buffer_init(&socket->input, &h2o_socket_buffer_prototype);
}

void ticket_on_tick(h2o_timeout_entry_t *entry)
{
    loop *l = H2O_STRUCT_FROM_MEMBER(loop, tick_entry, entry);
    uint64_t now_ns = clock_now_ns();
    while (l->deadline_count > 0 && l->deadlines[0]->deadline_ns <= now_ns) {
        ticket *t = l->deadlines[0];
        forget_deadline(t);
        exchange *e = t->exchange;
        if (e == NULL)
            continue;
        take_input(t);
        ticket_abandon(t); /* first: answering may end the exchange */
        respond_status(e, STATUS_DEADLINE_EXCEEDED, "the deadline has passed");
    }
    if (l->deadline_count > 0 && !h2o_timeout_is_linked(entry))
        h2o_timeout_link(l->context.loop, &l->tick, entry);
}

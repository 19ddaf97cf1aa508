#include "loadtest/run/worker.h"

#include "base/clock.h"
#include "loadtest/run/recording.h"
#include "loadtest/wire/connection.h"
#include "loadtest/wire/memory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000u
#define PREPARE_NS (3000 * (uint64_t)MS)
#define RETRY_NS_MIN (10 * (uint64_t)MS)
#define RETRY_DOUBLINGS_MAX 6
#define ATTEMPTS_MAX 3
#define SPIN_NS_COUNTED 50000
#define SHORT_LIVED_MAX 8
#define WAIT_NS_MAX (50 * (uint64_t)MS) /* delay until *stop is noticed */
#define ARRIVALS_AT_ONCE 64             /* before responses are read again */

struct worker {
    worker_plan plan;
    network *network;
    connection *connections; /* plan.connections_max of them */
    unsigned keep;           /* connections kept open; 0 if the server closes after each response */
    unsigned short_lived;    /* connections in a row that carried one response */
    uint64_t check_ns;       /* when to check for connections to reopen */
    connection *room_first, *room_last, *dirty;
    request *live_first, *live_last; /* by deadline */
    request *queue_first, *queue_last;
    unsigned queue_count;
    request *free;
    arrival arrival;
    uint64_t next_offset_ns, arrival_index;
    bool arrivals_left;
    uint64_t start_ns;
    recording recording;
    unsigned idle_slots; /* closed loop: to be filled */
    uint64_t slots_resume_ns;
    size_t next_payload;
    const char *protocol;
    uint64_t run_started_ns, cpu_started_ns;
    result result;
    worker_live live;
};

static void add(_Atomic uint64_t *to, uint64_t n)
{
    atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* --- connections with room, in turn --- */

static void room_remove(worker *w, connection *c)
{
    if (!c->in_room)
        return;
    if (c->room_previous != NULL)
        c->room_previous->room_next = c->room_next;
    else
        w->room_first = c->room_next;
    if (c->room_next != NULL)
        c->room_next->room_previous = c->room_previous;
    else
        w->room_last = c->room_previous;
    c->room_next = c->room_previous = NULL;
    c->in_room = false;
}

static void room_append(worker *w, connection *c)
{
    assert(!c->in_room);
    c->room_previous = w->room_last;
    c->room_next = NULL;
    if (w->room_last != NULL)
        w->room_last->room_next = c;
    else
        w->room_first = c;
    w->room_last = c;
    c->in_room = true;
}

static connection *connection_with_room(worker *w)
{
    while (w->room_first != NULL) {
        if (connection_has_room(w->room_first))
            return w->room_first;
        room_remove(w, w->room_first);
    }
    return NULL;
}

/* --- requests --- */

static request *take_request(worker *w)
{
    request *r = w->free;
    if (r == NULL)
        return memory_allocate(1, sizeof *r);
    w->free = r->next;
    *r = (request){0};
    return r;
}

static void live_append(worker *w, request *r)
{
    r->previous = w->live_last;
    if (w->live_last != NULL)
        w->live_last->next = r;
    else
        w->live_first = r;
    w->live_last = r;
    add(&w->live.in_flight, 1);
}

static void queue_remove(worker *w, request *r)
{
    request **link = &w->queue_first, *previous = NULL;
    while (*link != r) {
        previous = *link;
        link = &previous->queue_next;
    }
    *link = r->queue_next;
    if (w->queue_last == r)
        w->queue_last = previous;
    r->queue_next = NULL;
    r->queued = false;
    w->queue_count--;
}

static void queue_append(worker *w, request *r)
{
    r->queued = true;
    r->queue_next = NULL;
    if (w->queue_last != NULL)
        w->queue_last->queue_next = r;
    else
        w->queue_first = r;
    w->queue_last = r;
    w->queue_count++;
}

static void retire(worker *w, request *r)
{
    assert(!r->queued && r->connection == NULL);
    if (r->previous != NULL)
        r->previous->next = r->next;
    else
        w->live_first = r->next;
    if (r->next != NULL)
        r->next->previous = r->previous;
    else
        w->live_last = r->previous;
    r->next = w->free;
    w->free = r;
    add(&w->live.in_flight, (uint64_t)-1);
    if (w->plan.arrivals == NULL)
        w->idle_slots++;
}

static void fail(worker *w, request *r, request_error why, const char *reason, uint64_t now_ns)
{
    recording_failed(&w->recording, r, why, reason, now_ns);
    retire(w, r);
    if (why == REQUEST_CONNECT && w->plan.arrivals == NULL)
        w->slots_resume_ns = now_ns + RETRY_NS_MIN;
}

static request_error error_of_code(int code)
{
    return code == 429 || code == 503 ? REQUEST_REFUSED
           : code == 504              ? REQUEST_DEADLINE
                                      : REQUEST_HTTP_OTHER;
}

static void on_response(void *owner, connection *c, request *r, const response *a)
{
    worker *w = owner;
    uint64_t now_ns = network_arrived_ns(w->network);
    (void)c;
    char reason[RESULT_REASON_BYTES];
    if (now_ns < r->sent_ns) /* the wall clock, which stamps arrivals, was set meanwhile */
        now_ns = r->sent_ns;
    if (r->measured && a->code < RESULT_CODES)
        w->result.codes[a->code]++;
    if (a->code < 200 || a->code > 299) {
        snprintf(reason, sizeof reason, "%d: %.*s", a->code,
                 (int)(a->body.bytes < 150 ? a->body.bytes : 150),
                 a->body.data ? a->body.data : "");
        fail(w, r, error_of_code(a->code), reason, now_ns);
        return;
    }
    if (w->plan.expect != NULL && r->measured) {
        w->result.verified++;
        if (!expect_check(w->plan.expect, r->payload->index, a, reason, sizeof reason)) {
            fail(w, r, REQUEST_WRONG_RESPONSE, reason, now_ns);
            return;
        }
    }
    recording_succeeded(&w->recording, r, a, now_ns);
    retire(w, r);
}

static void on_lost(void *owner, connection *c, request *r, request_error why, bool unprocessed,
                    const char *reason)
{
    worker *w = owner;
    (void)c;
    if (unprocessed && r->attempts < ATTEMPTS_MAX) {
        w->result.retries++;
        queue_append(w, r);
        return;
    }
    fail(w, r, why, reason, clock_now_ns());
}

static void on_room(void *owner, connection *c)
{
    worker *w = owner;
    if (c->responses == 0 && c->failures != 0)
        c->failures = 0;
    w->protocol = c->protocol->name;
    if (!c->in_room && connection_has_room(c))
        room_append(w, c);
}

static bool any_connection(const worker *w)
{
    for (unsigned i = 0; i < w->plan.connections_max; i++)
        if (w->connections[i].usable || w->connections[i].opening)
            return true;
    return false;
}

static void on_closed(void *owner, connection *c, bool opened, const char *reason)
{
    worker *w = owner;
    uint64_t now_ns = clock_now_ns();
    room_remove(w, c);
    if (opened) {
        w->result.connections_lost++;
        w->short_lived = c->responses == 1 ? w->short_lived + 1 : 0;
        if (w->short_lived == SHORT_LIVED_MAX)
            w->keep = 0; /* idle connections would only occupy the server's threads */
        c->retry_ns = w->check_ns = now_ns;
        return;
    }
    unsigned doublings = c->failures < RETRY_DOUBLINGS_MAX ? c->failures : RETRY_DOUBLINGS_MAX;
    c->failures++;
    c->retry_ns = now_ns + (RETRY_NS_MIN << doublings);
    w->check_ns = earlier(w->check_ns, c->retry_ns);
    if (any_connection(w))
        return;
    /* No connection is left: fail the requests that wait for one. */
    while (w->queue_first != NULL) {
        request *r = w->queue_first;
        queue_remove(w, r);
        fail(w, r, REQUEST_CONNECT, reason, now_ns);
    }
}

static const connection_events events_of_connection = {on_room, on_response, on_lost, on_closed};

/* --- sending --- */

static void open_connection(worker *w, connection *c)
{
    status s = connection_open(c, w->network, w->plan.target);
    if (s)
        on_closed(w, c, false, status_message());
    else
        w->result.connections_opened++;
}

/* Keeps `connections` open, and more where requests wait for one. */
static void keep_connections(worker *w, uint64_t now_ns)
{
    if (w->queue_count == 0 && now_ns < w->check_ns)
        return;
    w->check_ns = UINT64_MAX;
    unsigned opening = 0;
    for (unsigned i = 0; i < w->plan.connections_max; i++)
        opening += w->connections[i].opening;
    for (unsigned i = 0; i < w->plan.connections_max; i++) {
        connection *c = &w->connections[i];
        if (i >= w->keep && opening >= w->queue_count)
            break;
        if (connection_is_open(c))
            continue;
        if (c->retry_ns > now_ns) {
            w->check_ns = earlier(w->check_ns, c->retry_ns);
            continue;
        }
        open_connection(w, c);
        opening += c->opening;
    }
}

static void send_on(worker *w, connection *c, request *r)
{
    r->sent_ns = clock_now_ns();
    r->attempts++;
    if (!c->dirty) {
        c->dirty = true;
        c->dirty_next = w->dirty;
        w->dirty = c;
    }
    if (r->measured && r->attempts == 1)
        w->result.bytes_sent += r->payload->body_bytes;
    connection_submit(c, r);
    room_remove(w, c); /* to the end of the line */
    if (connection_has_room(c))
        room_append(w, c);
}

static void send_queue(worker *w)
{
    connection *c;
    while (w->queue_first != NULL && (c = connection_with_room(w)) != NULL) {
        request *r = w->queue_first;
        queue_remove(w, r);
        uint64_t before_ns = r->intended_ns;
        send_on(w, c, r);
        if (r->measured && r->attempts == 1 && w->plan.arrivals != NULL)
            histogram_record(&w->result.connection_wait, r->sent_ns - before_ns);
    }
}

static void flush_dirty(worker *w)
{
    while (w->dirty != NULL) {
        connection *c = w->dirty;
        w->dirty = c->dirty_next;
        c->dirty = false;
        if (connection_is_open(c))
            connection_flush(c);
    }
}

static const payload *payload_at(worker *w, uint64_t turn)
{
    const request_source *source = w->plan.source;
    return &source->payloads[turn % source->count];
}

static void make_request(worker *w, uint64_t intended_ns, uint64_t now_ns, const payload *p)
{
    request *r = take_request(w);
    r->intended_ns = intended_ns;
    r->deadline_ns = intended_ns + w->plan.timeout_ns;
    r->payload = p;
    r->measured =
        intended_ns >= w->recording.window_start_ns && intended_ns < w->recording.window_end_ns;
    live_append(w, r);
    recording_sent(&w->recording, r, now_ns);
    connection *c = w->queue_first == NULL ? connection_with_room(w) : NULL;
    if (c != NULL) {
        send_on(w, c, r);
        return;
    }
    queue_append(w, r);
}

/* Moves to this worker's next arrival. */
static void next_arrival(worker *w)
{
    const worker_plan *p = &w->plan;
    do {
        w->arrivals_left = arrival_next(&w->arrival, &w->next_offset_ns);
        w->arrival_index++;
    } while (w->arrivals_left && (w->arrival_index - 1) % p->count != p->index);
}

static void send_arrivals(worker *w)
{
    for (int i = 0; i < ARRIVALS_AT_ONCE && w->arrivals_left; i++) {
        uint64_t now_ns = clock_now_ns(), intended_ns = w->start_ns + w->next_offset_ns;
        if (intended_ns > now_ns)
            return;
        uint64_t index = w->arrival_index - 1;
        if (w->plan.source->one_to_one) /* the i-th time of a trace has the i-th body */
            index = intended_ns >= w->recording.window_start_ns
                        ? w->next_payload++ * w->plan.count + w->plan.index
                        : index;
        make_request(w, intended_ns, now_ns, payload_at(w, index));
        next_arrival(w);
    }
}

static void fill_slots(worker *w, uint64_t now_ns)
{
    if (now_ns >= w->recording.window_end_ns || now_ns < w->slots_resume_ns)
        return;
    while (w->idle_slots > 0) {
        w->idle_slots--;
        uint64_t index = w->next_payload++ * w->plan.count + w->plan.index;
        make_request(w, now_ns, now_ns, payload_at(w, index));
    }
}

static void give_up(worker *w, request *r, uint64_t now_ns)
{
    if (r->queued)
        queue_remove(w, r);
    else if (r->connection != NULL) {
        connection *c = r->connection;
        connection_cancel(c, r);
        if (connection_is_open(c) && !c->dirty) {
            c->dirty = true;
            c->dirty_next = w->dirty;
            w->dirty = c;
        }
        if (connection_has_room(c) && !c->in_room)
            room_append(w, c);
    }
    fail(w, r, REQUEST_TIMEOUT, "no response within the timeout", now_ns);
}

static void expire(worker *w, uint64_t now_ns)
{
    while (w->live_first != NULL && w->live_first->deadline_ns <= now_ns)
        give_up(w, w->live_first, now_ns);
}

static uint64_t wake_time(const worker *w, uint64_t now_ns)
{
    uint64_t until_ns = earlier(now_ns + WAIT_NS_MAX, w->check_ns);
    if (w->arrivals_left) {
        uint64_t intended_ns = w->start_ns + w->next_offset_ns;
        until_ns =
            earlier(until_ns, intended_ns > w->plan.spin_ns ? intended_ns - w->plan.spin_ns : 0);
    }
    if (w->plan.arrivals == NULL && now_ns < w->recording.window_end_ns && w->idle_slots > 0)
        until_ns = earlier(until_ns, w->slots_resume_ns);
    if (w->live_first != NULL)
        until_ns = earlier(until_ns, w->live_first->deadline_ns);
    return until_ns;
}

/* --- life --- */

worker *worker_create(const worker_plan *plan)
{
    assert(plan->connections <= plan->connections_max && plan->connections_max > 0);
    worker *w = memory_allocate(1, sizeof *w);
    w->plan = *plan;
    w->check_ns = UINT64_MAX;
    w->keep = plan->connections;
    w->recording = (recording){.result = &w->result,
                               .live = &w->live,
                               .open_loop = plan->arrivals != NULL,
                               .timeout_ns = plan->timeout_ns,
                               .slo_limit_ns = plan->slo_limit_ns};
    result_init(&w->result, plan->duration_ns);
    w->connections = memory_allocate(plan->connections_max, sizeof *w->connections);
    for (unsigned i = 0; i < plan->connections_max; i++) {
        connection *c = &w->connections[i];
        c->events = &events_of_connection;
        c->owner = w;
        c->head = plan->head;
        c->streams_max = plan->streams_max;
        c->keep_bodies = plan->expect != NULL;
    }
    return w;
}

static void free_list(request *r)
{
    while (r != NULL) {
        request *next = r->next;
        free(r);
        r = next;
    }
}

void worker_destroy(worker *w)
{
    if (w == NULL)
        return;
    free_list(w->free);
    free_list(w->live_first);
    free(w->connections);
    result_dispose(&w->result);
    free(w);
}

status worker_prepare(worker *w)
{
    status s = network_create(&w->network, w->plan.network);
    if (s)
        return s;
    uint64_t give_up_ns = clock_now_ns() + PREPARE_NS, now_ns;
    for (unsigned i = 0; i < w->plan.connections; i++)
        open_connection(w, &w->connections[i]);
    for (;;) {
        unsigned opening = 0;
        for (unsigned i = 0; i < w->plan.connections; i++)
            opening += w->connections[i].opening;
        now_ns = clock_now_ns();
        if (opening == 0 || now_ns >= give_up_ns)
            return STATUS_OK;
        network_wait(w->network, earlier(give_up_ns, now_ns + WAIT_NS_MAX));
    }
}

static void finish(worker *w)
{
    for (const request *r = w->live_first; r != NULL; r = r->next)
        recording_unfinished(&w->recording, r, clock_now_ns());
    for (unsigned i = 0; i < w->plan.connections_max; i++) {
        connection *c = &w->connections[i];
        if (connection_is_open(c))
            connection_close(c);
    }
    network_destroy(w->network);
    w->network = NULL;
    double wall = (double)(clock_now_ns() - w->run_started_ns);
    double cpu = (double)(clock_thread_cpu_ns() - w->cpu_started_ns);
    w->result.cpu_s = cpu / 1e9;
    /* Polling before an intended time is not load. */
    w->result.loop_busy = wall > 0 && w->plan.spin_ns <= SPIN_NS_COUNTED ? cpu / wall : 0;
}

void worker_run(worker *w, uint64_t start_ns, const _Atomic int *stop)
{
    const worker_plan *p = &w->plan;
    w->start_ns = start_ns;
    w->recording.window_start_ns = start_ns + p->warm_up_ns;
    w->recording.window_end_ns = w->recording.window_start_ns + p->duration_ns;
    w->run_started_ns = clock_now_ns();
    w->cpu_started_ns = clock_thread_cpu_ns();
    if (p->arrivals != NULL) {
        arrival_init(&w->arrival, p->arrivals, p->seed);
        next_arrival(w);
    } else {
        w->idle_slots = p->concurrency;
        w->slots_resume_ns = start_ns;
    }
    for (;;) {
        uint64_t now_ns = clock_now_ns();
        if (p->arrivals != NULL)
            send_arrivals(w);
        else
            fill_slots(w, now_ns);
        send_queue(w);
        keep_connections(w, now_ns);
        flush_dirty(w);
        expire(w, now_ns);
        flush_dirty(w);
        atomic_store_explicit(&w->live.waiting, w->queue_count, memory_order_relaxed);
        bool over = p->arrivals != NULL ? !w->arrivals_left : now_ns >= w->recording.window_end_ns;
        if ((over && w->live_first == NULL) || atomic_load_explicit(stop, memory_order_relaxed))
            break;
        network_wait(w->network, wake_time(w, clock_now_ns()));
    }
    finish(w);
}

const worker_live *worker_live_view(const worker *w)
{
    return &w->live;
}

const result *worker_result(const worker *w)
{
    return &w->result;
}

const char *worker_protocol(const worker *w)
{
    return w->protocol;
}

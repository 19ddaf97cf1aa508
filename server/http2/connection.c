#include "server/http2/connection.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/connection/accept.h"
#include "server/connection/log_request.h"
#include "server/connection/relief.h"
#include "server/http2/internal.h"
#include "server/options/capacity.h"
#include "server/request/respond.h"

#define DISCARD_BYTES_MAX (1 << 20)      /* of what comes after the last GOAWAY */
#define WRITE_BYTES 65536                /* written at once */
#define OUT_KEEP_BYTES (2 * WRITE_BYTES) /* of a buffer that waits to be used again */

void http2_shared_start(http2_shared *shared, h2o_context_t *context, struct offload_pool *helpers)
{
    *shared = (http2_shared){.context = context, .exchanges = {.helpers = helpers}};
}

static const server_options *options_of(const http2_connection *h)
{
    return h->base->base.loop->service->options;
}

static http2_connection *connection_state(const h2o_socket_t *socket)
{
    return connection_of(socket)->state;
}

static void dispose(connection *c);

static void close_now(http2_connection *h)
{
    connection *c = h->base;
    dispose(c);
    h2o_socket_close(c->socket);
}

static void on_written(h2o_socket_t *socket, const char *error);
static void go_on(turn_share *share);

/* A connection has a buffer only while it writes. */
static void take_buffer(http2_connection *h)
{
    http2_shared *shared = h->shared;
    if (h->out.data == NULL && shared->spare_count > 0)
        h->out = shared->spare[--shared->spare_count];
    text_buffer_reset(&h->out, OUT_KEEP_BYTES);
}

static void give_buffer(http2_connection *h)
{
    http2_shared *shared = h->shared;
    if (shared->spare_count < HTTP2_SPARE_MAX && h->out.capacity <= OUT_KEEP_BYTES)
        shared->spare[shared->spare_count++] = h->out;
    else
        text_buffer_dispose(&h->out);
    h->out = (text_buffer){0};
}

static void begin_waiting(http2_connection *h);

static void on_discarded(h2o_socket_t *socket, const char *error)
{
    http2_connection *h = connection_state(socket);
    if (h == NULL)
        return;
    h->discarded_bytes += socket->input->size;
    h2o_buffer_consume(&socket->input, socket->input->size);
    if (error != NULL || h->discarded_bytes > DISCARD_BYTES_MAX)
        close_now(h);
}

/* All is said. What the peer still sends is read, else the kernel would reset the connection, and
 * the peer might not see the GOAWAY. check.c ends the wait. */
static void linger(http2_connection *h)
{
    connection *c = h->base;
    if (c->socket->ssl != NULL || shutdown(c->fd, SHUT_WR) != 0) {
        close_now(h);
        return;
    }
    h->linger_ns = h->now_ns;
    h->is_writing = true; /* nothing is flushed any more */
    h->is_paused = false;
    h2o_buffer_consume(&c->socket->input, c->socket->input->size);
    h2o_socket_read_start(c->socket, on_discarded);
}

/* Writes what there is, one write at a time. May close the connection. */
static void flush_output(http2_connection *h)
{
    connection *c = h->base;
    if (h->is_writing)
        return;
    if (!turn_may_write(&c->all->turns, &c->share)) {
        connection_wait_turn(c, go_on);
        return;
    }
    h->now_ns = clock_now_ns();
    take_buffer(h);
    if (http2_session_write(h->session, &h->out, WRITE_BYTES)) {
        log_debug("server", "HTTP/2 connection closed: %s", status_message());
        connection_count_closure(c, CLOSURE_MEMORY);
        close_now(h);
        return;
    }
    if (h->out.bytes > 0) {
        h2o_iovec_t piece = h2o_iovec_init(h->out.data, h->out.bytes);
        h->is_writing = true;
        turn_count_written(&c->all->turns, &c->share, h->out.bytes);
        h2o_socket_write(c->socket, &piece, 1, on_written);
        begin_waiting(h);
        return;
    }
    give_buffer(h);
    begin_waiting(h);
    if (h->is_closing || http2_session_is_finished(h->session))
        linger(h);
}

void http2_connection_count(http2_connection *h, size_t more)
{
    size_t held = http2_session_held_bytes(h->session) + more;
    if (held > h->session_held)
        budget_force(&h->base->base.held, held - h->session_held);
    else
        budget_subtract(&h->base->base.held, h->session_held - held);
    h->session_held = held;
}

static void on_written(h2o_socket_t *socket, const char *error)
{
    http2_connection *h = connection_state(socket);
    if (h == NULL)
        return;
    h->is_writing = false;
    rate_window_end(&h->write_rate);
    if (error != NULL)
        close_now(h);
    else
        flush_output(h);
}

static void on_flush(h2o_timeout_entry_t *entry)
{
    flush_output(H2O_STRUCT_FROM_MEMBER(http2_connection, flush, entry));
}

void http2_connection_flush_later(http2_connection *h)
{
    h2o_context_t *context = h->shared->context;
    if (!h->is_writing && !h->is_reading && !h2o_timeout_is_linked(&h->flush))
        h2o_timeout_link(context->loop, &context->zero_timeout, &h->flush);
}

void http2_connection_stop_running(http2_exchange *x)
{
    x->on->running -= x->is_running;
    x->on->base->base.worked_bytes -= x->worked_bytes;
    x->worked_bytes = 0;
    x->is_running = false;
}

void http2_connection_respond(http2_exchange *x, int code, const http2_piece *pieces, int count)
{
    http2_connection *h = x->on;
    x->is_arriving = false;
    x->rate = (rate_window){0};
    for (int i = 0; i < count; i++)
        x->response_bytes += pieces[i].bytes;
    x->response_held = x->request != NULL ? request_count_response(x->request) : 0;
    h->response_held += x->response_held;
    if (x->response_held > h->response_held_max)
        h->response_held_max = x->response_held;
    http2_connection_stop_running(x);
    budget_force(&h->base->base.held, x->response_held);
    if (http2_session_respond(h->session, x->stream, code, x->fields, x->field_count, pieces, count,
                              x->trailers, x->trailer_count))
        log_debug("server", "%s", status_message());
    http2_connection_flush_later(h);
}

/* Without a request of ours. */
static void refuse(http2_exchange *x, int code, const char *body)
{
    x->fields[0] = (http2_field){"content-type", "application/json", 12, 16};
    x->field_count = 1;
    http2_piece piece = {body, strlen(body)};
    http2_connection_respond(x, code, &piece, 1);
}

static request *begin(http2_exchange *x)
{
    const http2_head *head = x->head;
    arrival a = {.stream = x,
                 .method = {head->method.value, head->method.value_bytes},
                 .path = {head->path.value, head->path.value_bytes},
                 .body = {x->body_bytes > 0 ? x->body : NULL, x->body_bytes},
                 .can_borrow_body = true,
                 .begun_ns = x->begun_ns};
    connection *c = x->on->base;
    request *r = accept_request(c, &a);
    if (r == NULL || !turn_take_request(&c->all->turns, &c->share, r->life.since_ns[LIFE_RECEIVED]))
        http2_session_pause(x->on->session);
    x->request = r;
    if (r == NULL && x->parent != NULL)
        http2_call_refuse(x);
    else if (r == NULL)
        refuse(x, 503, ACCEPT_TOO_MANY);
    return r;
}

void http2_connection_run(http2_exchange *x)
{
    x->is_running = true;
    x->on->running++;
    x->worked_bytes = x->body_held;
    x->on->base->base.worked_bytes += x->worked_bytes;
    request *r = begin(x);
    if (r != NULL)
        accept_run(r, (request_text){x->head->method.value, x->head->method.value_bytes});
}

bool http2_connection_may_run(const http2_connection *h)
{
    size_t most = options_of(h)->limits.response_bytes_max;
    return h->response_held == 0 ||
           (h->response_held <= most &&
            (size_t)h->running * h->response_held_max <= most - h->response_held);
}

/* The request is complete. */
static void run_in_turn(http2_exchange *x)
{
    http2_connection *h = x->on;
    x->is_arriving = false;
    if (h->waiting_first == NULL && http2_connection_may_run(h)) {
        http2_connection_run(x);
        return;
    }
    x->is_waiting = true;
    x->next = NULL;
    if (h->waiting_first == NULL)
        h->waiting_first = x;
    else
        h->waiting_last->next = x;
    h->waiting_last = x;
}

static void begin_waiting(http2_connection *h)
{
    while (h->waiting_first != NULL && !h->is_closing && http2_connection_may_run(h)) {
        http2_exchange *x = h->waiting_first;
        h->waiting_first = x->next;
        x->is_waiting = false;
        http2_connection_run(x);
    }
}

/* Its stream is closed. */
static void stop_waiting(http2_exchange *x)
{
    http2_exchange *before = NULL, **at = &x->on->waiting_first;
    for (; *at != x; at = &before->next)
        before = *at;
    *at = x->next;
    if (x->on->waiting_last == x)
        x->on->waiting_last = before;
}

/* `bytes` of it were refused. */
static void refuse_body(http2_exchange *x, size_t bytes)
{
    connections_relieve_soon(x->on->base, bytes);
    http2_connection_respond_early(x, http2_respond_no_memory);
}

void http2_connection_respond_early(http2_exchange *x, request_handler handle)
{
    x->is_arriving = false;
    http2_exchange_drop_body(&x->on->shared->exchanges, x, &x->on->base->base.held);
    request *r = begin(x);
    if (r != NULL)
        request_run(r, handle);
}

static http2_exchange *attach(http2_connection *h, http2_stream *stream, const http2_head *head)
{
    http2_exchange *x = http2_exchange_acquire(&h->shared->exchanges);
    if (x == NULL)
        return NULL;
    x->on = h;
    x->stream = stream;
    x->head = head;
    x->begun_ns = h->now_ns;
    http2_stream_set_data(stream, x);
    return x;
}

static void on_request(void *owner, http2_stream *stream, const http2_head *head, bool has_body)
{
    http2_connection *h = owner;
    http2_exchange *x = attach(h, stream, head);
    if (x == NULL) {
        http2_session_reset(h->session, stream, HTTP2_REFUSED_STREAM);
        return;
    }
    if (head->is_too_large) {
        http2_connection_respond_early(x, http2_respond_large_head);
    } else if (http2_call_is_streamed(head)) {
        http2_call_begin(x, has_body);
    } else if (!has_body) {
        run_in_turn(x);
    } else if (head->content_length > 0 &&
               (uint64_t)head->content_length > options_of(h)->limits.body_bytes_max) {
        http2_connection_respond_early(x, http2_respond_large_body);
    } else if (head->content_length > UNAUTHENTICATED_BODY_BYTES_MAX && !http2_may_send(x)) {
        http2_connection_respond_early(x, http2_respond_unauthenticated);
    } else if (head->content_length > 0 &&
               budget_ask(&h->base->base.held, (size_t)head->content_length) != BUDGET_GRANTED) {
        refuse_body(x, (size_t)head->content_length);
    } else {
        x->is_arriving = true;
    }
}

static void on_data(void *owner, http2_stream *stream, const void *data, size_t bytes)
{
    http2_connection *h = owner;
    http2_exchange *x = http2_stream_data(stream);
    if (x == NULL)
        return;
    h->received_bytes += bytes;
    if (x->call != NULL) {
        http2_call_data(x, data, bytes);
        return;
    }
    if (!http2_may_add(x, bytes)) {
        http2_connection_respond_early(x, http2_respond_unauthenticated);
        return;
    }
    status failure = http2_exchange_add(x, data, bytes, x->head->content_length,
                                        options_of(h)->limits.body_bytes_max, &h->base->base.held);
    if (failure == STATUS_TOO_LARGE)
        http2_connection_respond_early(x, http2_respond_large_body);
    else if (failure)
        refuse_body(x, x->body_held + bytes);
    else
        http2_session_consume(h->session, stream, bytes);
}

static void on_end(void *owner, http2_stream *stream)
{
    http2_exchange *x = http2_stream_data(stream);
    (void)owner;
    if (x != NULL && x->call != NULL)
        http2_call_end(x);
    else if (x != NULL)
        run_in_turn(x);
}

static void on_sent(void *owner, http2_stream *stream)
{
    http2_exchange *x = http2_stream_data(stream);
    (void)owner;
    if (x != NULL && x->call != NULL)
        http2_call_sent(x);
}

static void on_close(void *owner, http2_stream *stream, bool was_answered)
{
    http2_connection *h = owner;
    http2_exchange *x = http2_stream_data(stream);
    if (x == NULL)
        return;
    h->busy_ns = h->now_ns;
    if (was_answered)
        connection_note_progress(h->base, h->busy_ns);
    if (x->request != NULL) {
        log_request(x->request, (request_text){x->head->method.value, x->head->method.value_bytes},
                    (request_text){x->head->path.value, x->head->path.value_bytes}, "h2");
        /* Jobs or helpers may still read the body: the request keeps it until they are done. */
        if (request_needs_body(x->request) && x->request->kept_body == NULL)
            x->request->connection->transport->keep_body(x->request);
        request_stream_closed(x->request);
    }
    http2_connection_stop_running(x);
    if (x->is_waiting)
        stop_waiting(x);
    if (x->call != NULL)
        http2_call_close(x);
    h->response_held -= x->response_held;
    budget_subtract(&h->base->base.held, x->body_held + x->response_held);
    http2_exchange_release(&h->shared->exchanges, x);
}

static const http2_handler handler = {on_request, on_data, on_end, on_sent, on_close};

static void read_input(http2_connection *h)
{
    h2o_socket_t *socket = h->base->socket;
    size_t taken;
    if (socket->input->size == 0)
        return;
    h->is_reading = true;
    h->now_ns = clock_now_ns();
    status failure = http2_session_read(h->session, socket->input->bytes, socket->input->size,
                                        h->now_ns, &taken);
    h->is_reading = false;
    h2o_buffer_consume(&socket->input, failure ? socket->input->size : taken);
    http2_connection_count(h, 0);
    if (failure) {
        log_debug("server", "HTTP/2 connection closed: %s", status_message());
        if (failure != STATUS_CORRUPT)
            connection_count_closure(
                h->base, failure == STATUS_RESOURCE_EXHAUSTED ? CLOSURE_ABUSE : CLOSURE_MEMORY);
        h->is_closing = true;
        h2o_socket_read_stop(socket);
    } else if (socket->input->size > 0) {
        h->is_paused = true;
        h2o_socket_read_stop(socket);
        connection_wait_turn(h->base, go_on);
    }
}

static void on_read(h2o_socket_t *socket, const char *error)
{
    http2_connection *h = connection_state(socket);
    if (h == NULL)
        return;
    if (error != NULL) {
        log_debug("server", "HTTP/2 connection closed: %s", error);
        close_now(h);
        return;
    }
    read_input(h);
    flush_output(h);
}

/* The next turn of the loop has come. */
static void go_on(turn_share *share)
{
    connection *c = H2O_STRUCT_FROM_MEMBER(connection, share, share);
    http2_connection *h = c->state;
    if (h == NULL)
        return;
    if (h->is_paused) {
        h->is_paused = false;
        read_input(h);
        if (!h->is_paused && !h->is_closing)
            h2o_socket_read_start(c->socket, on_read);
    }
    flush_output(h);
}

static void drain(connection *c)
{
    http2_connection *h = c->state;
    if (h == NULL || h->is_draining || h->linger_ns != 0)
        return;
    h->is_draining = true;
    http2_session_drain(h->session);
    http2_connection_flush_later(h);
}

/* Streams that are open end with the connection. */
static void end_now(connection *c, closure why)
{
    http2_connection *h = c->state;
    if (h == NULL)
        return;
    if (why == CLOSURE_ABUSE) {
        http2_session_close_for_abuse(h->session);
        http2_connection_flush_later(h);
    } else {
        close_now(h);
    }
}

static void dispose(connection *c)
{
    http2_connection *h = c->state;
    if (h == NULL)
        return;
    c->state = NULL;
    h->is_closing = true;
    h2o_timeout_unlink(&h->flush);
    h->is_reading = true; /* nothing is flushed any more */
    http2_session_destroy(h->session);
    budget_subtract(&c->base.held, h->session_held);
    give_buffer(h);
    free(h);
}

static const connection_protocol protocol = {
    .drain = drain, .dispose = dispose, .check = http2_connection_check, .abort = end_now};

static http2_limits limits_of(const server_options *o)
{
    http2_limits limits = http2_limits_default();
    limits.streams_max = CAPACITY_STREAMS_MAX;
    limits.resets_max = (uint32_t)o->limits.connection_resets_max;
    return limits;
}

static http2_connection *create(connection *c)
{
    http2_shared *shared = c->all->http2;
    http2_connection *h = calloc(1, sizeof *h);
    if (h == NULL)
        return NULL;
    http2_limits limits = limits_of(c->base.loop->service->options);
    uint64_t now_ns = clock_now_ns();
    h->session = http2_session_create(&limits, &shared->memory, &handler, h, now_ns);
    if (h->session == NULL) {
        free(h);
        return NULL;
    }
    h->base = c;
    h->shared = shared;
    h->now_ns = h->busy_ns = now_ns;
    h->flush.cb = on_flush;
    connection_set_protocol(c, &protocol, http2_transport(), h);
    h2o_socket_read_start(c->socket, on_read);
    if (atomic_load_explicit(&c->base.loop->service->is_stopping, memory_order_relaxed))
        drain(c);
    return h;
}

void http2_start(connection *c)
{
    http2_connection *h = create(c);
    if (h == NULL) {
        h2o_socket_close(c->socket);
        return;
    }
    read_input(h);
    flush_output(h);
}

/* Stream 1: the request that asked for the upgrade. */
static bool begin_first(http2_connection *h, const http2_first *first)
{
    http2_stream *stream;
    bool is_head =
        first->head->method.value_bytes == 4 && memcmp(first->head->method.value, "HEAD", 4) == 0;
    if (http2_session_upgrade(h->session, first->settings.data, first->settings.bytes, is_head,
                              &stream))
        return false;
    http2_exchange *x = attach(h, stream, NULL);
    if (x == NULL)
        return false;
    x->begun_ns = first->begun_ns;
    x->head = http2_exchange_copy_head(&x->memory, first->head);
    if (x->head == NULL ||
        (first->body.bytes > 0 &&
         http2_exchange_add(x, first->body.data, first->body.bytes, (int64_t)first->body.bytes,
                            first->body.bytes, &h->base->base.held)))
        return false;
    http2_connection_run(x);
    return true;
}

void http2_start_upgraded(connection *c, const http2_first *first)
{
    http2_connection *h = create(c);
    if (h == NULL || !begin_first(h, first)) {
        if (h != NULL)
            dispose(c);
        h2o_socket_close(c->socket);
        return;
    }
    read_input(h);
    flush_output(h);
}

/* gRPC calls that are streams of messages. */

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "server/connection/log_request.h"
#include "server/http2/internal.h"
#include "server/options/capacity.h"
#include "server/protocol/grpc/call.h"
#include "server/protocol/grpc/orca.h"
#include "server/protocol/route_method.h"

#define REPEATED_MAX 16 /* calls of one connection that are asked again and again */
#define PARTS_MAX 64    /* messages of one call that are not answered and sent */
#define LAST_BYTES 64   /* of a response that is compared with the one before it */
#define WATCH_NS UINT64_C(1000000000)

typedef struct http2_call {
    http2_exchange *parts;                  /* linked by next_part */
    http2_exchange *done_first, *done_last; /* whose response waits to be sent, by next */
    http2_exchange *sending;
    int part_count;
    bool is_repeated;               /* its one message is asked again and again */
    bool sends_same;                /* what is the same as before, too */
    bool has_ended;                 /* the client has said all */
    bool is_finished;               /* so have we */
    uint64_t asked_ns, interval_ns; /* when it was asked, and after which time again */
    char last[LAST_BYTES];
    size_t last_bytes;
} http2_call;

static request_text find(const http2_head *head, const char *name)
{
    size_t bytes = strlen(name);
    for (int i = 0; i < head->field_count; i++) {
        const http2_field *f = &head->fields[i];
        if (f->name_bytes == bytes && memcmp(f->name, name, bytes) == 0)
            return (request_text){f->value, f->value_bytes};
    }
    return (request_text){NULL, 0};
}

static route_kind kind_of(const http2_head *head)
{
    return route_method_find(head->path.value, head->path.value_bytes);
}

bool http2_call_is_streamed(const http2_head *head)
{
    const http2_field *m = &head->method;
    bool is_post = m->value_bytes == 4 && memcmp(m->value, "POST", 4) == 0;
    if (!is_post || head->path.value_bytes == 0 || !route_is_streamed(kind_of(head)))
        return false;
    request_text type = find(head, "content-type");
    return grpc_is_content_type(type.data, type.bytes);
}

/* The call's status. What still runs for it is cancelled when the stream is closed. */
static void finish(http2_exchange *x, const http2_field *trailers, int count)
{
    if (x->call->is_finished)
        return;
    x->call->is_finished = true;
    http2_exchange_drop_body(&x->on->shared->exchanges, x, &x->on->base->base.held);
    http2_session_finish(x->on->session, x->stream, trailers, count);
    http2_connection_flush_later(x->on);
}

static void fail(http2_exchange *x, const char *code, const char *message)
{
    http2_field trailers[] = {{"grpc-status", code, 11, strlen(code)},
                              {"grpc-message", message, 12, strlen(message)}};
    finish(x, trailers, 2);
}

static void count_large(const http2_exchange *x)
{
    const request_loop *l = x->on->base->base.loop;
    record_refused(l->service->recorder, l->index, 413, RECORD_TOO_LARGE, ROUTE_GRPC,
                   clock_now_ns());
}

void http2_call_begin(http2_exchange *x, bool has_body)
{
    static const http2_field fields[] = {{"content-type", "application/grpc", 12, 16},
                                         {"grpc-accept-encoding", "identity,deflate,gzip", 20, 21},
                                         {"server", "penstock", 6, 8}};
    x->call = calloc(1, sizeof *x->call);
    if (x->call == NULL) {
        http2_session_reset(x->on->session, x->stream, HTTP2_REFUSED_STREAM);
        return;
    }
    x->call->is_repeated = route_is_repeated(kind_of(x->head));
    x->call->sends_same = kind_of(x->head) == ROUTE_GRPC_LOAD_REPORTS;
    x->call->interval_ns = WATCH_NS;
    x->on->repeated += x->call->is_repeated;
    if (http2_session_begin(x->on->session, x->stream, 200, fields, 3))
        x->call->is_finished = true; /* it is reset */
    else if (x->on->repeated > REPEATED_MAX && x->call->is_repeated)
        fail(x, "8", "too many calls of this connection watch");
    else if (!has_body)
        http2_call_end(x);
    http2_connection_flush_later(x->on);
}

static void finish_if_done(http2_exchange *x)
{
    static const http2_field ok = {"grpc-status", "0", 11, 1};
    const http2_call *call = x->call;
    if (call->has_ended && call->part_count == 0 && x->body_bytes == 0 && !call->is_repeated)
        finish(x, &ok, 1);
}

/* The same with the status of a part. */
static void finish_with(http2_exchange *x, const http2_exchange *part)
{
    http2_field trailers[HTTP2_FIELDS_MAX];
    int count = 0;
    for (int i = 0; i < part->field_count; i++) {
        const http2_field *f = &part->fields[i];
        if (f->name_bytes > 5 && memcmp(f->name, "grpc-", 5) == 0)
            trailers[count++] = *f;
    }
    finish(x, trailers, count);
}

/* Counts it until it is sent. */
static void hold_response(http2_exchange *part)
{
    http2_connection *h = part->on;
    part->response_held = request_count_response(part->request);
    h->response_held += part->response_held;
    if (part->response_held > h->response_held_max)
        h->response_held_max = part->response_held;
    budget_force(&h->base->base.held, part->response_held);
}

/* Nobody has any more use for it. */
static void close_part(http2_exchange *part)
{
    http2_exchange *x = part->parent, **at = &x->call->parts;
    http2_connection *h = x->on;
    while (*at != part)
        at = &(*at)->next_part;
    *at = part->next_part;
    x->call->part_count--;
    if (part->request != NULL) {
        if (!x->call->is_repeated)
            log_request(part->request,
                        (request_text){part->head->method.value, part->head->method.value_bytes},
                        (request_text){part->head->path.value, part->head->path.value_bytes}, "h2");
        if (request_needs_body(part->request) && part->request->kept_body == NULL)
            part->request->connection->transport->keep_body(part->request);
        request_stream_closed(part->request);
    }
    http2_connection_stop_running(part);
    h->response_held -= part->response_held;
    budget_subtract(&h->base->base.held, part->body_held + part->response_held);
    http2_exchange_release(&h->shared->exchanges, part);
}

/* The next response, if none is under way. */
static void send_next(http2_exchange *x)
{
    http2_call *call = x->call;
    http2_exchange *part = call->done_first;
    if (call->sending != NULL || part == NULL || call->is_finished)
        return;
    call->done_first = part->next;
    call->sending = part;
    for (int i = 0; i < part->piece_count; i++)
        x->response_bytes += part->pieces[i].bytes;
    http2_session_send(x->on->session, x->stream, part->pieces, part->piece_count);
    http2_connection_flush_later(x->on);
}

static void go_on(http2_exchange *x);

void http2_call_sent(http2_exchange *x)
{
    http2_exchange *part = x->call->sending;
    if (part == NULL)
        return;
    x->call->sending = NULL;
    close_part(part);
    send_next(x);
    go_on(x);
}

/* Is it what was sent last? */
static bool is_same(http2_call *call, const http2_piece *pieces, int count)
{
    if (count != 1 || pieces[0].bytes > LAST_BYTES)
        return false;
    bool is = pieces[0].bytes == call->last_bytes &&
              memcmp(pieces[0].data, call->last, call->last_bytes) == 0;
    memcpy(call->last, pieces[0].data, pieces[0].bytes);
    call->last_bytes = pieces[0].bytes;
    return is;
}

void http2_call_respond(http2_exchange *part, const http2_piece *pieces, int count)
{
    http2_exchange *x = part->parent;
    http2_call *call = x->call;
    http2_connection_stop_running(part);
    if (count == 0) {
        finish_with(x, part);
        close_part(part);
        return;
    }
    hold_response(part);
    if (call->is_finished ||
        (call->is_repeated && !call->sends_same && is_same(call, pieces, count))) {
        close_part(part);
        return;
    }
    part->pieces = arena_allocate(&part->memory, (size_t)count * sizeof *pieces);
    if (part->pieces == NULL) {
        fail(x, "14", "there is no memory for the response now");
        close_part(part);
        return;
    }
    memcpy(part->pieces, pieces, (size_t)count * sizeof *pieces);
    part->piece_count = count;
    part->next = NULL;
    if (call->done_first == NULL)
        call->done_first = part;
    else
        call->done_last->next = part;
    call->done_last = part;
    send_next(x);
}

void http2_call_refuse(http2_exchange *part)
{
    fail(part->parent, "14", "too many requests are open");
    close_part(part);
}

/* The message of `bytes`, with its head, at the front of the body: moved if it is all there is. */
static bool take_message(http2_exchange *x, http2_exchange *part, size_t bytes)
{
    budget_account *held = &x->on->base->base.held;
    if (bytes == x->body_bytes && !x->call->is_repeated) {
        char *room = part->body; /* of the pool: for what comes next */
        size_t capacity = part->body_capacity;
        part->body = x->body;
        part->body_capacity = x->body_capacity;
        part->body_bytes = bytes;
        part->body_held = x->body_held;
        x->body = room;
        x->body_capacity = capacity;
        x->body_bytes = x->body_held = 0;
        return true;
    }
    if (http2_exchange_add(part, x->body, bytes, (int64_t)bytes, bytes, held))
        return false;
    if (!x->call->is_repeated) {
        x->body_bytes -= bytes;
        memmove(x->body, x->body + bytes, x->body_bytes);
    }
    return true;
}

static bool begin_part(http2_exchange *x, size_t bytes)
{
    http2_connection *h = x->on;
    http2_exchange *part = http2_exchange_acquire(&h->shared->exchanges);
    if (part == NULL || !take_message(x, part, bytes)) {
        if (part != NULL)
            http2_exchange_release(&h->shared->exchanges, part);
        fail(x, "14", "there is no memory for the message now");
        return false;
    }
    part->on = h;
    part->parent = x;
    part->head = x->head;
    part->begun_ns = h->now_ns;
    part->next_part = x->call->parts;
    x->call->parts = part;
    x->call->part_count++;
    http2_connection_run(part);
    return true;
}

static bool is_due(const http2_call *call, uint64_t now_ns)
{
    return call->asked_ns == 0 || now_ns - call->asked_ns >= call->interval_ns - WATCH_NS / 8;
}

/* The call's one message, for the first time or once more. */
static void ask(http2_exchange *x, size_t bytes, bool is_compressed)
{
    http2_call *call = x->call;
    if (x->body_bytes > bytes) {
        fail(x, "3", "one message was expected");
        return;
    }
    if (call->part_count > 0 || !is_due(call, x->on->now_ns))
        return;
    if (call->asked_ns == 0 && call->sends_same && !is_compressed)
        call->interval_ns =
            orca_read_interval(x->body + GRPC_FRAME_HEAD_BYTES, bytes - GRPC_FRAME_HEAD_BYTES);
    call->asked_ns = x->on->now_ns;
    begin_part(x, bytes);
}

/* A connection has about as many messages open as it may have streams; each call may have one. */
static bool may_have_part(const http2_exchange *x)
{
    const http2_call *call = x->call;
    return call->part_count == 0 ||
           (call->part_count < PARTS_MAX && x->on->base->base.requests < CAPACITY_STREAMS_MAX);
}

/* Begins what is whole, as far as it may run. */
static void go_on(http2_exchange *x)
{
    http2_call *call = x->call;
    const server_options *o = x->on->base->base.loop->service->options;
    bool is_compressed;
    size_t bytes;
    while (!call->is_finished && may_have_part(x) && http2_connection_may_run(x->on) &&
           x->body_bytes >= GRPC_FRAME_HEAD_BYTES) {
        if (!grpc_read_frame_head(x->body, &is_compressed, &bytes)) {
            fail(x, "3", "a message's compressed flag is not 0 or 1");
            return;
        }
        if (bytes > o->limits.body_bytes_max) {
            count_large(x);
            fail(x, "8", "the message is larger than the limit");
            return;
        }
        bytes += GRPC_FRAME_HEAD_BYTES;
        if (x->body_bytes < bytes)
            break;
        if (call->is_repeated) {
            ask(x, bytes, is_compressed);
            return;
        }
        if (!begin_part(x, bytes))
            return;
    }
    if (call->is_finished)
        return;
    if (call->part_count < PARTS_MAX)
        http2_session_consume_all(x->on->session, x->stream);
    if (call->has_ended && call->part_count == 0 && x->body_bytes > 0)
        fail(x, "3", "the last message is cut short");
    finish_if_done(x);
}

void http2_call_data(http2_exchange *x, const void *data, size_t bytes)
{
    http2_connection *h = x->on;
    size_t most = h->base->base.loop->service->options->limits.body_bytes_max;
    if (x->call->is_finished) {
        http2_session_consume_all(h->session, x->stream);
        return;
    }
    if (!http2_may_add(x, bytes)) {
        fail(x, "16", "a valid key is needed: Authorization: Bearer KEY, or X-API-Key");
        return;
    }
    /* Beyond the message that is complete, no more than a window. */
    if (http2_exchange_add(x, data, bytes, -1, most + (1 << 20), &h->base->base.held)) {
        fail(x, "8", "there is no room for the message now");
        return;
    }
    if (x->call->is_repeated && x->call->asked_ns != 0)
        fail(x, "3", "one message was expected");
    else
        go_on(x);
}

void http2_call_end(http2_exchange *x)
{
    x->call->has_ended = true;
    if (x->call->is_repeated && x->call->asked_ns == 0)
        fail(x, "3", "the call has no whole message");
    else if (!x->call->is_repeated)
        go_on(x);
}

void http2_call_check(http2_exchange *x)
{
    http2_call *call = x->call;
    if (call->is_finished)
        return;
    if (x->on->is_draining && call->part_count == 0)
        fail(x, "14", "the server is shutting down");
    else if (x->body_bytes > 0)
        go_on(x); /* it is time again, or other streams' responses have been in the way */
}

void http2_call_close(http2_exchange *x)
{
    while (x->call->parts != NULL)
        close_part(x->call->parts);
    x->on->repeated -= x->call->is_repeated;
    free(x->call);
    x->call = NULL;
}

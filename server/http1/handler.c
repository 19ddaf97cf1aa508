#include "server/http1/handler.h"

#include <assert.h>
#include <h2o/http1.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "server/connection/accept.h"
#include "server/http1/state.h"
#include "server/http1/transport.h"
#include "server/http2/upgrade.h"
#include "server/request/authorize.h"
#include "server/request/respond.h"

#define ARRIVAL_US_MAX 3600000000ll

static void drain(connection *c)
{
    http1_state_of(c)->is_draining = true;
}

/* Shut down, the socket ends the library's next read or write, and the library closes it. A request
 * that is late is answered first (hooks.c). */
static void end_now(connection *c, closure why)
{
    bool is_late = why == CLOSURE_HEAD || why == CLOSURE_BODY;
    if (is_late)
        http1_state_of(c)->closing_code = 408;
    shutdown(c->fd, is_late || why == CLOSURE_IDLE ? SHUT_RD : SHUT_RDWR);
}

static void dispose(connection *c)
{
    http1_state *state = c->state;
    if (state != NULL) {
        budget_subtract(&c->base.held, state->input_held);
        free(state->parts);
    }
    free(state);
    c->state = NULL;
}

static const connection_protocol protocol = {.drain = drain,
                                             .dispose = dispose,
                                             .input_ended = half_close_begin,
                                             .check = http1_check,
                                             .abort = end_now};

/* How long the request took to arrive, by the library's clock of its loop, good to a millisecond.
 */
static uint64_t arrival_ns(const h2o_req_t *stream)
{
    const struct timeval *begin = &stream->timestamps.request_begin_at;
    const struct timeval *now = h2o_get_timestamp(stream->conn->ctx, NULL, NULL);
    int64_t us = (now->tv_sec - begin->tv_sec) * 1000000ll + (now->tv_usec - begin->tv_usec);
    return begin->tv_sec == 0 || us <= 0 || us > ARRIVAL_US_MAX ? 0 : (uint64_t)us * 1000;
}

/* Without a request of ours: `body` is a literal, or empty. */
static void refuse(h2o_req_t *stream, const char *body)
{
    stream->http1_is_persistent = 0;
    stream->res.status = 503;
    stream->res.reason = "Service Unavailable";
    h2o_send_inline(stream, body, strlen(body));
}

static void respond_empty_path(request *r)
{
    respond_error(r, 400, "the path is empty");
}

static void respond_large_body(request *r)
{
    respond_error(r, 413, "the body is larger than the limit");
}

/* The head was refused while it was read (overrides/parse_request.h). */
static void respond_refused_head(request *r)
{
    http1_state *state = http1_state_of((connection *)r->connection);
    int code = state->refusal_code;
    state->refusal_code = 0;
    if (state->is_unauthenticated) {
        r->has_key = state->has_key;
        authorize_refuse(r);
    } else {
        respond_error(r, code, state->refusal);
    }
}

static void serve(connection *c, h2o_req_t *stream, uint64_t now_ns)
{
    http1_state *state = http1_state_of(c);
    state->is_head_complete = false;
    state->rate = (rate_window){0};
    arrival a = {.stream = stream,
                 .method = {stream->method.base, stream->method.len},
                 .path = {stream->path.base, stream->path.len},
                 .body = {stream->entity.base, stream->entity.base ? stream->entity.len : 0},
                 .can_borrow_body = true,
                 .begun_ns = now_ns - arrival_ns(stream)};
    request *r = accept_request(c, &a);
    if (r == NULL) {
        refuse(stream, ACCEPT_TOO_MANY);
        return;
    }
    c->base.worked_bytes = c->base.held.bytes;
    c->stalled_ticks = 0;
    http1_transport_bind(stream, r);
    if (state->refusal_code != 0) {
        stream->http1_is_persistent = 0;
        request_run(r, respond_refused_head);
    } else if (stream->input.path.len == 0) {
        request_run(r, respond_empty_path);
    } else if (a.body.bytes > c->base.loop->service->options->limits.body_bytes_max) {
        request_run(r, respond_large_body);
    } else {
        accept_run(r, a.method);
    }
}

static void serve_or_wait(connection *c, h2o_req_t *stream);

/* libh2o reads nothing of the connection while a request waits. */
static void serve_waiting(turn_share *share)
{
    connection *c = H2O_STRUCT_FROM_MEMBER(connection, share, share);
    http1_state *state = http1_state_of(c);
    h2o_req_t *stream = state->waiting;
    state->waiting = NULL;
    serve_or_wait(c, stream);
}

static void serve_or_wait(connection *c, h2o_req_t *stream)
{
    uint64_t now_ns = clock_now_ns();
    http1_state *state = http1_state_of(c);
    if (c->base.is_closed_for_abuse) {
        refuse(stream, "");
    } else if (!turn_take_request(&c->all->turns, &c->share, now_ns)) {
        state->waiting = stream;
        connection_wait_turn(c, serve_waiting);
    } else if (state->refusal_code != 0 || !http2_upgrade(c, stream)) {
        serve(c, stream, now_ns);
    }
}

static int on_request(h2o_handler_t *self, h2o_req_t *stream)
{
    (void)self;
    connection *c = connection_of(stream->conn->callbacks->get_socket(stream->conn));
    assert(c != NULL);
    serve_or_wait(c, stream);
    return 0;
}

void http1_configure(h2o_pathconf_t *path)
{
    h2o_create_handler(path, sizeof(h2o_handler_t))->on_req = on_request;
}

http1_state *http1_state_of(const connection *c)
{
    return c->protocol == &protocol ? c->state : NULL;
}

void http1_start(connection *c)
{
    h2o_accept_ctx_t *accept = c->accept;
    http1_state *state = calloc(1, sizeof(*state));
    if (state == NULL) {
        h2o_socket_close(c->socket);
        return;
    }
    connection_set_protocol(c, &protocol, http1_transport(), state);
    h2o_http1_accept(accept, c->socket, *h2o_get_timestamp(accept->ctx, NULL, NULL));
}

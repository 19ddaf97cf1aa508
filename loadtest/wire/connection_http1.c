#include "loadtest/wire/connection.h"
#include "loadtest/wire/http1_parse.h"
#include "loadtest/wire/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct http1_state {
    request *request; /* the one under way, or NULL */
    http1_parser parser;
    response response;
} http1_state;

static status start(connection *c)
{
    http1_state *state = memory_allocate(1, sizeof *state);
    http1_parser_reset(&state->parser);
    state->response.keep_body = c->keep_bodies;
    state->parser.no_body = strcmp(c->head->method, "HEAD") == 0;
    c->state = state;
    c->room_max = 1;
    return STATUS_OK;
}

static void submit(connection *c, request *r)
{
    http1_state *state = c->state;
    assert(state->request == NULL);
    state->request = r;
    http1_parser_reset(&state->parser);
    response_reset(&state->response);
    text_buffer_append(transport_outgoing(&c->transport), r->payload->http1,
                       r->payload->http1_bytes);
}

static void cancel(connection *c, request *r)
{
    http1_state *state = c->state;
    assert(state->request == r);
    /* HTTP/1.1 cannot cancel one response: the connection must close. */
    state->request = NULL;
    r->connection = NULL;
    c->in_flight--;
    connection_finish(c, true, "closed after a timeout");
}

/* Takes the request off the connection. */
static request *detach(connection *c)
{
    http1_state *state = c->state;
    request *r = state->request;
    if (r != NULL) {
        state->request = NULL;
        r->connection = NULL;
        c->in_flight--;
    }
    return r;
}

static void finish(connection *c)
{
    http1_state *state = c->state;
    bool keep_alive = state->parser.keep_alive;
    request *r = detach(c);
    c->responses++;
    /* Not usable before its callbacks are over, if it is to close. */
    c->usable = keep_alive;
    c->events->on_response(c->owner, c, r, &state->response);
    if (!connection_is_open(c))
        return;
    if (!keep_alive)
        connection_finish(c, true, "the server asked to close");
    else if (connection_has_room(c))
        c->events->on_room(c->owner, c);
}

static void lose(connection *c, request_error why, bool unprocessed, const char *reason)
{
    request *r = detach(c);
    if (r != NULL)
        c->events->on_lost(c->owner, c, r, why, unprocessed, reason);
}

static void receive(connection *c, const uint8_t *data, size_t bytes)
{
    http1_state *state = c->state;
    if (state->request == NULL) {
        connection_finish(c, false, "the server sent data without a request");
        return;
    }
    size_t used;
    status s = http1_parse(&state->parser, &state->response, (const char *)data, bytes, &used);
    if (s) {
        lose(c, REQUEST_PROTOCOL, false, status_message());
        connection_finish(c, false, status_message());
        return;
    }
    if (state->parser.stage != HTTP1_DONE)
        return;
    if (used < bytes)
        state->parser.keep_alive = false; /* the rest cannot be interpreted */
    finish(c);
}

static void flush(connection *c)
{
    (void)c; /* submit wrote straight into the outgoing bytes */
}

static void end(connection *c, bool in_order, const char *reason)
{
    http1_state *state = c->state;
    if (state->request == NULL)
        return;
    if (in_order && http1_parse_end(&state->parser) == STATUS_OK) {
        request *r = detach(c);
        c->events->on_response(c->owner, c, r, &state->response);
        return;
    }
    /* A keep-alive connection may be closed by an idle server just as we write: RFC 9112 9.3.1. */
    bool unprocessed = !state->parser.started && c->responses > 0;
    lose(c, REQUEST_CLOSED, unprocessed, reason);
}

static void dispose(connection *c)
{
    http1_state *state = c->state;
    http1_parser_dispose(&state->parser);
    text_buffer_dispose(&state->response.body);
    free(state);
    c->state = NULL;
}

const connection_protocol connection_http1 = {
    .name = "HTTP/1.1",
    .start = start,
    .submit = submit,
    .cancel = cancel,
    .receive = receive,
    .flush = flush,
    .end = end,
    .dispose = dispose,
};

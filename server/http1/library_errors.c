#include "server/http1/library_errors.h"

#include <stdio.h>

#include "base/clock.h"
#include "server/http1/state.h"
#include "server/protocol/route.h"

typedef struct error_stream {
    h2o_ostream_t super;
    bool is_sent;
    char body[200];
    size_t bytes;
} error_stream;

static void send_error(h2o_ostream_t *self, h2o_req_t *to, h2o_iovec_t *pieces, size_t count,
                       h2o_send_state_t state)
{
    error_stream *stream = (error_stream *)self;
    (void)pieces, (void)count;
    h2o_iovec_t body = h2o_iovec_init(stream->body, stream->bytes);
    size_t n = stream->is_sent ? 0 : 1;
    stream->is_sent = true;
    h2o_ostream_send_next(self, to, &body, n, state);
}

/* The body of an inference request was refused. */
static void count(const connection *c, const h2o_req_t *of, int code)
{
    route asked;
    const request_loop *l = c->base.loop;
    route_parse(of->path_normalized.base, of->path_normalized.len, &asked);
    if (route_is_inference(asked.kind))
        record_refused(l->service->recorder, l->index, code, RECORD_SERVED, (int)asked.dialect,
                       clock_now_ns());
}

static void on_error_setup(h2o_filter_t *self, h2o_req_t *to, h2o_ostream_t **slot)
{
    (void)self;
    int code = to->res.status;
    connection *c = connection_of(to->conn->callbacks->get_socket(to->conn));
    http1_state *state = c != NULL ? http1_state_of(c) : NULL;
    if (state != NULL && !to->http1_is_persistent)
        state->is_final = true;
    if (state != NULL && state->body_code == 413) {
        to->res.status = code = state->body_code;
        to->res.reason = "Content Too Large";
        state->body_code = 0;
    }
    const char *why = code == 413   ? "the body is larger than the limit"
                      : code == 417 ? "unknown Expect"
                      : code == 400 ? "malformed request body"
                                    : NULL;
    if (why != NULL && c != NULL)
        count(c, to, code);
    if (why != NULL) {
        error_stream *stream = (error_stream *)h2o_add_ostream(to, sizeof(error_stream), slot);
        stream->super.do_send = send_error;
        stream->is_sent = false;
        stream->bytes =
            (size_t)snprintf(stream->body, sizeof(stream->body), "{\"error\":\"%s\"}", why);
        to->res.content_length = stream->bytes;
        h2o_set_header(&to->pool, &to->res.headers, H2O_TOKEN_CONTENT_TYPE,
                       H2O_STRLIT("application/json"), 1);
        slot = &stream->super.next;
    }
    h2o_setup_next_ostream(to, slot);
}

void library_errors_configure(h2o_hostconf_t *host)
{
    h2o_create_filter(&host->fallback_path, sizeof(h2o_filter_t))->on_setup_ostream =
        on_error_setup;
}

#include "server/http1/transport.h"

#include "base/clock.h"
#include "server/connection/log_request.h"
#include "server/http1/half_close.h"
#include "server/http1/state.h"
#include "server/request/request.h"

/* libh2o has room for an application's own value in each request: an environment variable, which
 * nothing but its CGI handlers looks at. `bytes` is the request's address. */
#define VARIABLE "penstock.request"
enum { VARIABLE_ENTRIES = 2 }; /* name, value */

void http1_transport_bind(h2o_req_t *stream, request *r)
{
    h2o_vector_reserve(&stream->pool, &stream->env, VARIABLE_ENTRIES);
    stream->env.entries[0] = h2o_iovec_init(H2O_STRLIT(VARIABLE));
    stream->env.entries[1] = h2o_iovec_init((void *)r, sizeof(*r));
    stream->env.size = VARIABLE_ENTRIES;
}

static request *request_of(const h2o_req_t *stream)
{
    if (stream->env.size < VARIABLE_ENTRIES ||
        !h2o_memis(stream->env.entries[0].base, stream->env.entries[0].len, H2O_STRLIT(VARIABLE)))
        return NULL; /* the library answered it without us */
    return (request *)(void *)stream->env.entries[1].base;
}

static request_text header(const request *r, const char *name, size_t name_bytes)
{
    const h2o_req_t *stream = r->stream;
    ssize_t at = h2o_find_header_by_str(&stream->headers, name, name_bytes, SIZE_MAX);
    if (at < 0)
        return (request_text){NULL, 0};
    h2o_iovec_t value = stream->headers.entries[at].value;
    return (request_text){value.base, value.len};
}

static int header_count(const request *r, const char *name, size_t name_bytes)
{
    const h2o_req_t *stream = r->stream;
    int count = 0;
    for (ssize_t at = -1;
         (at = h2o_find_header_by_str(&stream->headers, name, name_bytes, at)) >= 0;)
        count++;
    return count;
}

static void *allocate(request *r, size_t bytes)
{
    h2o_req_t *stream = r->stream;
    return h2o_mem_alloc_pool(&stream->pool, bytes);
}

static void add_header(request *r, request_text name, request_text value)
{
    h2o_req_t *stream = r->stream;
    h2o_add_header_by_str(&stream->pool, &stream->res.headers, name.data, name.bytes, 1, NULL,
                          value.data, value.bytes);
}

static void drop_headers(request *r)
{
    h2o_req_t *stream = r->stream;
    stream->res.headers.size = 0;
}

static void start_response(h2o_req_t *stream, h2o_iovec_t *pieces, size_t count)
{
    static h2o_generator_t no_more = {NULL, NULL};
    h2o_start_response(stream, &no_more);
    h2o_send(stream, pieces, count, H2O_SEND_STATE_FINAL);
}

static void send_response(request *r, int code, const char *reason, const request_text *pieces,
                          int count)
{
    h2o_req_t *stream = r->stream;
    h2o_iovec_t out[MODEL_TENSORS_MAX + 1];
    for (int i = 0; i < count; i++)
        out[i] = h2o_iovec_init(pieces[i].data, pieces[i].bytes);
    stream->res.status = code;
    stream->res.reason = reason;
    stream->res.content_length = code == 204 ? SIZE_MAX : r->response_bytes; /* RFC 9110, 8.6 */
    http1_state *state = http1_state_of((connection *)r->connection);
    state->is_responding = true;
    r->connection->worked_bytes = 0;
    state->response_held = request_count_response(r);
    budget_force(&r->connection->held, state->response_held);
    if (code == 499 || code == 408 || state->is_draining ||
        atomic_load_explicit(&request_service(r)->is_stopping, memory_order_relaxed))
        stream->http1_is_persistent = 0;
    size_t sent = r->is_head ? 0 : (size_t)count;
    connection *c = (connection *)r->connection;
    if (!half_close_postpones(c, stream, out, sent, start_response))
        start_response(stream, out, sent);
}

static void watch(request *r)
{
    connection_watch((connection *)r->connection, r);
}

/* The tensors lie in the connection's input, which the next request would overwrite: the request
 * takes it away, and the connection ends with this response. */
static void keep_body(request *r)
{
    h2o_req_t *stream = r->stream;
    h2o_socket_t *socket = ((connection *)r->connection)->socket;
    stream->http1_is_persistent = 0;
    r->kept_body = socket->input;
    h2o_buffer_init(&socket->input, &h2o_socket_buffer_prototype);
}

static void drop_body(request *r)
{
    h2o_buffer_t *body = r->kept_body;
    h2o_buffer_dispose(&body);
    r->kept_body = NULL;
}

const request_transport *http1_transport(void)
{
    static const request_transport transport = {
        .header = header,
        .header_count = header_count,
        .allocate = allocate,
        .add_header = add_header,
        .drop_headers = drop_headers,
        .send = send_response,
        .watch = watch,
        .keep_body = keep_body,
        .drop_body = drop_body,
        .close = connection_close_for_abuse,
    };
    return &transport;
}

/* The library disposes of the stream: the response is out, or the client has gone. libh2o offers
 * this moment to loggers of accesses. */
static void on_disposed(h2o_logger_t *self, h2o_req_t *stream)
{
    (void)self;
    request *r = request_of(stream);
    if (r == NULL)
        return;
    http1_state *state = http1_state_of((connection *)r->connection);
    if (state != NULL) {
        state->is_final = !stream->http1_is_persistent;
        state->is_responding = false;
        r->connection->worked_bytes = 0;
        budget_subtract(&r->connection->held, state->response_held);
        state->response_held = 0;
        state->rate = (rate_window){0};
        connection_note_progress((connection *)r->connection, clock_now_ns());
    }
    log_request(r, (request_text){stream->method.base, stream->method.len},
                (request_text){stream->path.base, stream->path.len},
                stream->version == 0x101 ? "http/1.1" : "http/1.0");
    request_stream_closed(r);
}

void http1_transport_configure(h2o_pathconf_t *path)
{
    h2o_create_logger(path, sizeof(h2o_logger_t))->log_access = on_disposed;
}

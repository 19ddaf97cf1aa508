#include "server/http/accept.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "server/http/connection.h"
#include "server/http/stream.h"
#include "server/request/respond.h"

#define ARRIVAL_US_MAX 3600000000ll

typedef struct handler {
    h2o_handler_t super;
    const request_routes *routes;
} handler;

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

static request *begin(connection *c, h2o_req_t *stream)
{
    uint64_t now_ns = clock_now_ns();
    request *r = request_begin(c->base.loop, &c->base, stream, now_ns);
    if (r == NULL)
        return NULL;
    stream_bind(stream, r);
    r->sample.begin_ns = now_ns - arrival_ns(stream);
    stage_stamp(r->sample.stage_ns, STAGE_ACCEPT, now_ns);
    size_t path_bytes = stream->query_at == SIZE_MAX ? stream->path.len : stream->query_at;
    route_parse(stream->path.base, path_bytes, &r->route);
    if (stream->entity.base != NULL)
        r->body = (request_text){stream->entity.base, stream->entity.len};
    r->can_borrow_body = stream->version < 0x200;
    r->is_head = h2o_memis(stream->method.base, stream->method.len, H2O_STRLIT("HEAD"));
    return r;
}

static bool has_verb(const request *r, const h2o_req_t *stream)
{
    h2o_iovec_t method = stream->method;
    if (r->route.kind == ROUTE_UNKNOWN)
        return true;
    return r->route.verb == ROUTE_GET
               ? r->is_head || h2o_memis(method.base, method.len, H2O_STRLIT("GET"))
               : h2o_memis(method.base, method.len, H2O_STRLIT("POST"));
}

static void respond_wrong_verb(request *r)
{
    bool is_get = r->route.verb == ROUTE_GET;
    const char *allow = is_get ? "GET, HEAD" : "POST";
    respond_header(r, "allow", allow, strlen(allow));
    respond_error(r, r->route.is_tensorflow ? 400 : 405,
                  is_get ? "this route takes GET" : "this route takes POST");
}

static void respond_empty_path(request *r)
{
    respond_error(r, 400, "the path is empty");
}

/* The head was refused while it was read (overrides/parse_request.h). */
static void respond_refused_head(request *r)
{
    connection *c = (connection *)r->connection;
    int code = c->refusal_code;
    c->refusal_code = 0;
    respond_error(r, code, c->refusal);
}

static int on_request(h2o_handler_t *self, h2o_req_t *stream)
{
    const request_routes *routes = ((handler *)self)->routes;
    connection *c = connection_of(stream->conn->callbacks->get_socket(stream->conn));
    assert(c != NULL);
    request_loop *l = c->base.loop;
    if (!atomic_load_explicit(&l->is_awake, memory_order_relaxed))
        atomic_store_explicit(&l->is_awake, true, memory_order_relaxed);
    if (c->base.is_closed_for_abuse) {
        refuse(stream, "");
        return 0;
    }
    request *r = begin(c, stream);
    if (r == NULL) {
        refuse(stream, "{\"error\":\"too many requests are open\"}");
        return 0;
    }
    const request_route *at = &routes->of[r->route.kind];
    if (c->refusal_code != 0) {
        stream->http1_is_persistent = 0;
        request_run(r, respond_refused_head);
    } else if (stream->input.path.len == 0) {
        request_run(r, respond_empty_path);
    } else if (!has_verb(r, stream)) {
        request_run(r, respond_wrong_verb);
    } else {
        bool can_answer = at->is_early || service_is_open(l->service);
        request_run(r, can_answer ? at->handle : routes->starting);
    }
    return 0;
}

void accept_configure(h2o_pathconf_t *path, const request_routes *routes)
{
    handler *h = (handler *)h2o_create_handler(path, sizeof(handler));
    h->super.on_req = on_request;
    h->routes = routes;
}

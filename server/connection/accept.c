#include "server/connection/accept.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "server/connection/relief.h"
#include "server/protocol/grpc/call.h"
#include "server/request/authorize.h"
#include "server/request/respond.h"
#include "server/request/routes.h"

static bool is_method(request_text method, const char *name)
{
    return method.bytes == strlen(name) && memcmp(method.data, name, method.bytes) == 0;
}

/* A gRPC call is known by its content type, over a version of HTTP that has trailers; its path says
 * only which. */
static void find_dialect(request *r)
{
    request_text type = request_header(r, "content-type");
    bool has_trailers = r->connection->transport->add_trailer != NULL;
    bool is_call = has_trailers && grpc_is_content_type(type.data, type.bytes);
    if (is_call && r->route.dialect != ROUTE_GRPC)
        r->route.kind = ROUTE_UNKNOWN;
    if (is_call)
        r->route.dialect = ROUTE_GRPC;
    else if (r->route.dialect == ROUTE_GRPC)
        r->route.dialect = ROUTE_KSERVE; /* it is told so in JSON */
}

static bool is_path(request_text path, const char *wanted)
{
    return wanted != NULL && path.bytes == strlen(wanted) &&
           memcmp(path.data, wanted, path.bytes) == 0;
}

/* Of the path without its query. A platform may have chosen paths of its own. */
static void find_route(request *r, request_text path, request_text method)
{
    static const char ping[] = "/ping", invocations[] = "/invocations";
    const server_options *o = request_service(r)->options;
    if (is_path(path, o->predict_route))
        path = (request_text){invocations, sizeof invocations - 1};
    else if (is_path(path, o->health_route))
        path = (request_text){ping, sizeof ping - 1};
    route_parse(path.data, path.bytes, &r->route);
    route_choose(&r->route, method.data, method.bytes);
}

request *accept_request(connection *c, const arrival *a)
{
    request_loop *l = c->base.loop;
    uint64_t now_ns = clock_now_ns();
    if (!atomic_load_explicit(&l->is_awake, memory_order_relaxed))
        atomic_store_explicit(&l->is_awake, true, memory_order_relaxed);
    request *r = request_begin(l, &c->base, a->stream, now_ns);
    if (r == NULL && relief_of_requests(c))
        r = request_begin(l, &c->base, a->stream, now_ns);
    if (r == NULL)
        return NULL;
    r->sample.begin_ns = a->begun_ns;
    stage_stamp(r->sample.stage_ns, STAGE_ACCEPT, now_ns);
    connection_note_request(c, now_ns);
    const char *query = a->path.bytes ? memchr(a->path.data, '?', a->path.bytes) : NULL;
    size_t bytes = query != NULL ? (size_t)(query - a->path.data) : a->path.bytes;
    find_route(r, (request_text){a->path.data, bytes}, a->method);
    find_dialect(r);
    r->sample.protocol = (int)r->route.dialect;
    r->body = a->body;
    r->can_borrow_body = a->can_borrow_body;
    r->is_head = is_method(a->method, "HEAD");
    r->is_about_server = a->path.bytes == 1 && a->path.data[0] == '*';
    return r;
}

static bool has_verb(const request *r, request_text method)
{
    if (r->route.kind == ROUTE_UNKNOWN)
        return true;
    return r->route.verb == ROUTE_GET    ? r->is_head || is_method(method, "GET")
           : r->route.verb == ROUTE_POST ? is_method(method, "POST")
                                         : is_method(method, "DELETE");
}

/* RFC 9110, section 9.3.7. */
static void respond_options(request *r)
{
    static const char allow[] = "GET, HEAD, OPTIONS, POST";
    respond_header(r, "allow", allow, sizeof(allow) - 1);
    respond_nothing(r);
}

static void respond_wrong_verb(request *r)
{
    /* POST /v1/models/M:verb with a verb that there is not; of GET, a model may be called so. */
    if (r->route.kind == ROUTE_TF_STATUS && strchr(r->route.name, ':') != NULL) {
        respond_error(r, 400, "no such route");
        return;
    }
    const char *allow = route_methods(&r->route);
    respond_header(r, "allow", allow, strlen(allow));
    respond_error(r, 405,
                  r->route.verb == ROUTE_GET    ? "this route takes GET"
                  : r->route.verb == ROUTE_POST ? "this route takes POST"
                                                : "this route takes DELETE");
}

static void respond_no_trailers(request *r)
{
    respond_error(r, 505,
                  "gRPC needs HTTP/2: this address speaks it over TLS (ALPN \"h2\") and without "
                  "(prior knowledge)");
}

static void respond_wrong_type(request *r)
{
    respond_error(r, 415,
                  "gRPC's methods take content-type application/grpc or "
                  "application/grpc+proto");
}

static void respond_elsewhere(request *r)
{
    const server_options *o = request_service(r)->options;
    char text[160] = "this address serves gRPC only";
    for (int i = 0; i < o->listener_count; i++) {
        const server_listener *l = &o->listeners[i];
        if (l->is_grpc || l->is_health || l->is_admin)
            continue;
        snprintf(text, sizeof text, "this address serves gRPC only; REST is served at %s://%s:%u",
                 l->is_tls ? "https" : "http", l->host, l->port);
        break;
    }
    respond_error(r, 404, text);
}

/* Is it neither gRPC nor HTTP that this address serves? Who answers then; NULL: it is. */
static request_handler find_refusal(const request *r)
{
    const connection *c = (const connection *)r->connection;
    request_text type = request_header(r, "content-type");
    bool is_typed = grpc_is_any_content_type(type.data, type.bytes);
    if (r->route.dialect == ROUTE_GRPC)
        return NULL;
    if (is_typed && r->connection->transport->add_trailer == NULL)
        return respond_no_trailers;
    if (is_typed || r->route.kind >= ROUTE_GRPC_INFER)
        return respond_wrong_type;
    return c->is_grpc ? respond_elsewhere : NULL;
}

void accept_run(request *r, request_text method)
{
    const request_routes *routes = r->loop->routes;
    const request_route *at = &routes->of[r->route.kind];
    request_handler refuse = find_refusal(r);
    if (refuse != NULL)
        request_run(r, refuse);
    else if (r->is_about_server && is_method(method, "OPTIONS"))
        request_run(r, respond_options);
    else if (!at->is_absent && !authorize_request(r))
        request_run(r, authorize_refuse);
    else if (!has_verb(r, method))
        request_run(r, respond_wrong_verb);
    else
        request_run(r, at->is_early || service_is_open(r->loop->service) ? at->handle
                                                                         : routes->starting);
}

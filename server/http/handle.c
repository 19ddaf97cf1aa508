/* From libh2o's callback to an answer, or to jobs that will bring one. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/http/edge.h"
#include "server/http/overrides/head_parse.h"

/* The client went, or the answer is out: the request's memory is about to be freed. */
static void on_gone(void *context)
{
    exchange *e = context;
    connection *c = e->connection;
    loop *l = c->loop;
    if (c->pending == e)
        c->pending = NULL;
    bool was_answered = e->is_answered;
    c->is_final = e->request->version < 0x200 && !e->request->http1_is_persistent;
    if (!was_answered)
        e->code = 499;
    if (e->ticket != NULL)
        ticket_abandon(e->ticket);
    if (e->control != NULL)
        repository_routes_abandon(e->control);
    if (c->resets > 0)
        c->resets--; /* reset.c says why */
    if (!was_answered) {
        record_sample sample = {
            .begin_ns = e->begin_ns, .stage_ns = e->stage_ns, .code = 499, .bucket_index = -1};
        record_request(l->server->recorder, e->record, l->index, &sample, clock_now_ns());
    }
    access_log(e);
    free(e->owned);
    c->exchanges--;
    atomic_fetch_sub_explicit(&l->exchange_count, 1, memory_order_relaxed);
    connection_release(c);
}

/* How long the request took to arrive: the library's clock of its loop, good to a millisecond. */
static uint64_t arrival_ns(const h2o_req_t *request)
{
    const struct timeval *begin = &request->timestamps.request_begin_at;
    const struct timeval *now = h2o_get_timestamp(request->conn->ctx, NULL, NULL);
    int64_t us = (now->tv_sec - begin->tv_sec) * 1000000ll + (now->tv_usec - begin->tv_usec);
    return begin->tv_sec == 0 || us <= 0 || us > 3600000000ll ? 0 : (uint64_t)us * 1000;
}

static exchange *begin_exchange(connection *c, h2o_req_t *request)
{
    loop *l = c->loop;
    exchange *e = h2o_mem_alloc_shared(&request->pool, sizeof(*e), on_gone);
    e->request = request;
    e->connection = c;
    e->ticket = NULL;
    e->control = NULL;
    e->accept_ns = clock_now_ns();
    e->begin_ns = e->accept_ns - arrival_ns(request);
    e->is_head = e->is_answered = e->is_infer = false;
    e->code = 0;
    e->retry_after_ns = 0;
    e->body_bytes = 0;
    e->owned = NULL;
    e->record = NULL;
    e->rows = e->batch_rows = 0;
    memset(e->stage_ns, 0, sizeof(e->stage_ns));
    e->stage_ns[STAGE_ACCEPT] = e->accept_ns;
    c->references++;
    c->exchanges++;
    atomic_fetch_add_explicit(&l->exchange_count, 1, memory_order_relaxed);
    atomic_store_explicit(&l->last_request_ns, e->accept_ns, memory_order_relaxed);
    return e;
}

/* Routes that answer while devices start. */
static bool is_served_early(route_kind kind)
{
    return kind == ROUTE_LIVE || kind == ROUTE_READY || kind == ROUTE_METRICS ||
           kind == ROUTE_STATUS_PAGE || kind == ROUTE_UNKNOWN;
}

static void dispatch(exchange *e)
{
    if (!is_served_early(e->route.kind) && !server_is_open(e->connection->loop->server)) {
        serve_starting(e);
        return;
    }
    switch (e->route.kind) {
    case ROUTE_INFER:
    case ROUTE_TF_PREDICT:
        handle_infer(e);
        break;
    case ROUTE_STATUS_PAGE:
        serve_status_page(e);
        break;
    case ROUTE_METRICS:
        serve_metrics(e);
        break;
    case ROUTE_LIVE:
    case ROUTE_READY:
    case ROUTE_MODEL_READY:
        serve_health(e);
        break;
    case ROUTE_SERVER_METADATA:
    case ROUTE_MODEL_METADATA:
    case ROUTE_MODEL_CONFIG:
        serve_metadata(e);
        break;
    case ROUTE_MODEL_STATS:
    case ROUTE_ALL_STATS:
        serve_stats(e);
        break;
    case ROUTE_INDEX:
    case ROUTE_LOAD:
    case ROUTE_UNLOAD:
        serve_repository(e);
        break;
    case ROUTE_TF_STATUS:
    case ROUTE_TF_METADATA:
        serve_tensorflow_metadata(e);
        break;
    case ROUTE_UNKNOWN:
        respond_error(e, e->route.is_tensorflow ? 400 : 404, "no such route");
        break;
    }
}

static void handle_verb(exchange *e)
{
    h2o_iovec_t method = e->request->method;
    e->is_head = h2o_memis(method.base, method.len, H2O_STRLIT("HEAD"));
    bool is_get = e->is_head || h2o_memis(method.base, method.len, H2O_STRLIT("GET"));
    bool is_post = h2o_memis(method.base, method.len, H2O_STRLIT("POST"));
    if (e->route.kind != ROUTE_UNKNOWN && !(e->route.verb == ROUTE_GET ? is_get : is_post)) {
        const char *allow = e->route.verb == ROUTE_GET ? "GET, HEAD" : "POST";
        respond_header(e, "allow", allow, strlen(allow));
        respond_error(e, e->route.is_tensorflow ? 400 : 405,
                      e->route.verb == ROUTE_GET ? "this route takes GET"
                                                 : "this route takes POST");
        return;
    }
    dispatch(e);
}

int handle_request(h2o_handler_t *self, h2o_req_t *request)
{
    (void)self;
    h2o_socket_t *socket = request->conn->callbacks->get_socket(request->conn);
    connection *c = socket->on_close.data;
    loop *l = c->loop;
    if (!atomic_load_explicit(&l->is_awake, memory_order_relaxed))
        atomic_store_explicit(&l->is_awake, true, memory_order_relaxed);
    if (c->is_condemned) {
        request->http1_is_persistent = 0;
        request->res.status = 503;
        request->res.reason = "Service Unavailable";
        h2o_send_inline(request, "", 0);
        return 0;
    }
    exchange *e = begin_exchange(c, request);
    size_t path_bytes = request->query_at == SIZE_MAX ? request->path.len : request->query_at;
    route_parse(request->path.base, path_bytes, &e->route);
    const char *why;
    int refusal = head_parse_refusal(request->input.method.base, &why);
    if (refusal != 0) {
        request->http1_is_persistent = 0;
        respond_error(e, refusal, why);
    } else if (request->input.path.len == 0) {
        respond_error(e, 400, "the path is empty");
    } else {
        handle_verb(e);
    }
    return 0;
}

static h2o_iovec_t find_header(const h2o_req_t *request, const char *name, size_t bytes)
{
    ssize_t at = h2o_find_header_by_str(&request->headers, name, bytes, SIZE_MAX);
    return at < 0 ? h2o_iovec_init(NULL, 0) : request->headers.entries[at].value;
}

static bool read_decimal(h2o_iovec_t digits, uint64_t *out)
{
    uint64_t v = 0;
    if (digits.len == 0 || digits.len > 18)
        return false;
    for (size_t i = 0; i < digits.len; i++) {
        if (digits.base[i] < '0' || digits.base[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(digits.base[i] - '0');
    }
    *out = v;
    return true;
}

/* The body as the parsers see it: decompressed when it has to be. */
static status open_body(exchange *e, ticket *t, const char **body, size_t *bytes)
{
    h2o_req_t *request = e->request;
    const server_limits *limits = &e->connection->loop->server->options->limits;
    ssize_t at = h2o_find_header(&request->headers, H2O_TOKEN_CONTENT_ENCODING, SIZE_MAX);
    *body = request->entity.base;
    *bytes = request->entity.base ? request->entity.len : 0;
    if (at < 0)
        return STATUS_OK;
    h2o_iovec_t value = request->headers.entries[at].value;
    content_coding coding = content_coding_parse(value.base, value.len);
    if (coding == CODING_UNKNOWN) {
        e->code = 415;
        return status_fail(STATUS_UNSUPPORTED,
                           "content encoding \"%.*s\": identity, gzip and deflate are supported",
                           (int)(value.len < 64 ? value.len : 64), value.base);
    }
    if (coding == CODING_IDENTITY)
        return STATUS_OK;
    status failure =
        decompress(coding, *body, *bytes, limits->decompressed_bytes_max, &t->unpacked, bytes);
    *body = t->unpacked;
    return failure;
}

static status parse_body(exchange *e, ticket *t, const char *body, size_t bytes)
{
    loop *l = e->connection->loop;
    const server_options *o = l->server->options;
    infer_request *r = &t->request;
    infer_context context = {.limits = &o->limits,
                             .is_strict = o->strict_json,
                             .can_borrow = e->request->version < 0x200,
                             .take_job = ticket_take_job,
                             .pool = t,
                             .scratch = &l->scratch};
    if (e->route.kind == ROUTE_TF_PREDICT)
        return parse_tensorflow(r, &context, body, bytes);
    h2o_iovec_t header = find_header(e->request, H2O_STRLIT("inference-header-content-length"));
    uint64_t json_bytes = bytes;
    if (header.base != NULL && (!read_decimal(header, &json_bytes) || json_bytes > bytes))
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "Inference-Header-Content-Length \"%.*s\" for a body of %zu bytes",
                           (int)(header.len < 32 ? header.len : 32), header.base, bytes);
    if (header.base != NULL && json_bytes == 0)
        return parse_kserve_raw(r, &context, body, bytes);
    return parse_kserve(r, &context, body, bytes, json_bytes);
}

static uint64_t deadline_of(const exchange *e, const infer_request *r)
{
    uint64_t ms, span = r->timeout_ns;
    h2o_iovec_t header = find_header(e->request, H2O_STRLIT("x-request-timeout-ms"));
    if (header.base != NULL && read_decimal(header, &ms) && ms > 0 && ms < 86400000 &&
        (span == 0 || ms * 1000000 < span))
        span = ms * 1000000;
    if (span == 0 && e->connection->loop->server->options->slo_deadline)
        span = r->model->slo_ns;
    uint64_t otherwise = e->connection->loop->server->options->timeouts.deadline_ms;
    if (span == 0 && otherwise > 0)
        span = otherwise * 1000000;
    return span == 0 ? UINT64_MAX : e->accept_ns + span;
}

static status find_model(const exchange *e, const model **out)
{
    const route *r = &e->route;
    repository *models = e->connection->loop->server->models;
    if (r->label_bytes > 0)
        return repository_find_label(models, r->name, r->name_bytes, r->label, r->label_bytes, out);
    return repository_find(models, r->name, r->name_bytes, r->version, out);
}

void handle_infer(exchange *e)
{
    loop *l = e->connection->loop;
    server *s = l->server;
    const model *m;
    status failure = find_model(e, &m);
    if (failure) {
        respond_status(e, failure, status_message());
        return;
    }
    e->is_infer = true;
    e->record = record_of_model(s->recorder, m);
    ticket *t = ticket_take(l, e);
    bool is_kserve = e->route.kind == ROUTE_INFER;
    int capacity = is_kserve ? 1 : s->options->limits.request_jobs_max;
    job **jobs = is_kserve || t == NULL ? NULL : malloc((size_t)capacity * sizeof(job *));
    if (t == NULL || (!is_kserve && jobs == NULL)) {
        if (t != NULL) {
            infer_request_init(&t->request, m, INFER_KSERVE, &t->one_job, 1);
            ticket_abandon(t);
        } else {
            model_release(m);
        }
        respond_status(e, STATUS_OUT_OF_MEMORY, "no memory for a request");
        return;
    }
    infer_request_init(&t->request, m, is_kserve ? INFER_KSERVE : INFER_TENSORFLOW_ROWS,
                       is_kserve ? &t->one_job : jobs, capacity);
    const char *body;
    size_t bytes;
    failure = open_body(e, t, &body, &bytes);
    if (!failure)
        failure = parse_body(e, t, body, bytes);
    e->stage_ns[STAGE_PARSE] = clock_now_ns();
    t->deadline_ns = deadline_of(e, &t->request);
    if (!failure)
        failure = admit(e, t);
    if (failure) {
        /* The message may lie in memory that goes with the ticket: answer first. */
        respond_status(e, failure, status_message());
        if (e->ticket != NULL)
            ticket_abandon(e->ticket);
        return;
    }
    for (int i = 0; i < t->request.job_count; i++)
        e->rows += t->request.jobs[i]->rows;
    ticket_submit(t);
}

/* What libh2o answers by itself (413, 400, 417) gets our JSON form on its way out. */
typedef struct error_stream {
    h2o_ostream_t super;
    bool is_sent;
    char body[200];
    size_t bytes;
} error_stream;

static void send_error(h2o_ostream_t *self, h2o_req_t *request, h2o_iovec_t *pieces, size_t count,
                       h2o_send_state_t state)
{
    error_stream *stream = (error_stream *)self;
    (void)pieces, (void)count;
    h2o_iovec_t body = h2o_iovec_init(stream->body, stream->bytes);
    size_t n = stream->is_sent ? 0 : 1;
    stream->is_sent = true;
    h2o_ostream_send_next(self, request, &body, n, state);
}

static void on_error_setup(h2o_filter_t *self, h2o_req_t *request, h2o_ostream_t **slot)
{
    (void)self;
    int code = request->res.status;
    connection *c = connection_of(request->conn->callbacks->get_socket(request->conn));
    if (c != NULL && request->version < 0x200 && !request->http1_is_persistent)
        c->is_final = true;
    const char *why = code == 413   ? "the body is larger than the limit"
                      : code == 417 ? "unknown Expect"
                      : code == 400 ? "malformed request body"
                                    : NULL;
    if (why != NULL) {
        error_stream *stream = (error_stream *)h2o_add_ostream(request, sizeof(error_stream), slot);
        stream->super.do_send = send_error;
        stream->is_sent = false;
        stream->bytes =
            (size_t)snprintf(stream->body, sizeof(stream->body), "{\"error\":\"%s\"}", why);
        request->res.content_length = stream->bytes;
        h2o_set_header(&request->pool, &request->res.headers, H2O_TOKEN_CONTENT_TYPE,
                       H2O_STRLIT("application/json"), 1);
        slot = &stream->super.next;
    }
    h2o_setup_next_ostream(request, slot);
}

void handle_library_errors(h2o_hostconf_t *host)
{
    h2o_create_filter(&host->fallback_path, sizeof(h2o_filter_t))->on_setup_ostream =
        on_error_setup;
}

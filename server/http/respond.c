/* Answers. The only place that turns a status into an HTTP code. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/http/edge.h"
#include "server/protocol/text/number_write.h"
#include "server/protocol/text/text_write.h"

#define COMPRESS_BYTES_MIN 1024
#define TEXT_KEEP_BYTES (1 << 20)

static const char *reason_of(int code)
{
    switch (code) {
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 408:
        return "Request Timeout";
    case 413:
        return "Content Too Large";
    case 415:
        return "Unsupported Media Type";
    case 431:
        return "Request Header Fields Too Large";
    case 429:
        return "Too Many Requests";
    case 499:
        return "Client Closed Request";
    case 501:
        return "Not Implemented";
    case 503:
        return "Service Unavailable";
    case 504:
        return "Gateway Timeout";
    default:
        return "Internal Server Error";
    }
}

int respond_code(const exchange *e, status s)
{
    switch (s) {
    case STATUS_OK:
        return 200;
    case STATUS_INVALID_ARGUMENT:
        return 400;
    case STATUS_UNSUPPORTED:
        return e->code == 415 ? 415 : 400;
    case STATUS_NOT_FOUND:
        return 404;
    case STATUS_TOO_LARGE:
        return 413;
    case STATUS_RESOURCE_EXHAUSTED:
        return e->route.is_tensorflow ? 503 : 429;
    case STATUS_UNAVAILABLE:
        return 503;
    case STATUS_DEADLINE_EXCEEDED:
        return 504;
    case STATUS_CANCELLED:
        return 499;
    default:
        return 500;
    }
}

void respond_header(exchange *e, const char *name, const char *value, size_t bytes)
{
    h2o_req_t *request = e->request;
    h2o_iovec_t copy = h2o_strdup(&request->pool, value, bytes);
    h2o_add_header_by_str(&request->pool, &request->res.headers, name, strlen(name), 0, NULL,
                          copy.base, copy.len);
}

static h2o_iovec_t find_header(const h2o_req_t *request, const char *name, size_t bytes)
{
    ssize_t at = h2o_find_header_by_str(&request->headers, name, bytes, SIZE_MAX);
    return at < 0 ? h2o_iovec_init(NULL, 0) : request->headers.entries[at].value;
}

static void add_common_headers(exchange *e)
{
    loop *l = e->connection->loop;
    h2o_req_t *request = e->request;
    h2o_iovec_t trace = find_header(request, H2O_STRLIT("traceparent"));
    if (trace.base != NULL && trace.len <= 128)
        h2o_add_header_by_str(&request->pool, &request->res.headers, H2O_STRLIT("traceparent"), 0,
                              NULL, trace.base, trace.len);
    bool wants_load = l->server->options->endpoint_load ||
                      find_header(request, H2O_STRLIT("endpoint-load-metrics-format")).base != NULL;
    if (wants_load && server_is_open(l->server)) {
        text_buffer line = {0};
        write_endpoint_load(&line, l);
        respond_header(e, "endpoint-load-metrics", line.data, line.bytes);
        text_buffer_dispose(&line);
    }
    if (atomic_load_explicit(&l->server->is_stopping, memory_order_relaxed))
        request->http1_is_persistent = 0;
}

/* Replaces the pieces by one compressed piece when the client takes that. */
static void compress(exchange *e, h2o_iovec_t *pieces, size_t *count, size_t *bytes)
{
    h2o_req_t *request = e->request;
    ssize_t at = h2o_find_header(&request->headers, H2O_TOKEN_ACCEPT_ENCODING, SIZE_MAX);
    if (at < 0 || *bytes < COMPRESS_BYTES_MIN || *count > MODEL_TENSORS_MAX + 1)
        return;
    h2o_iovec_t accepted = request->headers.entries[at].value;
    content_coding coding = content_coding_choose(accepted.base, accepted.len);
    if (coding == CODING_IDENTITY)
        return;
    compress_piece in[MODEL_TENSORS_MAX + 1];
    for (size_t i = 0; i < *count; i++)
        in[i] = (compress_piece){pieces[i].base, pieces[i].len};
    if (e->owned != NULL || compress_pieces(coding, in, (int)*count, &e->owned, bytes))
        return; /* uncompressed is an answer, too */
    pieces[0] = h2o_iovec_init(e->owned, *bytes);
    *count = 1;
    const char *name = coding == CODING_GZIP ? "gzip" : "deflate";
    h2o_add_header(&request->pool, &request->res.headers, H2O_TOKEN_CONTENT_ENCODING, NULL, name,
                   strlen(name));
    h2o_add_header(&request->pool, &request->res.headers, H2O_TOKEN_VARY, NULL,
                   H2O_STRLIT("accept-encoding"));
}

static h2o_generator_t no_more = {NULL, NULL};

/* The pieces must live as long as the exchange. */
static void send_answer(exchange *e, int code, const char *type, h2o_iovec_t *pieces, size_t count)
{
    h2o_req_t *request = e->request;
    size_t bytes = 0;
    assert(!e->is_answered);
    for (size_t i = 0; i < count; i++)
        bytes += pieces[i].len;
    add_common_headers(e);
    h2o_add_header(&request->pool, &request->res.headers, H2O_TOKEN_CONTENT_TYPE, NULL, type,
                   strlen(type));
    compress(e, pieces, &count, &bytes);
    e->is_answered = true;
    e->code = code;
    e->body_bytes = bytes;
    request->res.status = code;
    request->res.reason = reason_of(code);
    request->res.content_length = bytes;
    if (code == 499 || code == 408)
        request->http1_is_persistent = 0;
    /* An empty :path is a stream error of type PROTOCOL_ERROR (RFC 9113, section 8.3.1). */
    bool is_protocol_error = request->version >= 0x200 && request->input.path.len == 0;
    h2o_start_response(request, &no_more);
    h2o_send(request, pieces, e->is_head ? 0 : count,
             is_protocol_error ? H2O_SEND_STATE_ERROR : H2O_SEND_STATE_FINAL);
}

static void record_refusal(exchange *e, int code)
{
    loop *l = e->connection->loop;
    if (!e->is_infer && e->route.kind != ROUTE_INFER && e->route.kind != ROUTE_TF_PREDICT)
        return;
    record_sample sample = {
        .begin_ns = e->begin_ns, .stage_ns = e->stage_ns, .code = code, .bucket_index = -1};
    record_request(l->server->recorder, e->record, l->index, &sample, clock_now_ns());
}

void respond_text(exchange *e, int code, const char *type, const char *body, size_t bytes)
{
    h2o_iovec_t copy = h2o_strdup(&e->request->pool, body, bytes);
    send_answer(e, code, type, &copy, bytes > 0 ? 1 : 0);
}

void respond_error(exchange *e, int code, const char *message)
{
    text_buffer body = {0};
    text_buffer_put(&body, "{\"error\":");
    text_write_json_string(&body, message[0] ? message : reason_of(code),
                           strlen(message[0] ? message : reason_of(code)));
    text_buffer_put(&body, "}");
    if (code == 429 || code == 503) {
        /* Whole seconds, rounded up: who comes back then is not told to wait again. */
        char seconds[24];
        uint64_t s = (e->retry_after_ns + 999999999) / 1000000000;
        int n = snprintf(seconds, sizeof(seconds), "%llu", (unsigned long long)(s ? s : 1));
        respond_header(e, "retry-after", seconds, (size_t)n);
    }
    record_refusal(e, code);
    respond_text(e, code, "application/json", body.data, body.bytes);
    text_buffer_dispose(&body);
}

void respond_status(exchange *e, status s, const char *message)
{
    respond_error(e, respond_code(e, s), message);
}

static char *write_ms(char *out, uint64_t ns)
{
    out = number_write_u64(out, ns / 1000000);
    uint64_t us = ns / 1000 % 1000;
    *out++ = '.';
    *out++ = (char)('0' + us / 100);
    *out++ = (char)('0' + us / 10 % 10);
    *out++ = (char)('0' + us % 10);
    return out;
}

/* W3C Server-Timing. "batch" is forming, padding and placing. */
static void add_server_timing(exchange *e)
{
    const uint64_t *at = e->stage_ns;
    struct {
        const char *name;
        uint64_t from, to;
    } spans[] = {{"queue;dur=", at[STAGE_ADMIT], at[STAGE_QUEUE]},
                 {", batch;dur=", at[STAGE_QUEUE], at[STAGE_PLACE]},
                 {", execute;dur=", at[STAGE_PLACE], at[STAGE_EXECUTE]}};
    h2o_req_t *request = e->request;
    char *line = h2o_mem_alloc_pool(&request->pool, 128), *p = line;
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(spans[i].name);
        memcpy(p, spans[i].name, n);
        p = write_ms(p + n, spans[i].to > spans[i].from ? spans[i].to - spans[i].from : 0);
    }
    h2o_add_header_by_str(&request->pool, &request->res.headers, H2O_STRLIT("server-timing"), 0,
                          NULL, line, (size_t)(p - line));
}

static bool is_finite(const tensor *t)
{
    int64_t count = tensor_count(t);
    for (int64_t i = 0; dtype_is_float(t->dtype) && i < count; i++) {
        if (!isfinite(tensor_get_number(t, i)))
            return false;
    }
    return true;
}

/* A strict server writes no bare NaN: JSON has none. */
static bool can_write(const infer_request *r)
{
    for (int o = 0; o < r->output_count; o++) {
        for (int j = 0; j < r->job_count && !r->outputs[o].is_binary; j++) {
            if (!is_finite(&r->jobs[j]->outputs[r->outputs[o].index]))
                return false;
        }
    }
    return true;
}

/* Strings in the binary form: uint32 length, bytes. Held by the request's pool. */
static h2o_iovec_t pack_strings(h2o_req_t *request, const tensor *t)
{
    const tensor_string *strings = t->data;
    int64_t count = tensor_count(t);
    size_t bytes = 0;
    for (int64_t i = 0; i < count; i++)
        bytes += 4 + strings[i].bytes;
    char *out = h2o_mem_alloc_pool(&request->pool, bytes + 1), *p = out;
    for (int64_t i = 0; i < count; i++) {
        uint32_t length = (uint32_t)strings[i].bytes;
        memcpy(p, &length, sizeof(length));
        memcpy(p + 4, strings[i].data, length);
        p += 4 + length;
    }
    return h2o_iovec_init(out, bytes);
}

static void record_success(exchange *e, const infer_request *r)
{
    loop *l = e->connection->loop;
    const job *last = r->jobs[0];
    for (int i = 1; i < r->job_count; i++) {
        if (r->jobs[i]->stage_ns[STAGE_SLICE] > last->stage_ns[STAGE_SLICE])
            last = r->jobs[i];
    }
    const model *m = r->model;
    int bucket = -1;
    for (int i = 0; i < m->bucket_count && bucket < 0; i++) {
        if (m->buckets[i].shape.batch == last->bucket.batch &&
            m->buckets[i].shape.sequence == last->bucket.sequence &&
            (m->buckets[i].sequences > 0) == last->is_packed)
            bucket = i;
    }
    uint64_t now_ns = clock_now_ns();
    e->batch_rows = last->batch_rows;
    e->stage_ns[STAGE_RECORD] = now_ns;
    record_sample sample = {.begin_ns = e->begin_ns,
                            .stage_ns = e->stage_ns,
                            .code = 200,
                            .rows = e->rows,
                            .batch_rows = last->batch_rows,
                            .bucket = {last->bucket, last->is_packed},
                            .bucket_index = bucket,
                            .fell_back = last->fell_back};
    record_request(l->server->recorder, e->record, l->index, &sample, now_ns);
}

/* Stage times of the job that came last: the request waited for it. */
static void take_stages(exchange *e, const infer_request *r)
{
    const job *last = r->jobs[0];
    for (int i = 1; i < r->job_count; i++) {
        if (r->jobs[i]->stage_ns[STAGE_SLICE] > last->stage_ns[STAGE_SLICE])
            last = r->jobs[i];
    }
    for (int i = STAGE_ADMIT; i <= STAGE_SLICE; i++)
        e->stage_ns[i] = last->stage_ns[i];
}

void respond_infer(exchange *e, const infer_request *r)
{
    loop *l = e->connection->loop;
    h2o_req_t *request = e->request;
    take_stages(e, r);
    for (int i = 0; i < r->job_count; i++) {
        if (r->jobs[i]->result != STATUS_OK) {
            respond_status(e, r->jobs[i]->result, r->jobs[i]->error);
            return;
        }
    }
    if (l->server->options->strict_json && !can_write(r)) {
        respond_error(e, 500, "the answer holds NaN or Infinity, which strict JSON has not");
        return;
    }
    text_buffer *out = &l->text;
    text_buffer_reset(out, TEXT_KEEP_BYTES);
    if (r->protocol == INFER_KSERVE)
        write_kserve(out, r);
    else
        write_tensorflow(out, r);
    h2o_iovec_t pieces[MODEL_TENSORS_MAX + 1];
    size_t count = 1;
    pieces[0] = h2o_strdup(&request->pool, out->data, out->bytes);
    for (int i = 0; i < r->output_count; i++) {
        if (!r->outputs[i].is_binary)
            continue;
        const tensor *t = &r->jobs[0]->outputs[r->outputs[i].index];
        h2o_iovec_t piece = t->dtype == DTYPE_BYTES ? pack_strings(request, t)
                                                    : h2o_iovec_init(t->data, tensor_bytes(t));
        if (piece.len > 0)
            pieces[count++] = piece;
    }
    if (l->server->options->server_timing)
        add_server_timing(e);
    /* The header and the octet stream only if binary bytes follow (PROTOCOL.md). */
    if (count > 1) {
        char *digits = h2o_mem_alloc_pool(&request->pool, NUMBER_INTEGER_CHARS);
        size_t n = (size_t)(number_write_u64(digits, out->bytes) - digits);
        h2o_add_header_by_str(&request->pool, &request->res.headers,
                              H2O_STRLIT("inference-header-content-length"), 0, NULL, digits, n);
    }
    send_answer(e, 200, count > 1 ? "application/octet-stream" : "application/json", pieces, count);
    e->stage_ns[STAGE_RESPOND] = clock_now_ns();
    record_success(e, r);
}

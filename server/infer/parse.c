#include "server/infer/parse.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "server/protocol/compress.h"

/* Larger room for decompressed bodies is freed after each. */
#define UNPACKED_KEEP_BYTES ((size_t)4 << 20)
#define DAY_MS 86400000u

static bool read_decimal(request_text digits, uint64_t *out)
{
    uint64_t v = 0;
    if (digits.bytes == 0 || digits.bytes > 18)
        return false;
    for (size_t i = 0; i < digits.bytes; i++) {
        if (digits.data[i] < '0' || digits.data[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(digits.data[i] - '0');
    }
    *out = v;
    return true;
}

/* The body as the parsers see it: decompressed, into the loop's scratch memory, if it has to be. */
static status open_body(request *r, request_text *body, bool *is_unpacked)
{
    request_loop *l = r->loop;
    request_text value = request_header(r, "content-encoding");
    *body = r->body;
    *is_unpacked = false;
    if (value.data == NULL)
        return STATUS_OK;
    if (request_has_twice(r, "content-encoding") || memchr(value.data, ',', value.bytes) != NULL)
        return status_fail(STATUS_INVALID_ARGUMENT, "two content encodings: one is supported");
    content_coding coding = content_coding_parse(value.data, value.bytes);
    if (coding == CODING_UNKNOWN)
        return status_fail(STATUS_UNSUPPORTED_CODING,
                           "content encoding \"%.*s\": identity, gzip and deflate are supported",
                           (int)(value.bytes < 64 ? value.bytes : 64), value.data);
    if (coding == CODING_IDENTITY)
        return STATUS_OK;
    *is_unpacked = true;
    status failure = decompress(coding, body->data, body->bytes,
                                l->service->options->limits.decompressed_bytes_max, &l->unpacked,
                                &l->unpacked_bytes, &body->bytes);
    body->data = l->unpacked;
    return failure;
}

static void forget_unpacked(request_loop *l)
{
    if (l->unpacked_bytes <= UNPACKED_KEEP_BYTES)
        return;
    free(l->unpacked);
    l->unpacked = NULL;
    l->unpacked_bytes = 0;
}

/* infer_context.acquire_job: the first job takes over the request's reference to the model. */
static job *acquire_job(void *context)
{
    request *r = context;
    job *j = job_pool_acquire(&r->loop->jobs);
    if (j == NULL)
        return NULL;
    if (!r->holds_model)
        model_retain(r->infer.model);
    r->holds_model = false;
    j->model = r->infer.model;
    j->rows = j->length = -1;
    return j;
}

static status parse_body(request *r, request_text body, bool is_unpacked)
{
    request_loop *l = r->loop;
    const server_options *o = l->service->options;
    infer_request *q = &r->infer;
    infer_context context = {.limits = &o->limits,
                             .is_strict = o->strict_json,
                             .can_borrow = r->can_borrow_body && !is_unpacked,
                             .acquire_job = acquire_job,
                             .context = r,
                             .scratch = &l->scratch};
    if (r->route.kind == ROUTE_TF_PREDICT)
        return parse_tensorflow(q, &context, body.data, body.bytes);
    request_text header = request_header(r, "inference-header-content-length");
    uint64_t json_bytes = body.bytes;
    if (header.data != NULL && (!read_decimal(header, &json_bytes) || json_bytes > body.bytes))
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "Inference-Header-Content-Length \"%.*s\" for a body of %zu bytes",
                           (int)(header.bytes < 32 ? header.bytes : 32), header.data, body.bytes);
    if (header.data != NULL && json_bytes == 0)
        return parse_kserve_raw(q, &context, body.data, body.bytes);
    return parse_kserve(q, &context, body.data, body.bytes, json_bytes);
}

/* The jobs move from the loop's scratch array to one that lives as long as they do. */
static status keep_jobs(request *r)
{
    infer_request *q = &r->infer;
    if (q->job_count <= 1) {
        r->one_job = q->job_count ? q->jobs[0] : NULL;
        q->jobs = &r->one_job;
        return STATUS_OK;
    }
    size_t bytes = (size_t)q->job_count * sizeof(job *);
    job **kept = arena_allocate(&q->jobs[0]->memory, bytes);
    if (kept == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %d jobs", q->job_count);
    q->jobs = memcpy(kept, q->jobs, bytes);
    return STATUS_OK;
}

static void drop_jobs(request *r)
{
    for (int i = 0; i < r->infer.job_count; i++)
        job_pool_release(&r->loop->jobs, r->infer.jobs[i]);
    r->infer.job_count = 0;
}

static uint64_t deadline_of(const request *r)
{
    const server_options *o = request_service(r)->options;
    request_text header = request_header(r, "x-request-timeout-ms");
    uint64_t ms, span_ns = r->infer.timeout_ns;
    if (header.data != NULL && read_decimal(header, &ms) && ms > 0 && ms < DAY_MS &&
        (span_ns == 0 || ms * 1000000 < span_ns))
        span_ns = ms * 1000000;
    if (span_ns == 0 && o->slo_deadline)
        span_ns = r->infer.model->slo_ns;
    if (span_ns == 0)
        span_ns = o->timeouts.deadline_ms * 1000000;
    return span_ns == 0 ? UINT64_MAX : r->life.since_ns[LIFE_RECEIVED] + span_ns;
}

status parse_request(request *r, const model *m)
{
    request_loop *l = r->loop;
    bool is_kserve = r->route.kind == ROUTE_INFER, is_unpacked;
    request_text body;
    infer_request_init(&r->infer, m, is_kserve ? INFER_KSERVE : INFER_TENSORFLOW_ROWS,
                       l->parsed_jobs,
                       is_kserve ? 1 : l->service->options->limits.request_jobs_max);
    r->holds_model = true;
    status failure = open_body(r, &body, &is_unpacked);
    if (!failure)
        failure = parse_body(r, body, is_unpacked);
    if (!failure)
        failure = keep_jobs(r);
    forget_unpacked(l);
    uint64_t now_ns = clock_now_ns();
    stage_stamp(r->sample.stage_ns, STAGE_PARSE, now_ns);
    if (failure) {
        drop_jobs(r);
        return failure;
    }
    r->deadline_ns = deadline_of(r);
    request_advance(r, LIFE_PARSE, now_ns);
    return STATUS_OK;
}

#include "server/infer/deadline.h"

#include "server/infer/decimal.h"

#define DAY_MS 86400000u

uint64_t infer_deadline_of(const request *r)
{
    const server_options *o = request_service(r)->options;
    request_text header = request_header(r, "x-request-timeout-ms");
    uint64_t ms, span_ns = r->infer.model != NULL ? r->infer.timeout_ns : 0;
    if (header.data != NULL && decimal_read(header, &ms) && ms > 0 && ms < DAY_MS &&
        (span_ns == 0 || ms * 1000000 < span_ns))
        span_ns = ms * 1000000;
    if (span_ns == 0 && o->slo_deadline && r->infer.model != NULL)
        span_ns = r->infer.model->slo_ns;
    if (span_ns == 0)
        span_ns = o->timeouts.deadline_ms * 1000000;
    return span_ns == 0 ? UINT64_MAX : r->life.since_ns[LIFE_RECEIVED] + span_ns;
}

#include "server/infer/deadline.h"

#include "server/infer/decimal.h"
#include "server/protocol/grpc/call.h"

#define DAY_MS 86400000u

/* Longer than a day is no deadline; none at all is the shortest. */
static bool read_grpc_timeout(const request *r, uint64_t *out_ns)
{
    request_text header = request_header(r, "grpc-timeout");
    if (header.data == NULL || !grpc_read_timeout(header.data, header.bytes, out_ns) ||
        *out_ns >= DAY_MS * UINT64_C(1000000))
        return false;
    *out_ns += *out_ns == 0;
    return true;
}

uint64_t infer_deadline_of(const request *r)
{
    const server_options *o = request_service(r)->options;
    request_text header = request_header(r, "x-request-timeout-ms");
    uint64_t ms, ns, span_ns = r->infer.model != NULL ? r->infer.timeout_ns : 0;
    if (header.data != NULL && decimal_read(header, &ms) && ms > 0 && ms < DAY_MS &&
        (span_ns == 0 || ms * 1000000 < span_ns))
        span_ns = ms * 1000000;
    if (r->route.dialect == ROUTE_GRPC && read_grpc_timeout(r, &ns) &&
        (span_ns == 0 || ns < span_ns))
        span_ns = ns;
    if (span_ns == 0 && o->slo_deadline && r->infer.model != NULL)
        span_ns = r->infer.model->slo_ns;
    if (span_ns == 0)
        span_ns = o->timeouts.deadline_ms * 1000000;
    return span_ns == 0 ? UINT64_MAX : r->life.since_ns[LIFE_RECEIVED] + span_ns;
}

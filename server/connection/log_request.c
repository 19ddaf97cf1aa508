#include "server/connection/log_request.h"

#include "base/clock.h"

static access_text text_of(request_text t)
{
    return (access_text){t.data, t.bytes};
}

void log_request(const request *r, request_text method, request_text path, const char *protocol)
{
    access_log *log = &r->loop->log;
    char host[NI_MAXHOST];
    if (log->fd < 0)
        return;
    access_entry entry = {
        .peer = text_of(connection_peer((const connection *)r->connection, host)),
        .method = text_of(method),
        .path = text_of(path),
        .trace = text_of(request_header(r, "traceparent")),
        .protocol = protocol,
        .code = r->code ? r->code : 499,
        .request_bytes = r->body.bytes,
        .response_bytes = r->response_bytes,
        .is_inference = r->record != NULL,
        .sample = &r->sample,
    };
    access_log_add(log, &entry, clock_now_ns());
}

#include "server/connection/log_request.h"

#include <string.h>

#include "base/clock.h"

static access_text text_of(request_text t)
{
    return (access_text){t.data, t.bytes};
}

/* What the client calls it: the header, or the id of its message. */
static request_text id_of(const request *r)
{
    request_text header = request_header(r, "x-request-id");
    bool has_id = header.data == NULL && r->infer.model != NULL && r->infer.job_count > 0 &&
                  r->infer.id.text != NULL;
    return has_id ? (request_text){r->infer.id.text, r->infer.id.bytes} : header;
}

static const char *tenant_of(const request *r)
{
    const server_options *o = request_service(r)->options;
    return r->tenant > 0 ? server_tenant_of(o, r->tenant)->name : NULL;
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
        .id = text_of(id_of(r)),
        .tenant = tenant_of(r),
        .protocol = protocol,
        .code = r->code ? r->code : 499,
        .request_bytes = r->body.bytes,
        .response_bytes = r->response_bytes,
        .is_inference = r->record != NULL,
        .sample = &r->sample,
    };
    if (r->record != NULL) {
        const char *of = record_name(r->record);
        entry.model = (access_text){of, strlen(of)};
        entry.version = record_version(r->record);
    }
    access_log_add(log, &entry, clock_now_ns());
}

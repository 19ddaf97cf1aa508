#include "server/options/options.h"

#include <string.h>

void server_options_default(server_options *o)
{
    memset(o, 0, sizeof(*o));
    o->listeners[0] = (server_listener){.host = "127.0.0.1", .port = 8080, .is_tls = false};
    o->listener_count = 1;
    o->limits = (server_limits){
        .body_bytes_max = (size_t)64 << 20,
        .decompressed_bytes_max = (size_t)128 << 20,
        .json_depth_max = 64,
        .connections_max = 10000,
        .connection_jobs_max = 1024,
        .connection_resets_max = 500,
        .request_jobs_max = 256,
    };
    o->timeouts = (server_timeouts){
        .request_ms = 30000, .idle_ms = 60000, .handshake_ms = 10000, .deadline_ms = 0};
    o->drain = (server_drain){.delay_ms = 5000, .limit_ms = 30000};
    o->server_timing = true;
    o->repository_control = true;
    o->status_page = true;
    o->tenant_header = "x-tenant";
}

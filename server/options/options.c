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
        .output_bytes_max = (size_t)1 << 30,
        .request_jobs_max = 1024,
        .text_items_max = 32,
        .text_bytes_max = (size_t)16 << 20,
        .held_bytes_max = 0,
        .shared_memory_bytes_max = UINT64_C(1) << 30,
        .connection_held_percent = 25,
        .address_held_percent = 75,
        .address_connections_max = 0,
        .response_bytes_max = (size_t)16 << 20,
        .body_bytes_per_s_min = 240,
        .response_bytes_per_s_min = 240,
    };
    /* Load balancers keep connections for 60 s: they, not the server, should close idle ones. */
    o->timeouts = (server_timeouts){.handshake_ms = 10000,
                                    .head_ms = 10000,
                                    .request_ms = 30000,
                                    .body_rate_ms = 5000,
                                    .response_ms = 30000,
                                    .idle_ms = 75000,
                                    .age_ms = 0,
                                    .liveness_ms = 10000,
                                    .deadline_ms = 0};
    o->drain = (server_drain){.delay_ms = 5000, .limit_ms = 30000};
    o->server_timing = true;
    o->status_page = true;
    o->tenant_header = "x-tenant";
    o->default_tenant = (server_tenant){.name = SERVER_DEFAULT_TENANT, .weight = 1};
}

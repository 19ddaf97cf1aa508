#ifndef SERVER_OPTIONS_OPTIONS_H
#define SERVER_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Everything the HTTP edge is told at start. config/ fills it from JSON and flags; the strings are
 * borrowed until server_run() returns. server_options_default() gives every value. */

#define SERVER_LISTENERS_MAX 16
#define SERVER_LOOPS_MAX 64
#define SERVER_HELPERS_MAX 64

typedef struct server_listener {
    const char *host; /* numeric address or name; "" or "*": all addresses */
    uint16_t port;    /* 0: any free one; the log has it */
    bool is_tls;      /* needs `tls` below */
    bool is_health;   /* health and metrics only, on a loop of their own */
    bool is_admin;    /* whoever reaches it may do everything, unless there are keys */
    const char *path; /* of a Unix socket, instead of host and port; or NULL */
    bool is_grpc;     /* gRPC only */
} server_listener;

typedef struct server_tls {
    const char *certificate_file; /* PEM chain, or NULL; read again at SIGHUP */
    const char *key_file;         /* PEM */
    const char *client_ca_file;   /* PEM; certificates of clients are checked against it; or NULL */
    bool needs_client_certificate;
} server_tls;

/* Ceilings. A request beyond one of them is rejected with a message; nothing else is affected. */
typedef struct server_limits {
    size_t body_bytes_max;         /* request body as received */
    size_t decompressed_bytes_max; /* the same after gzip or deflate */
    int json_depth_max;            /* nesting of arrays and objects */
    int connections_max;           /* open at once, all loops together */
    int connection_jobs_max; /* per connection, executing, also for clients that have gone; beyond:
                                closed */
    int connection_resets_max;    /* HTTP/2 streams reset in a burst; beyond: closed */
    int request_jobs_max;         /* distinct lengths of rows in one request */
    int64_t body_bytes_per_s_min; /* of a body that arrives; 0: any */
    size_t held_bytes_max;        /* held for all clients; 0: a quarter of the memory there is */
    int connection_held_percent;  /* share of that which one connection may have */
    int address_held_percent;     /* and one client address */
    int address_connections_max;  /* 0: connections_max */
    size_t response_bytes_max;    /* that wait for a peer before its next request is begun */
    int64_t response_bytes_per_s_min; /* of responses that wait for their peer; 0: any */
    size_t output_bytes_max;          /* of one request, as the model makes them */
    int text_items_max; /* texts in one request, where the API sets no number itself */
    uint64_t shared_memory_bytes_max; /* of all regions that clients have registered */
    size_t text_bytes_max; /* of all texts of one request, the query of a rerank with each */
} server_limits;

typedef struct server_timeouts {
    uint64_t handshake_ms; /* TLS */
    uint64_t head_ms;      /* head of a request, from its first byte */
    uint64_t request_ms;   /* head and body of a request */
    uint64_t body_rate_ms; /* windows in which limits.body_bytes_per_s_min holds */
    uint64_t response_ms;  /* the same for limits.response_bytes_per_s_min */
    uint64_t idle_ms;      /* connection without a request */
    uint64_t age_ms;       /* of a connection, which then ends politely; 0: none */
    uint64_t liveness_ms;  /* a loop stuck for longer: not live; 0: always live */
    uint64_t deadline_ms;  /* for requests that name none; 0: none */
} server_timeouts;

typedef struct server_drain {
    uint64_t delay_ms; /* after SIGTERM: not ready, yet still serving */
    uint64_t limit_ms; /* after the delay: how long open requests may take; 0: no limit */
} server_drain;

/* A client with a share and quotas: known by its key or, if it has none, by its name in the tenant
 * header. */
typedef struct server_tenant {
    const char *name, *key;               /* key NULL: none */
    uint32_t weight;                      /* share of device time against the others */
    int64_t requests_per_s, tokens_per_s; /* quotas; 0: none */
} server_tenant;
#define SERVER_TENANTS_MAX 63 /* beside the default one */

typedef struct server_options {
    server_listener listeners[SERVER_LISTENERS_MAX];
    int listener_count;
    server_tls tls;
    int loops;   /* threads; 0: one per two cores, at least one */
    int helpers; /* threads for large bodies and responses; 0: one per two cores, at least two */
    server_limits limits;
    server_timeouts timeouts;
    server_drain drain;
    const char *access_log;  /* file, "-" for standard output, or NULL */
    bool strict_json;        /* NaN and Infinity are rejected, and an error when computed */
    bool endpoint_load;      /* ORCA header on every response (else only when asked for) */
    bool server_timing;      /* Server-Timing header on inference responses */
    bool repository_control; /* load and unload over HTTP by whoever has no key */
    bool shared_memory;      /* regions of it, the same */
    const char *keys_file;   /* who may do what (server/access/table.h); NULL: everybody may */
    bool status_page;        /* GET / */
    server_tenant tenants[SERVER_TENANTS_MAX];
    int tenant_count;
    server_tenant default_tenant; /* clients that are none of them: number 0; it has no key */
    const char *tenant_header;    /* names a tenant that has no key */
    const char *default_model;    /* of routes that name none; NULL: the only one that takes text */
    bool triton_names;            /* /metrics has Triton's names, too */
    const char *health_route, *predict_route; /* paths that a platform chose; or NULL */
    bool slo_deadline; /* requests without a deadline get their model's objective */
} server_options;

#define SERVER_DEFAULT_TENANT "default"
/* By number: 0 is the default one, the others follow in order. */
static inline const server_tenant *server_tenant_of(const server_options *o, int number)
{
    return number == 0 ? &o->default_tenant : &o->tenants[number - 1];
}

/* Listens on 127.0.0.1:8080, no TLS, no access log. */
void server_options_default(server_options *o);

#endif

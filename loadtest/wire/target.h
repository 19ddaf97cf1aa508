#ifndef LOADTEST_WIRE_TARGET_H
#define LOADTEST_WIRE_TARGET_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

typedef struct ssl_ctx_st SSL_CTX;

typedef enum target_protocol {
    TARGET_AUTO, /* https: ALPN decides; http: HTTP/1.1 */
    TARGET_HTTP1,
    TARGET_HTTP2 /* by prior knowledge (h2c) or ALPN */
} target_protocol;

/* Where the load goes: a parsed URL, resolved once. Read-only after target_init. */
typedef struct target {
    char *host, *port, *authority, *path; /* owned; path begins with '/' and may hold a query */
    bool tls;
    target_protocol protocol;
    struct sockaddr_storage address;
    socklen_t address_bytes;
    SSL_CTX *tls_context; /* NULL without TLS */
} target;

/* http://HOST[:PORT][/PATH] or https://...; IPv6 hosts in brackets. The first address that accepts
 * a connection is taken. `ca_file` may be NULL (the system's); `insecure` skips verification.
 * STATUS_INVALID_ARGUMENT (the URL), STATUS_NOT_FOUND (the host), STATUS_UNAVAILABLE (nobody
 * listens), STATUS_IO (TLS files). */
status target_init(target *t, const char *url, target_protocol protocol, const char *ca_file,
                   bool insecure) MUST_CHECK;
void target_dispose(target *t);

#endif

#ifndef SERVER_HTTP2_CONNECTION_H
#define SERVER_HTTP2_CONNECTION_H

#include "server/connection/connection.h"
#include "server/http2/exchange.h"

/* HTTP/2: a session of server/http2 on a socket of libh2o. */

/* What the connections of one loop share. */
#define HTTP2_SPARE_MAX 32
typedef struct http2_shared {
    h2o_context_t *context;
    http2_memory memory; /* of their sessions */
    http2_exchange_pool exchanges;
    text_buffer spare[HTTP2_SPARE_MAX]; /* for what is being written */
    int spare_count;
} http2_shared;

/* On the loop's thread, before it runs. `helpers` may be NULL. */
void http2_shared_start(http2_shared *shared, h2o_context_t *context, struct offload_pool *helpers);

/* The connection, whose first bytes may be in its socket's input, speaks HTTP/2. */
void http2_start(connection *c);

/* A request that came over HTTP/1.1 and asked for an upgrade: stream 1. Its texts are borrowed for
 * the call. */
typedef struct http2_first {
    const http2_head *head;
    request_text settings, body;
    uint64_t begun_ns;
} http2_first;
void http2_start_upgraded(connection *c, const http2_first *first);

#endif

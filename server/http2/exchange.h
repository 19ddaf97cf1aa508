#ifndef SERVER_HTTP2_EXCHANGE_H
#define SERVER_HTTP2_EXCHANGE_H

#include "base/arena.h"
#include "server/budget/budget.h"
#include "server/budget/rate_window.h"
#include "server/http2/session/session.h"

/* One stream of an HTTP/2 connection: the body as it arrives, and the response while it is made.
 * From the loop's pool; lives until the stream is closed. */
#define HTTP2_TRAILERS_MAX 6
typedef struct http2_exchange http2_exchange;
struct http2_exchange {
    http2_exchange *next; /* idle in the pool; or on->waiting_first */
    struct http2_connection *on;
    http2_stream *stream;
    const http2_head *head;  /* NULL after the stream is closed */
    struct request *request; /* NULL: not begun, or refused without one */
    bool is_arriving;        /* the body is not complete */
    bool is_running;         /* begun and not answered */
    bool is_waiting;         /* complete, for others' responses to be taken */
    char *body;              /* of large_memory.h */
    size_t body_bytes, body_capacity;
    size_t body_held, response_held; /* counted in the connection's budget */
    size_t worked_bytes;             /* of its worked_bytes, while it runs */
    uint64_t begun_ns;
    rate_window rate; /* of the body while it arrives, then of the response */
    size_t response_bytes;
    arena memory; /* of the response, and of the head of an upgraded request */
    http2_field fields[HTTP2_FIELDS_MAX];
    int field_count;
    http2_field trailers[HTTP2_TRAILERS_MAX];
    int trailer_count;
    /* A stream of messages (call.c): its state; or, of one message, the stream's exchange, the next
     * message's, and the response until it is sent. */
    struct http2_call *call;
    http2_exchange *parent, *next_part;
    http2_piece *pieces; /* in `memory` */
    int piece_count;
};

/* A loop's exchanges that wait to be used again. Zeroed is empty, and has no helpers. */
typedef struct http2_exchange_pool {
    http2_exchange *idle;
    int idle_count;
    struct offload_pool *helpers; /* they free large bodies; NULL: nobody else does */
} http2_exchange_pool;

/* NULL: no memory. */
http2_exchange *http2_exchange_acquire(http2_exchange_pool *pool);
void http2_exchange_release(http2_exchange_pool *pool, http2_exchange *x);

/* Adds to the body, whose length is `expected` (-1: not known) and may not pass `bytes_max`; counts
 * it in `held`. STATUS_TOO_LARGE; STATUS_UNAVAILABLE: the budget or memory is short. */
status http2_exchange_add(http2_exchange *x, const void *data, size_t bytes, int64_t expected,
                          size_t bytes_max, budget_account *held) MUST_CHECK;
/* A copy in `memory`, or NULL: there is none. */
http2_head *http2_exchange_copy_head(arena *memory, const http2_head *head);
/* The body is not needed. */
void http2_exchange_drop_body(http2_exchange_pool *pool, http2_exchange *x, budget_account *held);

#endif

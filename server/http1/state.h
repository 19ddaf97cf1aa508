#ifndef SERVER_HTTP1_STATE_H
#define SERVER_HTTP1_STATE_H

#include "server/budget/rate_window.h"
#include "server/connection/connection.h"
#include "server/http1/half_close.h"

/* What the files of this folder keep for each HTTP/1 connection: its `state`. */
typedef struct http1_state {
    bool is_final;          /* the response that was sent ends the connection */
    bool is_draining;       /* the next response ends the connection */
    int closing_code;       /* the response before the close: 408, or 503; 0: none */
    bool is_responding;     /* a response was given to the library, and is not written yet */
    bool is_head_complete;  /* of the request that is arriving */
    rate_window rate;       /* of the body that is arriving, or of the response */
    size_t response_held;   /* counted in the budget */
    size_t input_held;      /* the same, of input that is not counted as it grows (check.c) */
    size_t discarded_bytes; /* after the last response */
    /* The head just read is refused with this code; 0: it is not. Set while the head is read, and
     * consumed by the request that it becomes. */
    int refusal_code;
    bool is_unauthenticated; /* the same, of a client that may not send its body; it sends on */
    bool has_key;            /* and it sent a key */
    char refusal[256];
    int body_code; /* the same of a chunked body, consumed by the library's own response */
    half_close half_close;
    struct tls_parts *parts; /* of the response that is being written over TLS; NULL: it is small */
    h2o_req_t *waiting;      /* has arrived, and is served in the next turn of the loop */
} http1_state;

/* NULL: the connection does not speak HTTP/1, or not any more. */
http1_state *http1_state_of(const connection *c);

/* check.c: connection_protocol.check */
void http1_check(connection *c, uint64_t now_ns);

/* Hooks of overrides/, installed before any loop runs. */
void http1_install_hooks(size_t body_bytes_max);

#endif

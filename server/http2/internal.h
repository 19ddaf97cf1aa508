#ifndef SERVER_HTTP2_INTERNAL_H
#define SERVER_HTTP2_INTERNAL_H

#include "server/http2/connection.h"

/* What connection.c and transport.c share. */
typedef struct http2_connection {
    connection *base;
    http2_shared *shared;
    http2_session *session;
    http2_exchange *arriving; /* whose body is not complete */
    text_buffer out;          /* being written, or without memory */
    bool is_writing, is_reading, is_closing, is_draining;
    uint64_t now_ns;     /* when the library was called last */
    uint64_t busy_ns;    /* when a stream was last open */
    uint64_t written_ns; /* when the peer last took something, or had nothing to take */
    h2o_timeout_entry_t tick, flush;
} http2_connection;

void http2_connection_respond(http2_exchange *x, int code, const http2_piece *pieces, int count);
/* transport.c: requests over HTTP/2; their `stream` is an http2_exchange. */
const request_transport *http2_transport(void);

/* request_transport.close */
void http2_connection_close_for_abuse(request_connection *c);

#endif

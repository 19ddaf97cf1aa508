#ifndef SERVER_HTTP2_INTERNAL_H
#define SERVER_HTTP2_INTERNAL_H

#include "server/http2/connection.h"
#include "server/request/request.h"

/* What connection.c and transport.c share. */
typedef struct http2_connection {
    connection *base;
    http2_shared *shared;
    http2_session *session;
    text_buffer out; /* being written, or without memory */
    bool is_writing, is_reading, is_closing, is_draining;
    bool is_paused;   /* its share of this turn is used up: the rest of the input waits */
    uint64_t now_ns;  /* when the library was called last */
    uint64_t busy_ns; /* when a stream was last open */
    /* Since when all is said and the peer's end of the connection is waited for; 0: not yet. */
    uint64_t linger_ns;
    size_t discarded_bytes; /* since then */
    /* What waits for the peer: a write for its socket, responses for its windows. */
    rate_window write_rate, window_rate;
    size_t session_held;      /* of the session and its output, counted in the budget */
    size_t response_held;     /* of the responses that are not taken yet */
    size_t response_held_max; /* the most for one response so far */
    int repeated;             /* calls whose message is asked again and again */
    int running;              /* requests that were begun and are not answered */
    /* Requests that wait until fewer bytes of responses do. */
    http2_exchange *waiting_first, *waiting_last;
    uint64_t received_bytes; /* of bodies */
    h2o_timeout_entry_t flush;
} http2_connection;

/* check.c: connection_protocol.check */
void http2_connection_check(connection *c, uint64_t now_ns);

/* refuse.c: handlers for http2_connection_respond_early(). */
void http2_respond_large_head(request *r);
void http2_respond_large_body(request *r);
void http2_respond_no_memory(request *r);
void http2_respond_unauthenticated(request *r); /* 401 */
/* May the client have a body received that is larger than UNAUTHENTICATED_BODY_BYTES_MAX? */
bool http2_may_send(const http2_exchange *x);
/* Before `bytes` more of the body: false, if it is that large with them, and the client may not. */
bool http2_may_add(const http2_exchange *x, size_t bytes);

/* Answers in the place of the route's handler, before the body is complete. */
void http2_connection_respond_early(http2_exchange *x, request_handler handle);
/* Counts what the session holds, and `more`. */
void http2_connection_count(http2_connection *h, size_t more);
/* Soon, once for all that is submitted in this turn of the loop. */
void http2_connection_flush_later(http2_connection *h);

void http2_connection_respond(http2_exchange *x, int code, const http2_piece *pieces, int count);
/* The request of that exchange is complete: makes it, and runs it. May release the exchange. */
void http2_connection_run(http2_exchange *x);
void http2_connection_stop_running(http2_exchange *x);
/* May one more request be begun? While responses wait for the peer, those that are being made count
 * as if they were as large as the largest one. */
bool http2_connection_may_run(const http2_connection *h);

/* call.c: gRPC calls that are streams of messages. The stream of HTTP/2 stays open; each message
 * becomes a request on an exchange of its own, a part, and its response a message of the stream, in
 * the order in which they are done. */
bool http2_call_is_streamed(const http2_head *head);
/* The head has arrived; if it has a body, data and end follow. */
void http2_call_begin(http2_exchange *x, bool has_body);
void http2_call_data(http2_exchange *x, const void *data, size_t bytes);
void http2_call_end(http2_exchange *x);
/* The stream is closed: what still runs for it is cancelled. */
void http2_call_close(http2_exchange *x);
/* What was being sent on it is sent. */
void http2_call_sent(http2_exchange *x);
/* About once a second. */
void http2_call_check(http2_exchange *x);
/* The response to a part. Without pieces it is an error, which ends the call. May close the part.
 */
void http2_call_respond(http2_exchange *part, const http2_piece *pieces, int count);
/* There is no request for a part, which is closed. */
void http2_call_refuse(http2_exchange *part);

/* transport.c: requests over HTTP/2; their `stream` is an http2_exchange. */
const request_transport *http2_transport(void);

#endif

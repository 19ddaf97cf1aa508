#ifndef TESTS_UNIT_SERVER_HTTP2_SESSION_PEER_H
#define TESTS_UNIT_SERVER_HTTP2_SESSION_PEER_H

#include <nghttp2/nghttp2.h>

#include "server/http2/session/session.h"

/* A session under test and a client of libnghttp2, joined in memory. The server's side echoes: the
 * response to a request is its body, or its path where there is none. */

#define PEER_STREAMS_MAX 512

typedef struct peer_request {
    int32_t id;
    http2_stream *stream; /* NULL: not seen, or closed */
    char path[64];
    text_buffer body;
    bool is_ended, is_closed, was_answered, is_too_large;
    int sent_parts; /* of a response in parts */
    /* What the client saw. */
    int status;
    text_buffer answer;
    bool has_trailer, is_done;
    uint32_t error;
} peer_request;

typedef struct peer {
    http2_session *server;
    nghttp2_session *client;
    http2_limits limits;
    http2_memory memory;
    uint64_t now_ns;
    peer_request requests[PEER_STREAMS_MAX];
    int request_count;
    bool is_holding;   /* the server does not respond by itself */
    bool is_consuming; /* bodies are consumed as they come */
    bool is_pausing;   /* the server pauses after each request */
    int reads;         /* calls of http2_session_read() */
    int goaways;
    int32_t last_stream;
    uint32_t goaway_error;
    status failure; /* of the server's last read */
} peer;

void peer_init(peer *p);
void peer_start(peer *p); /* with p->limits */
void peer_dispose(peer *p);
/* Carries bytes both ways until nothing moves. */
void peer_run(peer *p);
/* What the server sends now, to the client. */
void peer_to_client(peer *p);
/* What the client sends now, to the server, `piece` bytes at a time. */
void peer_to_server(peer *p, size_t piece);
/* Raw bytes to the server. */
void peer_inject(peer *p, const void *data, size_t bytes);
/* Asks for `path` with a body of `bytes` bytes; 0: GET. */
int32_t peer_ask(peer *p, const char *path, size_t bytes);
peer_request *peer_find(peer *p, int32_t id);
void peer_respond(peer *p, peer_request *r);

#endif

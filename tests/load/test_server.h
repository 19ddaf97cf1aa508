#ifndef TEST_SERVER_H
#define TEST_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text/text_buffer.h"

/* A server with known faults: every answer comes after a delay drawn from a known distribution, and
 * the whole process can stall. One thread. HTTP/1.1, or HTTP/2 by prior knowledge. */
typedef struct server_connection server_connection;
typedef struct server_request server_request;

struct server_request {
    server_connection *connection; /* NULL: gone before the answer was due */
    uint64_t received_ns, intended_ns;
    int code;
    int32_t stream;
    bool close;
    const char *body;
    size_t body_bytes;
    server_request *next; /* of the same connection */
};

struct server_connection {
    int fd;
    text_buffer in, out;
    size_t out_sent;
    bool sniffed, http2, closing, dead;
    void *session; /* HTTP/2 */
    server_request *requests;
};

/* A whole request came: `path` is NUL-terminated. Its answer is sent when due. */
void server_take(server_connection *c, int32_t stream, const char *method, const char *path,
                 const char *body, size_t body_bytes);
/* Server-Timing's value for this request; "" for none. */
const char *server_timing_of(const server_request *r);

/* HTTP/2. */
void http2_start(server_connection *c);
bool http2_receive(server_connection *c, const char *data, size_t bytes);
void http2_answer(server_connection *c, server_request *r);
/* Moves frames to c->out. */
void http2_flush(server_connection *c);
void http2_dispose(server_connection *c);

#endif

#ifndef LOADTEST_WIRE_HTTP1_PARSE_H
#define LOADTEST_WIRE_HTTP1_PARSE_H

#include "base/status.h"
#include "loadtest/wire/response.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads HTTP/1.1 responses (RFC 9112) from pieces of any size. Pure: no sockets, no time. */
#define HTTP1_HEAD_BYTES_MAX 65536

typedef enum http1_stage {
    HTTP1_HEAD,
    HTTP1_BODY,        /* `left` more bytes */
    HTTP1_BODY_TO_END, /* until the connection closes */
    HTTP1_CHUNK_SIZE,
    HTTP1_CHUNK_DATA,
    HTTP1_CHUNK_END,
    HTTP1_TRAILER,
    HTTP1_DONE
} http1_stage;

typedef struct http1_parser {
    http1_stage stage;
    bool keep_alive; /* after HTTP1_DONE: the connection may carry another request */
    bool started;    /* at least one byte of this response was seen */
    bool no_body;    /* the request was HEAD: a length tells of no body; stays through a reset */
    uint64_t left;
    text_buffer line; /* what is not complete yet of the head, a chunk size or a trailer */
} http1_parser;

void http1_parser_reset(http1_parser *p);
void http1_parser_dispose(http1_parser *p);

/* Consumes up to `bytes`, writing to `a`; `*used` tells how many, fewer only when the response is
 * complete (stage HTTP1_DONE). STATUS_CORRUPT: not HTTP/1.x, or framing that cannot be trusted. */
status http1_parse(http1_parser *p, response *a, const char *data, size_t bytes,
                   size_t *used) MUST_CHECK;

/* The peer closed. STATUS_OK if that ends the response properly (stage becomes HTTP1_DONE). */
status http1_parse_end(http1_parser *p) MUST_CHECK;

#endif

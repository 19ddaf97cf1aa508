#ifndef LOADTEST_WIRE_REQUEST_H
#define LOADTEST_WIRE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct connection connection;

/* What every request of a run has in common: method, target and headers. Read-only during the run.
 */
typedef struct request_header {
    const char *name, *value; /* name in lower case */
} request_header;

typedef struct request_head {
    const char *method, *authority, *path, *scheme;
    const request_header *headers; /* those of --header */
    size_t header_count;
} request_head;

/* One body, prepared before the run, so that sending is a copy. Read-only during the run. */
typedef struct payload {
    const char *body;
    size_t body_bytes;
    const char *content_type;                   /* static; NULL without a body */
    uint64_t header_json_bytes;                 /* Inference-Header-Content-Length; 0: not sent */
    char length_text[24], header_json_text[24]; /* both numbers as text, for HTTP/2 */
    const char *http1;                          /* the whole HTTP/1.1 request */
    size_t http1_bytes;
    uint32_t tokens; /* the length that was drawn or given, times the rows; 0 if unknown */
    uint32_t index;  /* its place in the pool, and its line in --expect */
} payload;

/* One request in flight. Owned by a worker. */
typedef struct request {
    uint64_t intended_ns; /* when it should have been sent: latency counts from here */
    uint64_t sent_ns;     /* when it was handed to a connection */
    uint64_t deadline_ns;
    const payload *payload;
    connection *connection;          /* NULL while it waits for one */
    void *stream;                    /* HTTP/2: the connection's record of it */
    struct request *next, *previous; /* all live ones, by deadline */
    struct request *queue_next;      /* waiting for a connection */
    uint32_t attempts;
    bool measured, queued;
} request;

/* Why a request failed. */
typedef enum request_error {
    REQUEST_TIMEOUT,        /* no complete response within --timeout of the intended time */
    REQUEST_CONNECT,        /* no connection: refused, unreachable, TLS */
    REQUEST_CLOSED,         /* the connection was lost while waiting */
    REQUEST_RESET,          /* HTTP/2: the stream was reset */
    REQUEST_PROTOCOL,       /* the response is not HTTP */
    REQUEST_REFUSED,        /* 429 or 503: the server rejected it */
    REQUEST_DEADLINE,       /* 504: the deadline passed */
    REQUEST_HTTP_OTHER,     /* any other code that is not 2xx */
    REQUEST_WRONG_RESPONSE, /* 2xx, but not what --expect says */
    REQUEST_ERROR_COUNT
} request_error;

#endif

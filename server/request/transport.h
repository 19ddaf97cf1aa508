#ifndef SERVER_REQUEST_TRANSPORT_H
#define SERVER_REQUEST_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "server/budget/budget.h"
#include "server/budget/refusal_pace.h"

/* How requests arrive and responses leave: what the HTTP library of a connection does for the
 * requests on it. Nothing above this interface knows the library. */

typedef struct request request;
typedef struct request_connection request_connection;

/* Text with a length, borrowed. */
typedef struct request_text {
    const char *data; /* NULL: absent */
    size_t bytes;
} request_text;

typedef struct request_transport {
    /* The value of the first header of that name (lower case), or absent. Valid while the stream
     * is open. */
    request_text (*header)(const request *r, const char *name, size_t name_bytes);
    /* How many headers have that name. */
    int (*header_count)(const request *r, const char *name, size_t name_bytes);
    /* Memory that lives until the stream is closed; NULL: there is none. */
    void *(*allocate)(request *r, size_t bytes);
    /* Adds a header to the response. Name and value must live until the stream is closed. */
    void (*add_header)(request *r, request_text name, request_text value);
    /* The same of a trailer; NULL: this transport has none, and so no gRPC. */
    void (*add_trailer)(request *r, request_text name, request_text value);
    /* Takes back the headers and trailers that were added. */
    void (*drop_headers)(request *r);
    /* Sends status line, headers and body, once. The pieces must live until the stream is closed,
     * which may happen inside this call. */
    void (*send)(request *r, int code, const char *reason, const request_text *pieces, int count);
    /* From now on calls request_cancel() when the client closes its side: the request waits for
     * what is done elsewhere, and this connection would not notice otherwise. */
    void (*watch)(request *r);
    /* Jobs read the body in place and outlive the response: keeps it until drop_body(). */
    void (*keep_body)(request *r);
    void (*drop_body)(request *r);
    /* The peer went over a ceiling: nothing more is served on this connection, and it is closed as
     * soon as the library can. */
    void (*close)(request_connection *c);
} request_transport;

/* What a connection's requests share; the transport's own connection begins with it. One thread. */
struct request_connection {
    const request_transport *transport;
    struct request_loop *loop;
    int references;           /* of the socket, and one of each request that is not released */
    int requests;             /* whose stream is open */
    int unanswered;           /* that have not ended */
    int jobs;                 /* with the batcher */
    bool is_closed_for_abuse; /* over a ceiling: nothing more is served */
    budget_account held;      /* bytes held for it */
    size_t worked_bytes;      /* of these, for requests that the server works for */
    refusal_pace refusals;    /* told to it */
    request *waiting;         /* HTTP/1: the request that is watched */
    unsigned listener_rights; /* of whoever reaches its listener; 0: of nobody by that alone */
    bool is_local;            /* a Unix socket: files' permissions say who reaches it */
    char *certificate_names;  /* of the client's certificate: each ends with a zero byte, the last
                                 one with two; malloc'd, or NULL */
};

/* Frees it at the last release: it was malloc'd. */
void request_connection_release(request_connection *c);

#endif

#ifndef SERVER_CONNECTION_ACCEPT_H
#define SERVER_CONNECTION_ACCEPT_H

#include "server/connection/connection.h"

/* Stage accept: a request has arrived, whatever the version of HTTP. */
typedef struct arrival {
    void *stream;              /* the transport's */
    request_text method, path; /* with the query; valid while the stream is open */
    request_text body;
    bool can_borrow_body; /* the body stays where it is until the stream is closed */
    uint64_t begun_ns;    /* when its first byte came */
} arrival;

/* Makes a request of it, to be given to accept_run() or request_run(). NULL: too many are open, or
 * memory is out. */
request *accept_request(connection *c, const arrival *a);

/* Calls the handler of its route, or answers that the route takes another method. The request may
 * be released inside. */
void accept_run(request *r, request_text method);

/* Of whoever may not be served at all: what is larger is refused before it is received. */
#define UNAUTHENTICATED_BODY_BYTES_MAX 65536

#define ACCEPT_TOO_MANY "{\"error\":\"too many requests are open\"}"

#endif

#ifndef SERVER_HTTP1_TRANSPORT_H
#define SERVER_HTTP1_TRANSPORT_H

#include <h2o.h>

#include "server/request/transport.h"

/* libh2o as a transport of requests: HTTP/1.1 and HTTP/2. A request's `stream` is its h2o_req_t. */
const request_transport *http1_transport(void);

/* Notes that `r` is the request of `stream`, until the library disposes of it. */
void http1_transport_bind(h2o_req_t *stream, request *r);

/* Tells requests below `path` that their stream is closed. Once, at configuration. */
void http1_transport_configure(h2o_pathconf_t *path);

#endif

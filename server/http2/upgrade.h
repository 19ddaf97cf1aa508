#ifndef SERVER_HTTP2_UPGRADE_H
#define SERVER_HTTP2_UPGRADE_H

#include <h2o.h>

#include "server/connection/connection.h"

/* `Upgrade: h2c` (RFC 7540, section 3.2): 101, then the request is stream 1 of an HTTP/2
 * connection. False: the request does not ask for it, or in a form that is to be ignored. */
bool http2_upgrade(connection *c, h2o_req_t *stream);

#endif

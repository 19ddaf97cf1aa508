#ifndef SERVER_HTTP1_HANDLER_H
#define SERVER_HTTP1_HANDLER_H

#include <h2o.h>

#include "server/connection/connection.h"

/* HTTP/1.1 by libh2o. */

/* Each request that has arrived below `path` becomes a request of ours, and the handler of its
 * route is called; a request that asks for `Upgrade: h2c` is handed to http2_upgrade(). Once,
 * at configuration. */
void http1_configure(h2o_pathconf_t *path);

/* The connection, whose first bytes may be in its socket's input, speaks HTTP/1. */
void http1_start(connection *c);

#endif

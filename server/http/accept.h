#ifndef SERVER_HTTP_ACCEPT_H
#define SERVER_HTTP_ACCEPT_H

#include <h2o.h>

#include "server/request/routes.h"

/* Stage accept: libh2o hands over each request that has arrived below `path`; it becomes a request
 * of ours, and the handler of its route is called. `routes` are borrowed. Once, at configuration.
 */
void accept_configure(h2o_pathconf_t *path, const request_routes *routes);

#endif

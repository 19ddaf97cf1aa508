#ifndef SERVER_HTTP_EDGE_H
#define SERVER_HTTP_EDGE_H

#include "server/request/routes.h"
#include "server/service/service.h"

/* HTTP/1.1 and HTTP/2 over TCP and TLS, on libh2o: listeners, and a thread for each event loop.
 * Nothing above this header knows the library. One for the process, because it replaces functions
 * of the library. */
typedef struct edge edge;

/* Listens, and starts service->loop_count loops, which answer requests by `routes`, and if there
 * is a listener for health one more for it, which answers by `health_routes`; returns when all of
 * them accept connections. `service` and the routes are borrowed until the process ends.
 * STATUS_IO: an address cannot be listened on; STATUS_INVALID_ARGUMENT: a TLS file; messages name
 * it. */
status edge_start(service *s, const request_routes *routes, const request_routes *health_routes,
                  edge **out) MUST_CHECK;

/* Reads the TLS files again, for new connections; on failure the old ones stay. Nothing happens
 * without TLS. */
status edge_reload_tls(edge *e, bool *has_tls) MUST_CHECK;

/* The loops take the service's new table of who is known. */
void edge_renew_access(edge *e);

/* No new connections; those that are open end with their next response. Health goes on. */
void edge_close(edge *e);
/* Tells the loops to end. */
void edge_end(edge *e);
/* Requests that have ended take their jobs home: after the loops have ended and the batcher has
 * stopped. The jobs hold models. */
void edge_collect(edge *e);
/* Does none of them run any more? */
bool edge_has_ended(edge *e);

#endif

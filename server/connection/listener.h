#ifndef SERVER_CONNECTION_LISTENER_H
#define SERVER_CONNECTION_LISTENER_H

#include "server/connection/connection.h"

/* Takes newcomers from the listeners of a loop, as far as there is room, and looks after its
 * connections once a second. */

/* On the loop's thread, before it runs. */
void connections_start(connections *all, h2o_loop_t *loop);

/* The reader of a listening socket whose `data` is its listener_context, whose `accept.ctx` belongs
 * to the loop of `connections_start()` on this thread. */
void connection_on_accept(h2o_socket_t *listener, const char *error);
/* Accepts all that wait, as far as there is room: before the listener is closed, because the kernel
 * would reset them. */
void connection_accept_rest(h2o_socket_t *listener);

/* Ends connections that other loops want ended. Not from within a connection. */
void connections_help(connections *all);

#endif

#ifndef SERVER_HTTP1_OVERRIDES_SOCKET_WRITE_H
#define SERVER_HTTP1_OVERRIDES_SOCKET_WRITE_H

#include <h2o.h>

/* Replaces h2o_socket_write(), for responses whose first bytes were sent before the library wrote
 * them. */

/* How many bytes at the front of what the library is about to write have been sent already: fewer
 * than its first buffer has. Called before each write. */
typedef size_t socket_write_hook(const h2o_socket_t *socket);

/* Once, before any loop runs; asserts that the library calls ours. */
void socket_write_install(socket_write_hook *bytes_sent);

/* The library's own function. */
void socket_write_now(h2o_socket_t *socket, h2o_iovec_t *pieces, size_t count,
                      h2o_socket_cb on_written);

#endif

#ifndef SERVER_HTTP1_OVERRIDES_SOCKET_CLOSE_H
#define SERVER_HTTP1_OVERRIDES_SOCKET_CLOSE_H

#include <h2o.h>
#include <stdbool.h>

/* Replaces h2o_socket_close(), by which libh2o ends an HTTP/1 connection whose request did not
 * arrive in time, without a response. */

/* Called before each close. True: the callee closes the socket itself, with socket_close_now(). */
typedef bool socket_close_hook(h2o_socket_t *socket);

/* Once, before any loop runs; asserts that the library calls ours. */
void socket_close_install(socket_close_hook *before_close);

/* The library's own function. */
void socket_close_now(h2o_socket_t *socket);

#endif

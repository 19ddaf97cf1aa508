#ifndef SERVER_HTTP1_OVERRIDES_SOCKET_WRITE_H
#define SERVER_HTTP1_OVERRIDES_SOCKET_WRITE_H

#include <h2o.h>
#include <stdbool.h>

/* Replaces h2o_socket_write(), for responses whose first bytes were sent before the library wrote
 * them, and for those that are too large to be encrypted in one go. */

typedef struct socket_write_hooks {
    /* How many bytes at the front of what the library is about to write have been sent already:
     * fewer than its first buffer has. Called before each write. */
    size_t (*bytes_sent)(const h2o_socket_t *socket);
    /* Called after that for sockets with TLS. True: the callee writes, with socket_write_now(), and
     * calls `on_written`; the pieces' bytes stay until then, the array does not. */
    bool (*takes_over)(h2o_socket_t *socket, const h2o_iovec_t *pieces, size_t count,
                       h2o_socket_cb on_written);
} socket_write_hooks;

/* Once, before any loop runs; asserts that the library calls ours. `hooks` are copied. */
void socket_write_install(const socket_write_hooks *hooks);

/* The library's own function. */
void socket_write_now(h2o_socket_t *socket, h2o_iovec_t *pieces, size_t count,
                      h2o_socket_cb on_written);

#endif

#ifndef SERVER_HTTP_HANDSHAKE_H
#define SERVER_HTTP_HANDSHAKE_H

#include "server/connection/connection.h"

/* TLS handshakes, a few steps in a turn of the loop: each message of a client may cost a signature
 * or a key exchange, and many clients may send theirs at once. Replaces h2o_socket_read_start(), by
 * which the library waits for the next message. */

/* Begins as soon as the connection's ClientHello is complete. `on_done` is called once, as by the
 * library, or the connection is closed. The connection has a reference to its TLS context until
 * then: SIGHUP may replace it meanwhile. */
void handshake_start(connection *c, h2o_socket_cb on_done);

/* Once, before any loop runs; asserts that the library calls ours. */
void handshake_install(void);

#endif

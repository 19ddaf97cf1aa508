#ifndef SERVER_HTTP_PROTOCOL_H
#define SERVER_HTTP_PROTOCOL_H

#include "server/connection/connection.h"

/* Finds out what a connection speaks, and starts that: over TLS by ALPN after the handshake, in
 * clear text by its first bytes (HTTP/2 with prior knowledge begins with a preface that no HTTP/1
 * request has). A peer that does not say in time is closed. */
void protocol_start(connection *c);

#endif

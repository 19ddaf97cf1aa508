#ifndef SERVER_HTTP_LISTEN_H
#define SERVER_HTTP_LISTEN_H

#include "base/status.h"
#include "server/options/options.h"

/* Opens a listener's address once per loop, with SO_REUSEPORT: the kernel spreads connections over
 * the descriptors. `fds` has room for `loops`; `*port` is the port that it got. STATUS_IO: the
 * address cannot be listened on, or another server does; nothing is left open. */
status listen_open(const server_listener *at, int loops, int *fds, uint16_t *port) MUST_CHECK;

#endif

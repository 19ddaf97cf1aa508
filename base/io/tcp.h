#ifndef BASE_IO_TCP_H
#define BASE_IO_TCP_H

#include "base/status.h"

/* Connects to the first address of the host that answers; `*out` is the descriptor, which the
 * caller closes. `limit_s`: of connecting to each address, and of each later read and write, in
 * seconds; 0: none. STATUS_UNAVAILABLE. Any thread; blocks. */
status tcp_connect(const char *host, const char *port, int limit_s, int *out) MUST_CHECK;

#endif

#ifndef SERVER_HTTP_OVERRIDES_LATE_H
#define SERVER_HTTP_OVERRIDES_LATE_H

/* Requests that do not arrive in time. libh2o closes such an HTTP/1 connection without a word; its
 * h2o_socket_close() is an exported function of a shared library, so ours of that name goes first
 * and answers 408 before it closes. */

/* Once, at start; asserts that the library calls ours. */
void late_find_library(void);

#endif

#ifndef SERVER_HTTP1_TLS_PARTS_H
#define SERVER_HTTP1_TLS_PARTS_H

#include "server/connection/connection.h"

/* Large responses over TLS. The library encrypts what it writes in one go, into memory of its own:
 * 60 MB would hold the loop, and be held. So it gets them in parts, each when the peer's kernel has
 * taken the one before, and so many in a turn of the loop. */
#define TLS_PART_BYTES ((size_t)262144)

typedef struct tls_parts tls_parts;

/* socket_write_hooks.takes_over: not what is small, and not what there is no memory for. Counts
 * what the library encrypts of a response at once as held for the connection, until the response is
 * out. */
bool tls_parts_take_over(h2o_socket_t *socket, const h2o_iovec_t *pieces, size_t count,
                         h2o_socket_cb on_written);

#endif

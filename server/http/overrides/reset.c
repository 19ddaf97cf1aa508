/* HTTP/2 streams reset by the peer. The library has no hook for them, and no defence against a peer
 * that opens and resets streams as fast as it can (CVE-2023-44487); but the function it calls for a
 * reset is an exported one of a shared library, so ours of the same name goes first. */
#include <assert.h>
#include <dlfcn.h>

#include "server/http/edge.h"
#include "server/http/overrides/reset.h"

typedef void reset_function(h2o_conn_t *conn, void *stream);

static reset_function *library_reset;

void reset_find_library(void)
{
    library_reset = (reset_function *)dlsym(RTLD_NEXT, "h2o_http2_stream_reset");
    assert(library_reset != NULL);
    /* Does the library call ours? */
    assert(dlsym(RTLD_DEFAULT, "h2o_http2_stream_reset") == (void *)h2o_http2_stream_reset);
}

/* Counts two; each request that ends takes one back, the reset one included. So a peer whose
 * requests are mostly answered never gets near the ceiling. */
void h2o_http2_stream_reset(h2o_conn_t *conn, void *stream)
{
    h2o_socket_t *socket = conn->callbacks->get_socket(conn);
    connection *c = socket != NULL ? socket->on_close.data : NULL;
    if (c != NULL) {
        c->resets += 2;
        if (c->resets > c->loop->server->options->limits.connection_resets_max)
            connection_condemn(c);
    }
    library_reset(conn, stream);
}

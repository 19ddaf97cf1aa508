#include "server/http/overrides/stream_reset.h"

#include <assert.h>
#include <dlfcn.h>

typedef void reset_function(h2o_conn_t *conn, void *stream);

/* Constant once loops run. */
static reset_function *library_reset;
static stream_reset_hook *hook;

void stream_reset_install(stream_reset_hook *before_reset)
{
    hook = before_reset;
    library_reset = (reset_function *)dlsym(RTLD_NEXT, "h2o_http2_stream_reset");
    assert(library_reset != NULL);
    assert(dlsym(RTLD_DEFAULT, "h2o_http2_stream_reset") == (void *)h2o_http2_stream_reset);
}

void h2o_http2_stream_reset(h2o_conn_t *conn, void *stream)
{
    hook(conn);
    library_reset(conn, stream);
}

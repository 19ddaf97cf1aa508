#ifndef SERVER_HTTP_OVERRIDES_STREAM_RESET_H
#define SERVER_HTTP_OVERRIDES_STREAM_RESET_H

#include <h2o.h>

/* Replaces h2o_http2_stream_reset(), which libh2o calls for each RST_STREAM. The library has no
 * hook for them, and no defence against a peer that opens and resets streams as fast as it can
 * (CVE-2023-44487). */

/* Called before each reset. */
typedef void stream_reset_hook(h2o_conn_t *conn);

/* Once, before any loop runs; asserts that the library calls ours. */
void stream_reset_install(stream_reset_hook *before_reset);

/* The second argument is the library's stream. */
void h2o_http2_stream_reset(h2o_conn_t *conn, void *stream);

#endif

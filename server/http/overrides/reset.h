#ifndef SERVER_HTTP_OVERRIDES_RESET_H
#define SERVER_HTTP_OVERRIDES_RESET_H

#include <h2o.h>

/* Before the loops start. */
void reset_find_library(void);

/* Called by libh2o in place of its own for each RST_STREAM; the second argument is its stream. */
void h2o_http2_stream_reset(h2o_conn_t *conn, void *stream);

#endif

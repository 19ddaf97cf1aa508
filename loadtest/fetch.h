#ifndef LOADTEST_FETCH_H
#define LOADTEST_FETCH_H

#include "base/text/text_buffer.h"
#include "loadtest/wire/request.h"
#include "loadtest/wire/target.h"

/* One request and its reply, over the same connections that the load uses: for metadata, the list
 * of models, a server's own statistics. Blocks; any thread. `body` NULL sends none. `*code` is the
 * HTTP status and `reply` its body (appended to). STATUS_UNAVAILABLE, STATUS_DEADLINE_EXCEEDED,
 * STATUS_CORRUPT. */
status fetch(const target *t, const char *method, const char *path, const char *body,
             const request_header *headers, size_t header_count, int *code,
             text_buffer *reply) MUST_CHECK;

#endif

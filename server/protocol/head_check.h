#ifndef SERVER_PROTOCOL_HEAD_CHECK_H
#define SERVER_PROTOCOL_HEAD_CHECK_H

#include "base/status.h"

#include <stddef.h>

/* Refuses the forms of an HTTP/1 request head that two parsers on one connection may read
 * differently, which is what request smuggling lives on: bare LF, obs-fold, space before the
 * colon, control bytes, Content-Length twice or beside Transfer-Encoding or not all digits,
 * Transfer-Encoding other than one "chunked", Host missing (1.1) or twice. libh2o takes all of
 * these. Source: RFC 9112, sections 2.2, 3.2, 5.1, 5.2, 6.1, 6.3.
 *
 * `head` is the raw head from its first byte; `bytes` may reach beyond its empty line. Header
 * names may already be in lower case. STATUS_INVALID_ARGUMENT says which form it was. Pure. */
status head_check(const char *head, size_t bytes) MUST_CHECK;

#endif

#ifndef SERVER_PROTOCOL_HEAD_CHECK_H
#define SERVER_PROTOCOL_HEAD_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* Refuses the forms of an HTTP/1 request head that two parsers on one connection may read
 * differently, which is what request smuggling lives on: bare LF, obs-fold, space before the
 * colon, control bytes, Content-Length twice or beside Transfer-Encoding or not all digits,
 * Transfer-Encoding other than one "chunked", Host missing (1.1), twice or malformed, a request
 * target that is none of the forms for its method. libh2o takes all of these. Source: RFC 9112,
 * sections 2.2, 3.2, 5.1, 5.2, 6.1, 6.3; RFC 3986, section 3.2. */

/* What the head says that libh2o does not notice. */
typedef struct head_facts {
    bool is_old;            /* HTTP/1.0 */
    bool has_expect;        /* Expect */
    bool has_body;          /* Content-Length or Transfer-Encoding */
    bool has_close;         /* Connection: close, among whatever else it lists */
    size_t authority_bytes; /* absolute-form: "http://host:port" before the path of the target */
} head_facts;

/* `head` is the raw head from its first byte; `bytes` may reach beyond its empty line. Header
 * names may already be in lower case. STATUS_INVALID_ARGUMENT says which form it was;
 * STATUS_UNSUPPORTED: CONNECT. Pure. */
status head_check(const char *head, size_t bytes, head_facts *facts) MUST_CHECK;

/* RFC 9110, section 5.6.2: tchar, of which names of headers and trailers are made. */
bool head_is_token_byte(unsigned char c);

/* Whether it is a host, by name or address, with or without a port. */
bool head_is_authority(const char *at, size_t bytes);

#endif

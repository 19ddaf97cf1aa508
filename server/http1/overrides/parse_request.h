#ifndef SERVER_HTTP1_OVERRIDES_PARSE_REQUEST_H
#define SERVER_HTTP1_OVERRIDES_PARSE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

/* Replaces phr_parse_request(), with which libh2o reads HTTP/1 heads. Its own accepts forms that
 * request smuggling lives on, answers in plain text what it cannot read, and closes without a
 * response on a head that is too long. What it takes and does not understand is made plain to it: a
 * target in absolute-form becomes its path, Expect of HTTP/1.0 is left out, and
 * `Connection: close` counts wherever it stands.
 *
 * A head that is refused is reported to `on_refused_head` and comes out as a request of its own:
 * GET / without a header, so that nothing of it is acted upon: no body is read, no upgrade made.
 * The handler of requests answers it with what was reported. */

#define PARSE_REQUEST_HEAD_BYTES_MAX 65536

/* The head that begins at `head`, the first unread byte of a connection's input, is refused with
 * that HTTP code and reason (borrowed). False: no connection has such input, and the library shall
 * refuse it itself. On the thread that reads the connection. */
typedef bool parse_request_on_refused(const char *head, int code, const char *why);

struct parse_request_header;
/* A head with a body behind it is complete, and nothing is wrong with it. Not 0: it is refused with
 * that code, and on_refused_head is not called. On the thread that reads the connection. */
typedef int parse_request_on_body(const char *head, const struct parse_request_header *headers,
                                  size_t count);

/* Once, before any loop runs; asserts that the library calls ours. */
void parse_request_install(parse_request_on_refused *on_refused, parse_request_on_body *on_body);

/* picohttpparser's struct phr_header. */
typedef struct parse_request_header {
    const char *name;
    size_t name_bytes;
    const char *value;
    size_t value_bytes;
} parse_request_header;

/* The contract is picohttpparser's: bytes of the head, -1 when it is malformed, -2 when it is not
 * complete. */
int phr_parse_request(const char *head, size_t bytes, const char **method, size_t *method_bytes,
                      const char **path, size_t *path_bytes, int *minor_version,
                      parse_request_header *headers, size_t *header_count, size_t bytes_before);

#endif

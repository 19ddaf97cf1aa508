#ifndef SERVER_HTTP_OVERRIDES_HEAD_PARSE_H
#define SERVER_HTTP_OVERRIDES_HEAD_PARSE_H

#include <stddef.h>

/* Reading HTTP/1 heads strictly. libh2o takes forms that request smuggling lives on, answers what
 * it cannot read by itself in plain text, and closes on a head that is too long without a word. The
 * function it reads heads with (picohttpparser's) is an exported one of the shared library, so ours
 * of the same name goes first: a head that is refused comes out as a request of its own kind, which
 * handle.c answers like any other error. It carries no header, so nothing of it is acted upon: no
 * body is read, no upgrade made. */

#define HEAD_BYTES_MAX 65536

/* The contract is picohttpparser's: bytes of the head, -1 when it is malformed, -2 when it is not
 * complete. Never -1 here, but for the HTTP/2 preface, which the library tells by that. */
int phr_parse_request(const char *head, size_t bytes, const char **method, size_t *method_bytes,
                      const char **path, size_t *path_bytes, int *minor_version, void *headers,
                      size_t *header_count, size_t bytes_before);

/* Once, at start; asserts that the library calls the function above. */
void head_parse_find_library(void);

/* 0, or the HTTP code with which to refuse the request whose method has this address; `*why` then
 * says what is wrong, until this thread's next head. On the thread that read the head, before it
 * reads another. */
int head_parse_refusal(const char *method, const char **why);

#endif

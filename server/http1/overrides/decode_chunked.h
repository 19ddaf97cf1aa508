#ifndef SERVER_HTTP1_OVERRIDES_DECODE_CHUNKED_H
#define SERVER_HTTP1_OVERRIDES_DECODE_CHUNKED_H

#include <stddef.h>
#include <sys/types.h>

/* The chunked transfer coding, read strictly (RFC 9112, section 7.1). libh2o's own
 * function accepts bare LF, "0x10" as a last chunk, and anything as an extension: two parsers on
 * one connection would disagree where the body ends. Ours replaces it, with the same contract. */

/* The library's decoder state, zeroed by it before use; our meaning of the fields. */
struct phr_chunked_decoder {
    size_t bytes_left; /* of the chunk; in the trailer: bytes seen */
    char consume_trailer;
    char digits; /* of the size; then bytes of the extension */
    char state;
};

/* The body that is being read is refused with that HTTP code: 400 when it is malformed, 413 when a
 * chunk announces more than the limit. The library would answer 400 to both. `body` is the first of
 * the bytes just given, in a connection's input. On the thread that reads the connection. */
typedef void decode_chunked_on_refused(const char *body, int code);

/* `limit`: bytes of a body. Once, before any loop runs; asserts that the library calls ours. */
void decode_chunked_install(size_t limit, decode_chunked_on_refused *on_refused);

/* Decodes buf[0, *bytes) in place; *bytes becomes the decoded length. Returns -1 on a broken body,
 * -2 when more is needed, else how many bytes follow the body, at buf + *bytes. */
ssize_t phr_decode_chunked(struct phr_chunked_decoder *decoder, char *buf, size_t *bytes);

#endif

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

/* Decodes buf[0, *bytes) in place; *bytes becomes the decoded length. Returns -1 on a broken body,
 * -2 when more is needed, else how many bytes follow the body, at buf + *bytes. */
ssize_t phr_decode_chunked(struct phr_chunked_decoder *decoder, char *buf, size_t *bytes);

/* Whether the library will call the function above. */
int decode_chunked_is_in_place(void);

#endif

#ifndef SERVER_PROTOCOL_COMPRESS_H
#define SERVER_PROTOCOL_COMPRESS_H

#include <stddef.h>

#include "base/cancel.h"
#include "base/status.h"
#include "server/budget/budget.h"

typedef enum content_coding {
    CODING_IDENTITY,
    CODING_GZIP,
    CODING_DEFLATE,
    CODING_UNKNOWN
} content_coding;

/* From a Content-Encoding value. "deflate" is the zlib format (RFC 9110, section 8.4.1.2). */
content_coding content_coding_parse(const char *value, size_t bytes);

/* The coding of the response, from an Accept-Encoding value: gzip, deflate or identity. */
content_coding content_coding_choose(const char *value, size_t bytes);

/* Unpacks a whole body to the start of `*room`, a buffer of large_memory.h of `*room_bytes` (or
 * NULL and 0) that grows as needed and stays the caller's, after a failure too; what it grows is
 * counted in `held` (NULL: nowhere). STATUS_TOO_LARGE: over `bytes_max`; STATUS_UNAVAILABLE: not
 * granted; STATUS_INVALID_ARGUMENT: broken, cut short, or followed by something else; as
 * cancel_check() of `cancel`, which may be NULL. */
status decompress(content_coding coding, const char *data, size_t bytes, size_t bytes_max,
                  const cancel_token *cancel, budget_account *held, char **room, size_t *room_bytes,
                  size_t *out_bytes) MUST_CHECK;

/* Packs `count` pieces into one malloc'd block. */
typedef struct compress_piece {
    const void *data;
    size_t bytes;
} compress_piece;
status compress_pieces(content_coding coding, const compress_piece *pieces, int count, char **out,
                       size_t *out_bytes) MUST_CHECK;

#endif

#include "server/protocol/compress.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "base/large_memory.h"

#define GZIP_WINDOW (15 + 16)        /* zlib: +16 selects the gzip wrapper */
#define STEP_BYTES ((size_t)1 << 20) /* inflated before it is asked whether to go on */

static bool is(const char *value, size_t bytes, const char *word)
{
    return strlen(word) == bytes && strncasecmp(value, word, bytes) == 0;
}

static void trim(const char **value, size_t *bytes)
{
    while (*bytes > 0 && (**value == ' ' || **value == '\t'))
        (*value)++, (*bytes)--;
    while (*bytes > 0 && ((*value)[*bytes - 1] == ' ' || (*value)[*bytes - 1] == '\t'))
        (*bytes)--;
}

content_coding content_coding_parse(const char *value, size_t bytes)
{
    trim(&value, &bytes);
    if (bytes == 0 || is(value, bytes, "identity"))
        return CODING_IDENTITY;
    if (is(value, bytes, "gzip") || is(value, bytes, "x-gzip"))
        return CODING_GZIP;
    return is(value, bytes, "deflate") ? CODING_DEFLATE : CODING_UNKNOWN;
}

/* Whether ";q=0", ";q=0.0" ... follows: "not this one". */
static bool is_refused(const char *parameters, size_t bytes)
{
    const char *q = bytes ? memchr(parameters, '=', bytes) : NULL;
    if (q == NULL)
        return false;
    for (const char *p = q + 1; p < parameters + bytes; p++) {
        if (*p >= '1' && *p <= '9')
            return false;
    }
    return true;
}

content_coding content_coding_choose(const char *value, size_t bytes)
{
    content_coding best = CODING_IDENTITY;
    const char *end = value + bytes;
    while (value < end) {
        const char *comma = memchr(value, ',', (size_t)(end - value));
        if (comma == NULL)
            comma = end;
        const char *name = value, *semicolon = memchr(value, ';', (size_t)(comma - value));
        size_t name_bytes = (size_t)((semicolon ? semicolon : comma) - value);
        trim(&name, &name_bytes);
        bool refused = semicolon && is_refused(semicolon, (size_t)(comma - semicolon));
        if (!refused && is(name, name_bytes, "gzip"))
            best = CODING_GZIP;
        else if (!refused && best == CODING_IDENTITY && is(name, name_bytes, "deflate"))
            best = CODING_DEFLATE;
        value = comma + 1;
    }
    return best;
}

/* Up to STEP_BYTES more, into room[*used, room_bytes). Returns zlib's code. */
static int inflate_step(z_stream *z, char *room, size_t room_bytes, size_t *used)
{
    size_t left = room_bytes - *used;
    z->next_out = (Bytef *)room + *used;
    z->avail_out = (uInt)(left > STEP_BYTES ? STEP_BYTES : left);
    uInt offered = z->avail_out;
    int code = inflate(z, Z_NO_FLUSH);
    *used += offered - z->avail_out;
    return code;
}

static status make_room(budget_account *held, size_t wanted, char **room, size_t *room_bytes)
{
    if (wanted <= *room_bytes)
        return STATUS_OK;
    size_t more = wanted - *room_bytes;
    if (held != NULL && budget_add(held, more) != BUDGET_GRANTED)
        return status_fail(STATUS_UNAVAILABLE, "there is no room for the decompressed body now");
    char *moved = large_memory_grow(*room, *room_bytes, wanted);
    if (moved == NULL) {
        if (held != NULL)
            budget_subtract(held, more);
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to decompress");
    }
    *room = moved;
    *room_bytes = wanted;
    return STATUS_OK;
}

status decompress(content_coding coding, const char *data, size_t bytes, size_t bytes_max,
                  const cancel_token *cancel, budget_account *held, char **room, size_t *room_bytes,
                  size_t *out_bytes)
{
    status failure = STATUS_OK;
    z_stream z = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)bytes};
    size_t wanted = bytes * 4 < 4096 ? 4096 : bytes * 4, used = 0;
    if (bytes > UINT32_MAX)
        return status_fail(STATUS_TOO_LARGE, "a compressed body of %zu bytes", bytes);
    if (inflateInit2(&z, coding == CODING_GZIP ? GZIP_WINDOW : 15) != Z_OK)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to decompress");
    for (int code = Z_OK; code != Z_STREAM_END;) {
        if (wanted > bytes_max + 1)
            wanted = bytes_max + 1;
        if ((failure = make_room(held, wanted, room, room_bytes)))
            break;
        code = inflate_step(&z, *room, *room_bytes, &used);
        if ((failure = cancel_check(cancel)))
            break;
        if (used > bytes_max)
            failure = status_fail(STATUS_TOO_LARGE,
                                  "the body is larger than %zu bytes when decompressed", bytes_max);
        else if (code != Z_STREAM_END &&
                 ((code != Z_OK && code != Z_BUF_ERROR) || (z.avail_out > 0 && z.avail_in == 0)))
            failure = status_fail(STATUS_INVALID_ARGUMENT, "the compressed body is broken: %s",
                                  z.msg ? z.msg : "it ends too early");
        if (failure)
            break;
        wanted = used == *room_bytes ? *room_bytes * 2 : *room_bytes;
    }
    if (!failure && z.avail_in > 0)
        failure =
            status_fail(STATUS_INVALID_ARGUMENT, "%u bytes follow the compressed body", z.avail_in);
    inflateEnd(&z);
    if (!failure)
        *out_bytes = used;
    return failure;
}

status compress_pieces(content_coding coding, const compress_piece *pieces, int count, char **out,
                       size_t *out_bytes)
{
    z_stream z = {0};
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += pieces[i].bytes;
    /* Level 1: responses are mostly digits or floats, where higher levels gain little. */
    if (deflateInit2(&z, 1, Z_DEFLATED, coding == CODING_GZIP ? GZIP_WINDOW : 15, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to compress");
    size_t capacity = deflateBound(&z, bytes) + 64;
    char *buffer = malloc(capacity);
    if (buffer == NULL || bytes > UINT32_MAX / 2) {
        deflateEnd(&z);
        free(buffer);
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to compress %zu bytes", bytes);
    }
    z.next_out = (Bytef *)buffer;
    z.avail_out = (uInt)capacity;
    int code = Z_OK;
    for (int i = 0; i < count && code == Z_OK; i++) {
        z.next_in = (Bytef *)(uintptr_t)pieces[i].data;
        z.avail_in = (uInt)pieces[i].bytes;
        if (z.avail_in > 0)
            code = deflate(&z, Z_NO_FLUSH);
    }
    code = deflate(&z, Z_FINISH);
    *out_bytes = capacity - z.avail_out;
    deflateEnd(&z);
    if (code != Z_STREAM_END) {
        free(buffer);
        return status_fail(STATUS_INTERNAL, "zlib did not finish");
    }
    *out = buffer;
    return STATUS_OK;
}

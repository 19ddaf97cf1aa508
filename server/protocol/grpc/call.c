#include "server/protocol/grpc/call.h"

#include <string.h>
#include <strings.h>

grpc_code grpc_code_of_http(int code)
{
    switch (code) {
    case 200:
    case 204:
        return GRPC_OK;
    case 400:
    case 415:
    case 422:
        return GRPC_INVALID_ARGUMENT;
    case 401:
        return GRPC_UNAUTHENTICATED;
    case 403:
        return GRPC_PERMISSION_DENIED;
    case 404:
        return GRPC_NOT_FOUND;
    case 408:
    case 504:
        return GRPC_DEADLINE_EXCEEDED;
    case 413:
    case 429:
    case 431:
        return GRPC_RESOURCE_EXHAUSTED;
    case 499:
        return GRPC_CANCELLED;
    case 405:
    case 501:
        return GRPC_UNIMPLEMENTED;
    case 503:
        return GRPC_UNAVAILABLE;
    case 500:
        return GRPC_INTERNAL;
    default:
        return GRPC_UNKNOWN;
    }
}

static const char type_name[] = "application/grpc";
#define TYPE_BYTES (sizeof type_name - 1)

bool grpc_is_any_content_type(const char *type, size_t bytes)
{
    return bytes >= TYPE_BYTES && strncasecmp(type, type_name, TYPE_BYTES) == 0 &&
           (bytes == TYPE_BYTES || memchr("+; ", type[TYPE_BYTES], 3) != NULL);
}

bool grpc_is_content_type(const char *type, size_t bytes)
{
    if (!grpc_is_any_content_type(type, bytes))
        return false;
    const char *rest = type + TYPE_BYTES;
    size_t left = bytes - TYPE_BYTES;
    if (left == 0 || rest[0] != '+')
        return true;
    return left >= 6 && strncasecmp(rest, "+proto", 6) == 0 &&
           (left == 6 || rest[6] == ';' || rest[6] == ' ');
}

bool grpc_read_timeout(const char *text, size_t bytes, uint64_t *out_ns)
{
    static const char units[] = "HMSmun";
    static const uint64_t unit_ns[] = {3600000000000, 60000000000, 1000000000, 1000000, 1000, 1};
    uint64_t value = 0;
    if (bytes < 2 || bytes > 9)
        return false;
    for (size_t i = 0; i + 1 < bytes; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(text[i] - '0');
    }
    const char *unit = memchr(units, text[bytes - 1], sizeof units - 1);
    if (unit == NULL)
        return false;
    uint64_t scale = unit_ns[unit - units];
    *out_ns = value > UINT64_MAX / 4 / scale ? UINT64_MAX / 4 : value * scale;
    return true;
}

void grpc_write_message(text_buffer *out, const char *message, size_t most)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t from = out->bytes;
    for (const unsigned char *c = (const unsigned char *)message;
         *c != 0 && out->bytes - from + 3 <= most && !out->is_broken; c++) {
        bool is_plain = *c >= ' ' && *c <= '~' && *c != '%';
        char coded[3] = {'%', digits[*c >> 4], digits[*c & 15]};
        if (is_plain)
            text_buffer_append(out, c, 1);
        else
            text_buffer_append(out, coded, 3);
    }
}

void grpc_write_frame_head(char out[GRPC_FRAME_HEAD_BYTES], bool is_compressed, size_t bytes)
{
    out[0] = (char)is_compressed;
    for (int i = 0; i < 4; i++)
        out[1 + i] = (char)(bytes >> (24 - 8 * i));
}

bool grpc_read_frame_head(const char in[GRPC_FRAME_HEAD_BYTES], bool *is_compressed, size_t *bytes)
{
    const unsigned char *at = (const unsigned char *)in;
    *is_compressed = at[0] == 1;
    *bytes = (size_t)at[1] << 24 | (size_t)at[2] << 16 | (size_t)at[3] << 8 | at[4];
    return at[0] <= 1;
}

status grpc_read_only_message(const char *body, size_t bytes, grpc_message *out)
{
    size_t length;
    if (bytes < GRPC_FRAME_HEAD_BYTES)
        return status_fail(STATUS_INVALID_ARGUMENT, "the call has no whole message");
    if (!grpc_read_frame_head(body, &out->is_compressed, &length))
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "the message's compressed flag is %u, not 0 or 1",
                           (unsigned char)body[0]);
    if (length > bytes - GRPC_FRAME_HEAD_BYTES)
        return status_fail(STATUS_INVALID_ARGUMENT, "the message has %zu of its %zu bytes",
                           bytes - GRPC_FRAME_HEAD_BYTES, length);
    if (length < bytes - GRPC_FRAME_HEAD_BYTES)
        return status_fail(STATUS_INVALID_ARGUMENT, "%zu bytes follow the call's one message",
                           bytes - GRPC_FRAME_HEAD_BYTES - length);
    out->data = body + GRPC_FRAME_HEAD_BYTES;
    out->bytes = length;
    return STATUS_OK;
}

status grpc_read_version(const char *text, size_t bytes, int64_t *out)
{
    int64_t version = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] < '0' || text[i] > '9' || i >= 18)
            return status_fail(STATUS_INVALID_ARGUMENT, "version \"%.*s\" is no number",
                               (int)(bytes < 64 ? bytes : 64), text);
        version = version * 10 + (text[i] - '0');
    }
    if (bytes > 0 && version == 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "versions begin with 1");
    *out = version;
    return STATUS_OK;
}

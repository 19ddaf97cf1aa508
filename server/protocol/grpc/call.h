#ifndef SERVER_PROTOCOL_GRPC_CALL_H
#define SERVER_PROTOCOL_GRPC_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text/text_buffer.h"

/* gRPC over HTTP/2 (github.com/grpc/grpc, doc/PROTOCOL-HTTP2.md): what a call is made of beside its
 * messages. Pure. */

/* Status codes (doc/statuscodes.md). */
typedef enum grpc_code {
    GRPC_OK = 0,
    GRPC_CANCELLED = 1,
    GRPC_UNKNOWN = 2,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_NOT_FOUND = 5,
    GRPC_PERMISSION_DENIED = 7,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
    GRPC_UNAUTHENTICATED = 16,
} grpc_code;

/* The status of a call that HTTP would answer with that code. */
grpc_code grpc_code_of_http(int code);

/* "application/grpc", alone or followed by "+proto" or parameters. */
bool grpc_is_content_type(const char *type, size_t bytes);
/* Does it begin with "application/grpc" at all? "application/grpc-web" does not count. */
bool grpc_is_any_content_type(const char *type, size_t bytes);

/* "100m": 1 to 8 digits and a unit; false: not that. */
bool grpc_read_timeout(const char *text, size_t bytes, uint64_t *out_ns);

/* Percent-encodes a message, as the header `grpc-message` has it; cut where it would be longer than
 * `most`. */
#define GRPC_MESSAGE_BYTES_MAX 2048
void grpc_write_message(text_buffer *out, const char *message, size_t most);

/* A message is led by whether it is compressed, and its length. */
#define GRPC_FRAME_HEAD_BYTES 5
void grpc_write_frame_head(char out[GRPC_FRAME_HEAD_BYTES], bool is_compressed, size_t bytes);
bool grpc_read_frame_head(const char in[GRPC_FRAME_HEAD_BYTES], bool *is_compressed, size_t *bytes);

/* The one message of a unary call. STATUS_INVALID_ARGUMENT: none, cut short, or more than one. */
typedef struct grpc_message {
    const char *data;
    size_t bytes;
    bool is_compressed;
} grpc_message;
status grpc_read_only_message(const char *body, size_t bytes, grpc_message *out) MUST_CHECK;

/* A model's version: digits, or empty (0). STATUS_INVALID_ARGUMENT. */
status grpc_read_version(const char *text, size_t bytes, int64_t *out) MUST_CHECK;

#endif

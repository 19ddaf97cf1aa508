#ifndef SERVER_PROTOCOL_GRPC_WIRE_H
#define SERVER_PROTOCOL_GRPC_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text/text_buffer.h"

/* The Protocol Buffers wire format (protobuf.dev/programming-guides/encoding), field by field, for
 * messages whose tensors stay where they are. Pure. */

typedef enum wire_type { WIRE_VARINT = 0, WIRE_I64 = 1, WIRE_BYTES = 2, WIRE_I32 = 5 } wire_type;

/* A message that is being read; what it points to is borrowed. */
typedef struct wire_reader {
    const char *at, *end;
} wire_reader;

typedef struct wire_field {
    uint32_t number;
    wire_type type;
    uint64_t value;   /* WIRE_VARINT, WIRE_I64, WIRE_I32 */
    const char *data; /* WIRE_BYTES: inside the message */
    size_t bytes;
} wire_field;

/* The next field; `*has_field` is false at the end. STATUS_INVALID_ARGUMENT: cut short, longer than
 * the message, groups, or number 0. */
status wire_next(wire_reader *r, wire_field *out, bool *has_field) MUST_CHECK;

/* One more varint of a packed field. The same failures. */
status wire_read_varint(wire_reader *r, uint64_t *out) MUST_CHECK;

/* STATUS_INVALID_ARGUMENT, with `name`: the field is of another type. */
status wire_expect(const wire_field *f, wire_type type, const char *name) MUST_CHECK;

/* Bytes of a varint, and of the head of a field of so many bytes; `out` has room for them. */
#define WIRE_HEAD_BYTES_MAX 16
size_t wire_varint_bytes(uint64_t value);
size_t wire_head_bytes(uint32_t number, size_t bytes);
char *wire_write_varint(char *out, uint64_t value);
char *wire_write_head(char *out, uint32_t number, size_t bytes);
/* Appends the head of a field of so many bytes, which follow. */
void wire_put_head(text_buffer *out, uint32_t number, size_t bytes);
void wire_put_bytes(text_buffer *out, uint32_t number, const void *data, size_t bytes);
void wire_put_varint(text_buffer *out, uint32_t number, uint64_t value);
/* What was appended since `out` had `from` bytes becomes a field of its own. */
void wire_wrap(text_buffer *out, size_t from, uint32_t number);

#endif

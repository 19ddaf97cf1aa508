#include "server/protocol/grpc/wire.h"

#include <string.h>

#define NUMBER_MAX 536870911u

static status fail_short(void)
{
    return status_fail(STATUS_INVALID_ARGUMENT, "the message is not protobuf, or cut short");
}

status wire_read_varint(wire_reader *r, uint64_t *out)
{
    uint64_t value = 0;
    for (int shift = 0; r->at < r->end && shift < 64; shift += 7) {
        uint8_t byte = (uint8_t)*r->at++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *out = value;
            return STATUS_OK;
        }
    }
    return fail_short();
}

/* Little-endian hosts only, as all of ours. */
static status read_fixed(wire_reader *r, size_t bytes, uint64_t *out)
{
    if ((size_t)(r->end - r->at) < bytes)
        return fail_short();
    *out = 0;
    memcpy(out, r->at, bytes);
    r->at += bytes;
    return STATUS_OK;
}

static status read_bytes(wire_reader *r, wire_field *f)
{
    uint64_t bytes = 0;
    status failure = wire_read_varint(r, &bytes);
    if (failure)
        return failure;
    if (bytes > (size_t)(r->end - r->at))
        return fail_short();
    f->data = r->at;
    f->bytes = (size_t)bytes;
    r->at += bytes;
    return STATUS_OK;
}

status wire_next(wire_reader *r, wire_field *out, bool *has_field)
{
    uint64_t tag = 0;
    *has_field = r->at < r->end;
    if (!*has_field)
        return STATUS_OK;
    status failure = wire_read_varint(r, &tag);
    if (failure)
        return failure;
    if (tag >> 3 == 0 || tag >> 3 > NUMBER_MAX)
        return status_fail(STATUS_INVALID_ARGUMENT, "the message has a field without a number");
    *out = (wire_field){.number = (uint32_t)(tag >> 3), .type = (wire_type)(tag & 7)};
    switch (out->type) {
    case WIRE_VARINT:
        return wire_read_varint(r, &out->value);
    case WIRE_I64:
        return read_fixed(r, 8, &out->value);
    case WIRE_I32:
        return read_fixed(r, 4, &out->value);
    case WIRE_BYTES:
        return read_bytes(r, out);
    default:
        return status_fail(STATUS_INVALID_ARGUMENT, "field %u has the unknown wire type %d",
                           out->number, (int)out->type);
    }
}

status wire_expect(const wire_field *f, wire_type type, const char *name)
{
    if (f->type == type)
        return STATUS_OK;
    return status_fail(STATUS_INVALID_ARGUMENT, "field \"%s\" has the wrong wire type %d", name,
                       (int)f->type);
}

size_t wire_varint_bytes(uint64_t value)
{
    size_t bytes = 1;
    for (; value > 127; value >>= 7)
        bytes++;
    return bytes;
}

size_t wire_head_bytes(uint32_t number, size_t bytes)
{
    return wire_varint_bytes((uint64_t)number << 3) + wire_varint_bytes(bytes);
}

char *wire_write_varint(char *out, uint64_t value)
{
    for (; value > 127; value >>= 7)
        *out++ = (char)(value | 128);
    *out++ = (char)value;
    return out;
}

char *wire_write_head(char *out, uint32_t number, size_t bytes)
{
    return wire_write_varint(wire_write_varint(out, (uint64_t)number << 3 | WIRE_BYTES), bytes);
}

void wire_put_head(text_buffer *out, uint32_t number, size_t bytes)
{
    char *room = text_buffer_reserve(out, WIRE_HEAD_BYTES_MAX);
    if (room != NULL)
        out->bytes += (size_t)(wire_write_head(room, number, bytes) - room);
}

void wire_put_bytes(text_buffer *out, uint32_t number, const void *data, size_t bytes)
{
    wire_put_head(out, number, bytes);
    text_buffer_append(out, data, bytes);
}

void wire_put_varint(text_buffer *out, uint32_t number, uint64_t value)
{
    char *room = text_buffer_reserve(out, 2 * WIRE_HEAD_BYTES_MAX), *at = room;
    if (room == NULL)
        return;
    at = wire_write_varint(at, (uint64_t)number << 3 | WIRE_VARINT);
    at = wire_write_varint(at, value);
    out->bytes += (size_t)(at - room);
}

void wire_wrap(text_buffer *out, size_t from, uint32_t number)
{
    if (out->is_broken)
        return;
    size_t bytes = out->bytes - from, head = wire_head_bytes(number, bytes);
    if (text_buffer_reserve(out, head) == NULL)
        return;
    memmove(out->data + from + head, out->data + from, bytes);
    wire_write_head(out->data + from, number, bytes);
    out->bytes += head;
}

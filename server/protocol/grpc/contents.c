#include "server/protocol/grpc/contents.h"

#include <assert.h>
#include <string.h>

#include "server/protocol/grpc/wire.h"

#define FIELDS 9

static const char *const names[FIELDS] = {"",
                                          "bool_contents",
                                          "int_contents",
                                          "int64_contents",
                                          "uint_contents",
                                          "uint64_contents",
                                          "fp32_contents",
                                          "fp64_contents",
                                          "bytes_contents"};

/* The field that holds elements of that type; 0: none does. */
static uint32_t field_of(dtype type)
{
    static const uint8_t fields[DTYPE_COUNT] = {
        [DTYPE_BOOL] = 1, [DTYPE_I8] = 2,  [DTYPE_I16] = 2, [DTYPE_I32] = 2,
        [DTYPE_I64] = 3,  [DTYPE_U8] = 4,  [DTYPE_U16] = 4, [DTYPE_U32] = 4,
        [DTYPE_U64] = 5,  [DTYPE_F32] = 6, [DTYPE_F64] = 7, [DTYPE_BYTES] = 8};
    return fields[type];
}

static status fail_range(const tensor *t, int64_t value)
{
    return status_fail(STATUS_INVALID_ARGUMENT, "%lld does not fit %s", (long long)value,
                       dtype_kserve_name(t->dtype));
}

/* 32-bit numbers come as varints of their sign-extended 64 bits. */
static status store_varint(tensor *t, int64_t at, uint64_t raw)
{
    int64_t v = (int64_t)raw;
    switch (t->dtype) {
    case DTYPE_BOOL:
        ((uint8_t *)t->data)[at] = raw != 0;
        return STATUS_OK;
    case DTYPE_I8:
        ((int8_t *)t->data)[at] = (int8_t)v;
        return v == (int8_t)v ? STATUS_OK : fail_range(t, v);
    case DTYPE_I16:
        ((int16_t *)t->data)[at] = (int16_t)v;
        return v == (int16_t)v ? STATUS_OK : fail_range(t, v);
    case DTYPE_I32:
        ((int32_t *)t->data)[at] = (int32_t)v;
        return v == (int32_t)v ? STATUS_OK : fail_range(t, v);
    case DTYPE_U8:
        ((uint8_t *)t->data)[at] = (uint8_t)v;
        return v == (uint8_t)v ? STATUS_OK : fail_range(t, v);
    case DTYPE_U16:
        ((uint16_t *)t->data)[at] = (uint16_t)v;
        return v == (uint16_t)v ? STATUS_OK : fail_range(t, v);
    case DTYPE_U32:
        ((uint32_t *)t->data)[at] = (uint32_t)v;
        return v == (uint32_t)v ? STATUS_OK : fail_range(t, v);
    default:
        ((uint64_t *)t->data)[at] = raw;
        return STATUS_OK;
    }
}

static wire_type element_type(const tensor *t)
{
    return t->dtype == DTYPE_F32     ? WIRE_I32
           : t->dtype == DTYPE_F64   ? WIRE_I64
           : t->dtype == DTYPE_BYTES ? WIRE_BYTES
                                     : WIRE_VARINT;
}

static status fail_count(const tensor *t)
{
    char shape[TENSOR_SHAPE_TEXT_BYTES];
    return status_fail(STATUS_INVALID_ARGUMENT,
                       "field \"contents\" has not the %lld elements of shape %s",
                       (long long)tensor_count(t), tensor_shape_text(shape, t->rank, t->dims));
}

static status read_varints(tensor *t, int64_t *filled, int64_t count, wire_reader r)
{
    while (r.at < r.end) {
        uint64_t value;
        status failure = *filled == count ? fail_count(t) : wire_read_varint(&r, &value);
        if (!failure)
            failure = store_varint(t, *filled, value);
        if (failure)
            return failure;
        ++*filled;
    }
    return STATUS_OK;
}

static status read_fixed(tensor *t, int64_t *filled, int64_t count, const wire_field *f)
{
    size_t each = dtype_bytes(t->dtype);
    if (f->bytes % each != 0 || f->bytes / each > (size_t)(count - *filled))
        return fail_count(t);
    memcpy((char *)t->data + (size_t)*filled * each, f->data, f->bytes);
    *filled += (int64_t)(f->bytes / each);
    return STATUS_OK;
}

/* One field: an element, or several packed. */
static status read_field(tensor *t, int64_t *filled, int64_t count, const wire_field *f)
{
    wire_type type = element_type(t);
    bool is_packed = f->type == WIRE_BYTES && type != WIRE_BYTES;
    if (is_packed)
        return type == WIRE_VARINT
                   ? read_varints(t, filled, count, (wire_reader){f->data, f->data + f->bytes})
                   : read_fixed(t, filled, count, f);
    status failure = wire_expect(f, type, names[f->number]);
    if (!failure && *filled == count)
        failure = fail_count(t);
    if (failure)
        return failure;
    int64_t at = (*filled)++;
    size_t each = dtype_bytes(t->dtype);
    if (type == WIRE_VARINT)
        return store_varint(t, at, f->value);
    if (type == WIRE_BYTES)
        ((tensor_string *)t->data)[at] = (tensor_string){(const uint8_t *)f->data, f->bytes};
    else
        memcpy((char *)t->data + (size_t)at * each, &f->value, each);
    return STATUS_OK;
}

/* Strings lie in the message, which may go: they move to `memory`. */
static status keep_strings(tensor *t, arena *memory, const char *from, size_t bytes)
{
    tensor_string *strings = t->data;
    int64_t count = tensor_count(t);
    char *copy = count > 0 ? arena_allocate(memory, bytes + 1) : NULL;
    if (count == 0)
        return STATUS_OK;
    if (copy == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %lld strings", (long long)count);
    memcpy(copy, from, bytes);
    for (int64_t i = 0; i < count; i++)
        strings[i].data = (const uint8_t *)copy + ((const char *)strings[i].data - from);
    return STATUS_OK;
}

/* An element takes at least a byte, or those of its type: a shape reserves no more than was sent.
 */
static status reserve(tensor *t, arena *memory, size_t bytes)
{
    int64_t count = tensor_count(t);
    wire_type type = element_type(t);
    size_t least = type == WIRE_I32 ? 4 : type == WIRE_I64 ? 8 : type == WIRE_BYTES ? 2 : 1;
    if ((uint64_t)count > bytes / least)
        return fail_count(t);
    size_t size = t->dtype == DTYPE_BYTES ? (size_t)count * sizeof(tensor_string) : tensor_bytes(t);
    t->data = arena_allocate_aligned(memory, size ? size : 1, 64);
    return t->data != NULL ? STATUS_OK
                           : status_fail(STATUS_OUT_OF_MEMORY, "no memory for %zu bytes", size);
}

static status check_field(const tensor *t, const wire_field *f, uint32_t wanted)
{
    if (f->number >= FIELDS || f->number == wanted)
        return STATUS_OK;
    return status_fail(STATUS_INVALID_ARGUMENT, "field \"%s\", but %s comes in \"%s\"",
                       names[f->number], dtype_kserve_name(t->dtype), names[wanted]);
}

status grpc_read_contents(tensor *t, arena *memory, const char *from, size_t bytes)
{
    wire_reader r = {from, from + bytes};
    wire_field f;
    bool has_field;
    int64_t filled = 0, count = tensor_count(t);
    uint32_t wanted = field_of(t->dtype);
    if (wanted == 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "%s comes in raw_input_contents only",
                           dtype_kserve_name(t->dtype));
    wire_reader first = r;
    status failure = wire_next(&first, &f, &has_field);
    if (!failure && has_field)
        failure = check_field(t, &f, wanted); /* before the shape is compared with it */
    if (!failure)
        failure = reserve(t, memory, bytes);
    while (!failure && !(failure = wire_next(&r, &f, &has_field)) && has_field) {
        failure = check_field(t, &f, wanted);
        if (!failure && f.number == wanted)
            failure = read_field(t, &filled, count, &f);
    }
    if (!failure && filled != count)
        failure = fail_count(t);
    if (!failure && t->dtype == DTYPE_BYTES)
        failure = keep_strings(t, memory, from, bytes);
    return failure;
}

static uint64_t varint_of(const tensor *t, int64_t i)
{
    return t->dtype == DTYPE_U64 ? ((const uint64_t *)t->data)[i]
                                 : (uint64_t)tensor_get_integer(t, i);
}

void grpc_write_contents(text_buffer *out, const tensor *t)
{
    uint32_t field = field_of(t->dtype);
    int64_t count = tensor_count(t);
    size_t bytes = 0;
    assert(field != 0);
    if (t->dtype == DTYPE_BYTES) {
        const tensor_string *strings = t->data;
        for (int64_t i = 0; i < count; i++)
            wire_put_bytes(out, field, strings[i].data, strings[i].bytes);
        return;
    }
    if (count == 0)
        return;
    if (element_type(t) != WIRE_VARINT) {
        wire_put_bytes(out, field, t->data, tensor_bytes(t));
        return;
    }
    for (int64_t i = 0; i < count; i++)
        bytes += wire_varint_bytes(varint_of(t, i));
    wire_put_head(out, field, bytes);
    char *room = text_buffer_reserve(out, bytes);
    for (int64_t i = 0; room != NULL && i < count; i++)
        room = wire_write_varint(room, varint_of(t, i));
    out->bytes += room != NULL ? bytes : 0;
}

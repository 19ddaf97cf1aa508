#include "server/protocol/grpc/contents.h"

#include <assert.h>
#include <string.h>

#include "server/protocol/grpc/wire.h"

static const char *const infer_names[] = {
    [1] = "bool_contents",   [2] = "int_contents",  [3] = "int64_contents", [4] = "uint_contents",
    [5] = "uint64_contents", [6] = "fp32_contents", [7] = "fp64_contents",  [8] = "bytes_contents"};

const grpc_layout grpc_infer_layout = {.message = "contents",
                                       .names = infer_names,
                                       .field_count = sizeof infer_names / sizeof infer_names[0],
                                       .field_of = {[DTYPE_BOOL] = 1,
                                                    [DTYPE_I8] = 2,
                                                    [DTYPE_I16] = 2,
                                                    [DTYPE_I32] = 2,
                                                    [DTYPE_I64] = 3,
                                                    [DTYPE_U8] = 4,
                                                    [DTYPE_U16] = 4,
                                                    [DTYPE_U32] = 4,
                                                    [DTYPE_U64] = 5,
                                                    [DTYPE_F32] = 6,
                                                    [DTYPE_F64] = 7,
                                                    [DTYPE_BYTES] = 8}};

static const char *const tensor_names[] = {
    [5] = "float_val",    [6] = "double_val",           [7] = "int_val",      [8] = "string_val",
    [9] = "scomplex_val", [10] = "int64_val",           [11] = "bool_val",    [12] = "dcomplex_val",
    [13] = "half_val",    [14] = "resource_handle_val", [15] = "variant_val", [16] = "uint32_val",
    [17] = "uint64_val"};

const grpc_layout grpc_tensor_layout = {.message = "TensorProto",
                                        .names = tensor_names,
                                        .field_count = sizeof tensor_names / sizeof tensor_names[0],
                                        .field_of = {[DTYPE_BOOL] = 11,
                                                     [DTYPE_I8] = 7,
                                                     [DTYPE_I16] = 7,
                                                     [DTYPE_I32] = 7,
                                                     [DTYPE_I64] = 10,
                                                     [DTYPE_U8] = 7,
                                                     [DTYPE_U16] = 7,
                                                     [DTYPE_U32] = 16,
                                                     [DTYPE_U64] = 17,
                                                     [DTYPE_F16] = 13,
                                                     [DTYPE_BF16] = 13,
                                                     [DTYPE_F32] = 5,
                                                     [DTYPE_F64] = 6,
                                                     [DTYPE_BYTES] = 8},
                                        .repeats_last = true};

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
    case DTYPE_F16: /* its bits */
    case DTYPE_BF16:
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

static status fail_count(const grpc_layout *l, const tensor *t)
{
    char shape[TENSOR_SHAPE_TEXT_BYTES];
    return status_fail(STATUS_INVALID_ARGUMENT,
                       "field \"%s\" has not the %lld elements of shape %s", l->message,
                       (long long)tensor_count(t), tensor_shape_text(shape, t->rank, t->dims));
}

static status read_varints(const grpc_layout *l, tensor *t, int64_t *filled, int64_t count,
                           wire_reader r)
{
    while (r.at < r.end) {
        uint64_t value;
        status failure = *filled == count ? fail_count(l, t) : wire_read_varint(&r, &value);
        if (!failure)
            failure = store_varint(t, *filled, value);
        if (failure)
            return failure;
        ++*filled;
    }
    return STATUS_OK;
}

static status read_fixed(const grpc_layout *l, tensor *t, int64_t *filled, int64_t count,
                         const wire_field *f)
{
    size_t each = dtype_bytes(t->dtype);
    if (f->bytes % each != 0 || f->bytes / each > (size_t)(count - *filled))
        return fail_count(l, t);
    memcpy((char *)t->data + (size_t)*filled * each, f->data, f->bytes);
    *filled += (int64_t)(f->bytes / each);
    return STATUS_OK;
}

/* One field: an element, or several packed. */
static status read_field(const grpc_layout *l, tensor *t, int64_t *filled, int64_t count,
                         const wire_field *f)
{
    wire_type type = element_type(t);
    bool is_packed = f->type == WIRE_BYTES && type != WIRE_BYTES;
    if (is_packed)
        return type == WIRE_VARINT
                   ? read_varints(l, t, filled, count, (wire_reader){f->data, f->data + f->bytes})
                   : read_fixed(l, t, filled, count, f);
    status failure = wire_expect(f, type, l->names[f->number]);
    if (!failure && *filled == count)
        failure = fail_count(l, t);
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
static status keep_strings(tensor *t, int64_t count, arena *memory, const char *from, size_t bytes)
{
    tensor_string *strings = t->data;
    char *copy = count > 0 ? arena_allocate(memory, bytes + 1) : NULL;
    if (count == 0)
        return STATUS_OK;
    if (copy == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %lld strings", (long long)count);
    if (bytes > 0)
        memcpy(copy, from, bytes);
    for (int64_t i = 0; i < count; i++) /* empty ones may lie nowhere */
        strings[i].data = (const uint8_t *)copy +
                          (strings[i].bytes > 0 ? (const char *)strings[i].data - from : 0);
    return STATUS_OK;
}

/* Elements from `filled` on are as the one before them, or 0. */
static void repeat_last(tensor *t, int64_t filled, int64_t count)
{
    static const tensor_string none = {(const uint8_t *)"", 0};
    static const uint64_t zero;
    size_t each = dtype_bytes(t->dtype);
    char *data = t->data;
    const void *first = t->dtype == DTYPE_BYTES ? (const void *)&none : &zero;
    if (filled == 0 && count > 0)
        memcpy(data, first, each);
    for (int64_t i = filled > 0 ? filled : 1; i < count; i++)
        memcpy(data + (size_t)i * each, data + (size_t)(i - 1) * each, each);
}

/* An element takes at least a byte, or those of its type: a shape reserves no more than was sent.
 * Where elements are repeated, `most` is the limit. */
static status reserve(const grpc_layout *l, tensor *t, arena *memory, size_t bytes, size_t most)
{
    int64_t count = tensor_count(t);
    wire_type type = element_type(t);
    size_t least = type == WIRE_I32 ? 4 : type == WIRE_I64 ? 8 : type == WIRE_BYTES ? 2 : 1;
    bool is_sent = (uint64_t)count <= bytes / least;
    if (!is_sent && !l->repeats_last)
        return fail_count(l, t);
    if (!is_sent && (uint64_t)count > most / dtype_bytes(t->dtype))
        return status_fail(STATUS_TOO_LARGE, "%lld elements of one value: the limit is %zu bytes",
                           (long long)count, most);
    size_t size = (size_t)count * dtype_bytes(t->dtype);
    t->data = arena_allocate_aligned(memory, size ? size : 1, 64);
    return t->data != NULL ? STATUS_OK
                           : status_fail(STATUS_OUT_OF_MEMORY, "no memory for %zu bytes", size);
}

static bool holds_elements(const grpc_layout *l, const wire_field *f)
{
    return f->number < l->field_count && l->names[f->number] != NULL;
}

/* All fields with elements are those of the type. */
static status check_fields(const grpc_layout *l, const tensor *t, wire_reader r)
{
    wire_field f;
    bool has_field;
    status failure;
    uint32_t wanted = l->field_of[t->dtype];
    while (!(failure = wire_next(&r, &f, &has_field)) && has_field) {
        if (holds_elements(l, &f) && f.number != wanted)
            return status_fail(STATUS_INVALID_ARGUMENT, "field \"%s\", but %s comes in \"%s\"",
                               l->names[f.number], dtype_kserve_name(t->dtype), l->names[wanted]);
    }
    return failure;
}

status grpc_read_contents(const grpc_layout *l, tensor *t, arena *memory, const char *from,
                          size_t bytes, size_t repeated_bytes_max)
{
    from = from != NULL ? from : ""; /* a message without contents */
    wire_reader r = {from, from + bytes};
    wire_field f;
    bool has_field;
    int64_t filled = 0, count = tensor_count(t);
    uint32_t wanted = l->field_of[t->dtype];
    if (wanted == 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "%s comes in raw_input_contents only",
                           dtype_kserve_name(t->dtype));
    status failure = check_fields(l, t, r); /* before the shape is compared with them */
    if (!failure)
        failure = reserve(l, t, memory, bytes, repeated_bytes_max);
    while (!failure && !(failure = wire_next(&r, &f, &has_field)) && has_field) {
        if (f.number == wanted)
            failure = read_field(l, t, &filled, count, &f);
    }
    if (!failure && filled != count && !l->repeats_last)
        failure = fail_count(l, t);
    if (!failure && t->dtype == DTYPE_BYTES)
        failure = keep_strings(t, filled, memory, from, bytes);
    if (!failure)
        repeat_last(t, filled, count);
    return failure;
}

static uint64_t varint_of(const tensor *t, int64_t i)
{
    if (t->dtype == DTYPE_F16 || t->dtype == DTYPE_BF16)
        return ((const uint16_t *)t->data)[i];
    return t->dtype == DTYPE_U64 ? ((const uint64_t *)t->data)[i]
                                 : (uint64_t)tensor_get_integer(t, i);
}

void grpc_write_contents(const grpc_layout *l, text_buffer *out, const tensor *t)
{
    uint32_t field = l->field_of[t->dtype];
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

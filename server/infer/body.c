#include "server/infer/body.h"

#include <stdlib.h>
#include <string.h>

#include "base/large_memory.h"
#include "server/call/invocation.h"
#include "server/infer/decimal.h"
#include "server/protocol/grpc/predict_message.h"
#include "server/service/shared_tensors.h"

#define LONG_JSON_BYTES 65536
#define LONG_BYTES ((size_t)1 << 20)

static status read_coding(const request *r, content_coding *out)
{
    request_text value = request_header(r, "content-encoding");
    *out = CODING_IDENTITY;
    if (value.data == NULL)
        return STATUS_OK;
    if (request_has_twice(r, "content-encoding") || memchr(value.data, ',', value.bytes) != NULL)
        return status_fail(STATUS_INVALID_ARGUMENT, "two content encodings: one is supported");
    *out = content_coding_parse(value.data, value.bytes);
    return *out != CODING_UNKNOWN
               ? STATUS_OK
               : status_fail(STATUS_UNSUPPORTED_CODING,
                             "content encoding \"%.*s\": identity, gzip and deflate are supported",
                             (int)(value.bytes < 64 ? value.bytes : 64), value.data);
}

static status fail_json_bytes(uint64_t json_bytes, size_t bytes)
{
    return status_fail(STATUS_INVALID_ARGUMENT,
                       "Inference-Header-Content-Length \"%llu\" for a body of %zu bytes",
                       (unsigned long long)json_bytes, bytes);
}

/* What is not raw takes the time of JSON. */
static status read_message(infer_body *out)
{
    grpc_infer_head head;
    grpc_predict_head predict;
    out->has_json_bytes = true;
    if (out->is_predict) {
        status failure = grpc_read_predict_head(&predict, out->text.data, out->text.bytes);
        out->json_bytes =
            failure ? 0 : out->text.bytes - predict.raw_bytes + predict.repeated_bytes;
        return failure;
    }
    status failure = grpc_read_infer_head(&head, out->text.data, out->text.bytes);
    out->json_bytes = failure ? 0 : out->text.bytes - head.raw_bytes;
    return failure;
}

static bool may_use_regions(const request *r)
{
    return (r->rights & ACCESS_SHARED_MEMORY) != 0 &&
           !shared_memory_is_empty(request_service(r)->regions);
}

static bool may_name_regions(const request *r)
{
    return may_use_regions(r) && shared_tensors_are_named(r->body.data, r->body.bytes);
}

status infer_body_read_headers(const request *r, infer_body *out)
{
    *out = (infer_body){.is_kserve = r->route.kind == ROUTE_INFER,
                        .is_grpc = route_is_grpc_infer(r->route.kind),
                        .is_predict = r->route.kind == ROUTE_GRPC_TF_PREDICT,
                        .text = r->body,
                        .can_borrow = r->can_borrow_body,
                        .held = &r->connection->held};
    out->names_regions = may_name_regions(r);
    if (out->is_grpc)
        return read_message(out);
    status failure = read_coding(r, &out->coding);
    out->names_regions |= out->coding != CODING_IDENTITY && may_use_regions(r);
    if (failure || !out->is_kserve)
        return failure;
    request_text header = request_header(r, "inference-header-content-length");
    bool is_platforms = header.data == NULL && r->route.dialect == ROUTE_PLATFORM &&
                        invocation_find_header_size(request_header(r, "content-type"), &header);
    out->has_json_bytes = header.data != NULL || is_platforms;
    if (out->has_json_bytes && !decimal_read(header, &out->json_bytes))
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "Inference-Header-Content-Length \"%.*s\" is no number of bytes",
                           (int)(header.bytes < 32 ? header.bytes : 32), header.data);
    if (out->coding == CODING_IDENTITY && out->json_bytes > out->text.bytes)
        return fail_json_bytes(out->json_bytes, out->text.bytes);
    return STATUS_OK;
}

bool infer_body_is_long(const infer_body *b)
{
    size_t json_bytes = b->has_json_bytes ? b->json_bytes : b->text.bytes;
    return b->names_regions || b->coding != CODING_IDENTITY || json_bytes > LONG_JSON_BYTES ||
           b->text.bytes > LONG_BYTES;
}

static status parse(const infer_body *b, request_text text, infer_request *q,
                    const infer_context *c)
{
    uint64_t json_bytes = b->has_json_bytes ? b->json_bytes : text.bytes;
    if (b->is_predict)
        return grpc_parse_predict(q, c, text.data, text.bytes);
    if (b->is_grpc)
        return grpc_parse_infer(q, c, text.data, text.bytes);
    if (!b->is_kserve)
        return parse_tensorflow(q, c, text.data, text.bytes);
    if (json_bytes > text.bytes)
        return fail_json_bytes(json_bytes, text.bytes);
    if (b->has_json_bytes && json_bytes == 0)
        return parse_kserve_raw(q, c, text.data, text.bytes);
    return parse_kserve(q, c, text.data, text.bytes, json_bytes);
}

/* What a body that was compressed has become; empty: it was not. */
typedef struct unpacked {
    char *data;
    size_t capacity; /* counted in b->held */
} unpacked;

/* The body as it was before it was compressed: itself, or `room`, for the caller to give back. */
static status unpack(const infer_body *b, size_t bytes_max, const cancel_token *cancel,
                     unpacked *room, request_text *out)
{
    *out = b->text;
    *room = (unpacked){NULL, 0};
    if (b->coding == CODING_IDENTITY)
        return STATUS_OK;
    status failure = decompress(b->coding, b->text.data, b->text.bytes, bytes_max, cancel, b->held,
                                &room->data, &room->capacity, &out->bytes);
    out->data = room->data;
    return failure;
}

static void give_back(const infer_body *b, const unpacked *room)
{
    budget_subtract(b->held, room->capacity);
    large_memory_free(room->data, room->capacity);
}

/* Numbers in JSON take about as much memory as their text: until request_hold_jobs() counts them,
 * that is what they are taken for. */
static status count_parsed(const infer_body *b, size_t bytes, size_t decompressed_bytes_max)
{
    size_t most = b->is_grpc ? bytes + decompressed_bytes_max : bytes;
    size_t json_bytes = b->has_json_bytes && b->json_bytes < most ? b->json_bytes : most;
    return b->parsed == NULL || budget_add(b->parsed, json_bytes) == BUDGET_GRANTED
               ? STATUS_OK
               : status_fail(STATUS_UNAVAILABLE, "there is no room to parse the body now");
}

status infer_body_parse(const infer_body *b, infer_request *q, infer_context *c,
                        size_t decompressed_bytes_max)
{
    request_text text;
    unpacked room;
    c->can_borrow = b->can_borrow && b->coding == CODING_IDENTITY;
    status failure = unpack(b, decompressed_bytes_max, c->cancel, &room, &text);
    if (!failure)
        failure = count_parsed(b, text.bytes, decompressed_bytes_max);
    if (!failure)
        failure = parse(b, text, q, c);
    give_back(b, &room);
    return failure;
}

status infer_body_parse_language(const infer_body *b, language_request *r, route_kind kind,
                                 language_limits *l, size_t decompressed_bytes_max)
{
    request_text text;
    unpacked room;
    l->keeps_body = b->can_borrow && b->coding == CODING_IDENTITY;
    status failure = unpack(b, decompressed_bytes_max, l->cancel, &room, &text);
    if (!failure)
        failure = count_parsed(b, text.bytes, decompressed_bytes_max);
    if (!failure)
        failure = language_parse(r, kind, l, text.data, text.bytes);
    give_back(b, &room);
    return failure;
}

#include "server/request/respond.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "server/protocol/compress.h"
#include "server/protocol/grpc/call.h"
#include "server/protocol/grpc/infer_message.h"
#include "server/protocol/grpc/wire.h"
#include "server/protocol/language/error.h"
#include "server/protocol/text/base64.h"
#include "server/protocol/text/text_write.h"

#define COMPRESS_BYTES_MIN 1024
#define TRACE_BYTES_MAX 128
#define GRPC_TYPE "application/grpc"
#define TEXT(literal) ((request_text){literal, sizeof(literal) - 1})

static const char *reason_of(int code)
{
    switch (code) {
    case 200:
        return "OK";
    case 204:
        return "No Content";
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 505:
        return "HTTP Version Not Supported";
    case 408:
        return "Request Timeout";
    case 409:
        return "Conflict";
    case 413:
        return "Content Too Large";
    case 415:
        return "Unsupported Media Type";
    case 422:
        return "Unprocessable Content";
    case 424:
        return "Failed Dependency";
    case 431:
        return "Request Header Fields Too Large";
    case 429:
        return "Too Many Requests";
    case 499:
        return "Client Closed Request";
    case 501:
        return "Not Implemented";
    case 503:
        return "Service Unavailable";
    case 507:
        return "Insufficient Storage";
    case 504:
        return "Gateway Timeout";
    default:
        return "Internal Server Error";
    }
}

int respond_code(status s, bool is_tensorflow)
{
    switch (s) {
    case STATUS_OK:
        return 200;
    case STATUS_INVALID_ARGUMENT:
    case STATUS_UNSUPPORTED:
        return 400;
    case STATUS_NOT_FOUND:
        return 404;
    case STATUS_TOO_LARGE:
        return 413;
    case STATUS_UNSUPPORTED_CODING:
        return 415;
    case STATUS_RESOURCE_EXHAUSTED:
        return is_tensorflow ? 503 : 429;
    case STATUS_UNAVAILABLE:
    case STATUS_OUT_OF_MEMORY:
        return 503;
    case STATUS_DEADLINE_EXCEEDED:
        return 504;
    case STATUS_CANCELLED:
        return 499;
    default:
        return 500;
    }
}

/* Why the request ends, by the code it is answered with. */
static life_event reason_of_end(int code)
{
    return code < 400    ? LIFE_ANSWER
           : code == 504 ? LIFE_DEADLINE
           : code == 499 ? LIFE_CLIENT_GONE
                         : LIFE_REFUSE;
}

static inline void add_header(request *r, const char *name, request_text value)
{
    r->connection->transport->add_header(r, (request_text){name, strlen(name)}, value);
}

static request_text copy(request *r, const char *data, size_t bytes)
{
    char *memory = r->connection->transport->allocate(r, bytes + 1);
    if (memory == NULL) {
        r->is_short_of_memory = true;
        return (request_text){NULL, 0};
    }
    memcpy(memory, data, bytes);
    return (request_text){memory, bytes};
}

void respond_header(request *r, const char *name, const char *value, size_t bytes)
{
    add_header(r, name, copy(r, value, bytes));
}

static bool is_grpc(const request *r)
{
    return r->route.dialect == ROUTE_GRPC;
}

/* ORCA's load report. */
static bool wants_load(const request *r)
{
    const service *s = request_service(r);
    return (s->options->endpoint_load ||
            request_header(r, "endpoint-load-metrics-format").data != NULL) &&
           service_is_open(s);
}

static void add_common_headers(request *r, const char *type)
{
    request_text trace = request_header(r, "traceparent");
    if (trace.data != NULL && trace.bytes <= TRACE_BYTES_MAX)
        add_header(r, "traceparent", trace);
    if (wants_load(r) && !is_grpc(r)) {
        text_buffer *line = &r->loop->text;
        text_buffer_clear(line);
        endpoint_load_write(&r->loop->load, request_service(r), clock_now_ns(), line);
        r->is_short_of_memory |= line->is_broken;
        respond_header(r, "endpoint-load-metrics", line->data, line->bytes);
    }
    if (type != NULL)
        add_header(r, "content-type", (request_text){type, strlen(type)});
}

static size_t sum_bytes(const request_text *pieces, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += pieces[i].bytes;
    return bytes;
}

/* A gRPC call that came compressed is answered so. */
static bool wants_coding(const request *r)
{
    request_text coding = request_header(r, "grpc-encoding");
    return coding.data != NULL &&
           content_coding_parse(coding.data, coding.bytes) != CODING_IDENTITY;
}

content_coding respond_coding(const request *r)
{
    request_text accepted = {NULL, 0};
    if (!is_grpc(r))
        accepted = request_header(r, "accept-encoding");
    else if (wants_coding(r) && !route_is_streamed(r->route.kind))
        accepted = request_header(r, "grpc-accept-encoding");
    return accepted.data == NULL ? CODING_IDENTITY
                                 : content_coding_choose(accepted.data, accepted.bytes);
}

static void add_coding(request *r, content_coding coding)
{
    request_text name = coding == CODING_GZIP ? TEXT("gzip") : TEXT("deflate");
    if (is_grpc(r)) {
        add_header(r, "grpc-encoding", name);
        return;
    }
    add_header(r, "content-encoding", name);
    add_header(r, "vary", TEXT("accept-encoding"));
}

/* Replaces the pieces by one compressed piece if the client takes that. Returns their number. */
static int compress(request *r, request_text *pieces, int count)
{
    if (sum_bytes(pieces, count) < COMPRESS_BYTES_MIN)
        return count;
    content_coding coding = respond_coding(r);
    if (coding == CODING_IDENTITY)
        return count;
    compress_piece in[MODEL_TENSORS_MAX + 1];
    assert(count <= MODEL_TENSORS_MAX + 1);
    for (int i = 0; i < count; i++)
        in[i] = (compress_piece){pieces[i].data, pieces[i].bytes};
    size_t bytes;
    if (compress_pieces(coding, in, count, &r->compressed, &bytes))
        return count; /* it goes uncompressed */
    pieces[0] = (request_text){r->compressed, bytes};
    add_coding(r, coding);
    return 1;
}

static inline void add_trailer(request *r, request_text name, request_text value)
{
    r->connection->transport->add_trailer(r, name, value);
}

#define LOAD_BYTES_MAX 256

/* After the messages of a call: its status, and the load report in its binary form. */
static void add_grpc_trailers(request *r)
{
    text_buffer *report = &r->loop->text;
    char coded[4 * LOAD_BYTES_MAX / 3 + 4];
    add_trailer(r, TEXT("grpc-status"), TEXT("0"));
    if (!wants_load(r))
        return;
    text_buffer_clear(report);
    endpoint_load_write_message(&r->loop->load, request_service(r), clock_now_ns(), report);
    r->is_short_of_memory |= report->is_broken;
    if (report->is_broken || report->bytes > LOAD_BYTES_MAX)
        return;
    char *end = base64_encode(coded, (const uint8_t *)report->data, report->bytes);
    add_trailer(r, TEXT("endpoint-load-metrics-bin"), copy(r, coded, (size_t)(end - coded)));
}

/* Without memory for what was to be sent: takes none. Returns the code. */
static int replace_response(request *r, request_text *pieces, int *count)
{
    r->connection->transport->drop_headers(r);
    r->sample.reason = RECORD_OVERLOADED;
    if (is_grpc(r)) {
        add_header(r, "content-type", TEXT(GRPC_TYPE));
        add_header(r, "grpc-status", TEXT("14")); /* UNAVAILABLE */
        add_header(r, "grpc-message", TEXT("there is no memory for the response now"));
        *count = 0;
        return 503;
    }
    add_header(r, "retry-after", TEXT("1"));
    add_header(r, "content-type", TEXT("application/json"));
    pieces[0] = TEXT("{\"error\":\"there is no memory for the response now\"}");
    *count = 1;
    return 503;
}

/* The one way out. The stream may be closed inside, but the request stays: the caller works on it.
 */
static void send_pieces(request *r, int code, const char *type, request_text *pieces, int count)
{
    assert(!request_has_ended(r));
    if (!r->is_short_of_memory)
        add_common_headers(r, is_grpc(r) ? GRPC_TYPE : type);
    if (!r->is_short_of_memory && is_grpc(r) && code == 200)
        add_grpc_trailers(r);
    if (r->is_short_of_memory)
        code = replace_response(r, pieces, &count);
    r->code = r->sample.code = code;
    r->response_bytes = sum_bytes(pieces, count);
    request_end(r, reason_of_end(code));
    int sent_code = is_grpc(r) ? 200 : code; /* it has a status of its own */
    r->connection->transport->send(r, sent_code, reason_of(sent_code), pieces, count);
    uint64_t now_ns = clock_now_ns();
    stage_stamp(r->sample.stage_ns, STAGE_RESPOND, now_ns);
    if (request_is_inference(r))
        record_request(request_service(r)->recorder, r->record, r->loop->index, &r->sample, now_ns);
}

static void finish(request *r, int code, const char *type, request_text *pieces, int count)
{
    count = compress(r, pieces, count);
    send_pieces(r, code, type, pieces, count);
}

/* Compresses a message, which is what follows the room for its head. */
static int compress_message(request *r, request_text *pieces, int count)
{
    pieces[0].data += GRPC_FRAME_HEAD_BYTES;
    pieces[0].bytes -= GRPC_FRAME_HEAD_BYTES;
    return compress(r, pieces, count);
}

/* Of inference.ModelStreamInferResponse. */
enum { STREAM_ERROR_MESSAGE = 1, STREAM_INFER_RESPONSE = 2 };

/* The head, with memory of its own, before the pieces of a message. On a stream of inferences the
 * message is one field of another. */
static void send_message(request *r, bool is_compressed, request_text *pieces, int count)
{
    request_text out[MODEL_TENSORS_MAX + 2];
    char head[GRPC_FRAME_HEAD_BYTES + WIRE_HEAD_BYTES_MAX], *end = head + GRPC_FRAME_HEAD_BYTES;
    size_t bytes = sum_bytes(pieces, count);
    assert(count <= MODEL_TENSORS_MAX + 1);
    if (r->route.kind == ROUTE_GRPC_STREAM_INFER)
        end = wire_write_head(end, STREAM_INFER_RESPONSE, bytes);
    bytes += (size_t)(end - head) - GRPC_FRAME_HEAD_BYTES;
    grpc_write_frame_head(head, is_compressed, bytes);
    out[0] = copy(r, head, (size_t)(end - head));
    memcpy(out + 1, pieces, (size_t)count * sizeof *pieces);
    send_pieces(r, 200, NULL, out, count + 1);
}

void respond_grpc_pieces(request *r, request_text *pieces, int count)
{
    int packed = compress_message(r, pieces, count);
    if (r->compressed != NULL || r->route.kind == ROUTE_GRPC_STREAM_INFER) {
        send_message(r, r->compressed != NULL, pieces, packed);
        return;
    }
    pieces[0].data -= GRPC_FRAME_HEAD_BYTES;
    pieces[0].bytes += GRPC_FRAME_HEAD_BYTES;
    grpc_write_frame_head((char *)(uintptr_t)pieces[0].data, false,
                          sum_bytes(pieces, count) - GRPC_FRAME_HEAD_BYTES);
    send_pieces(r, 200, NULL, pieces, count);
}

void respond_grpc(request *r, const text_buffer *message)
{
    r->is_short_of_memory |= message->is_broken;
    request_text piece = copy(r, message->data, message->bytes);
    if (r->is_short_of_memory)
        send_pieces(r, 503, NULL, &piece, 0);
    else
        respond_grpc_pieces(r, &piece, 1);
}

/* Compressed once, too, for all who share it. NULL: no memory. */
static const shared_text *make_shared(request *r, shared_text_key key,
                                      void (*write)(request *r, const void *about,
                                                    text_buffer *out))
{
    text_buffer out = {0};
    char *packed;
    size_t bytes;
    uint64_t begin_ns = clock_now_ns();
    write(r, key.about, &out);
    if (out.is_broken) {
        text_buffer_dispose(&out);
        return NULL;
    }
    compress_piece piece = {out.data, out.bytes};
    content_coding coding = out.bytes < COMPRESS_BYTES_MIN ? CODING_IDENTITY : key.coding;
    if (coding != CODING_IDENTITY && !compress_pieces(coding, &piece, 1, &packed, &bytes)) {
        text_buffer_dispose(&out);
        out = (text_buffer){.data = packed, .bytes = bytes};
    } else {
        coding = CODING_IDENTITY;
    }
    return shared_texts_put(&r->loop->shared_texts, key, coding, out.data, out.bytes, begin_ns,
                            clock_now_ns());
}

/* Age (RFC 9111, section 5.1) is there when others have had this text before, and only then. */
static void add_age(request *r, uint64_t age_ns)
{
    char seconds[24];
    int n = snprintf(seconds, sizeof(seconds), "%llu", (unsigned long long)(age_ns / 1000000000));
    respond_header(r, "age", seconds, (size_t)n);
}

void respond_shared(request *r, const char *type, const void *about,
                    void (*write)(request *r, const void *about, text_buffer *out))
{
    shared_text_key key = {r->route.kind, about, respond_coding(r)};
    const shared_text *text = shared_texts_find(&r->loop->shared_texts, key, clock_now_ns());
    if (text != NULL)
        add_age(r, clock_now_ns() - text->made_ns);
    else
        text = make_shared(r, key, write);
    request_text body = {NULL, 0};
    if (text == NULL) {
        r->is_short_of_memory = true;
    } else {
        if (text->coding != CODING_IDENTITY)
            add_coding(r, text->coding);
        body = copy(r, text->data, text->bytes);
    }
    send_pieces(r, 200, type, &body, body.bytes > 0);
}

void respond_pieces(request *r, const char *type, request_text *pieces, int count)
{
    finish(r, 200, type, pieces, count);
}

void respond_compressed(request *r, const char *type, content_coding coding, char *data,
                        size_t bytes)
{
    request_text piece = {data, bytes};
    assert(r->compressed == NULL);
    r->compressed = data;
    add_coding(r, coding);
    if (is_grpc(r))
        send_message(r, true, &piece, 1);
    else
        send_pieces(r, 200, type, &piece, 1);
}

void respond_text(request *r, int code, const char *type, const char *text, size_t bytes)
{
    request_text body = copy(r, text, bytes);
    finish(r, code, type, &body, bytes > 0);
}

void respond_nothing(request *r)
{
    request_text none = {NULL, 0};
    send_pieces(r, 204, NULL, &none, 0);
}

void respond_buffer(request *r, int code, const char *type, const text_buffer *body)
{
    r->is_short_of_memory |= body->is_broken;
    respond_text(r, code, type, body->data, body->bytes);
}

void respond_json(request *r, text_buffer *body)
{
    respond_buffer(r, 200, "application/json", body);
    text_buffer_dispose(body);
}

void respond_large_json(request *r, text_buffer *body)
{
    request_text piece = {body->data, body->bytes};
    assert(r->compressed == NULL);
    r->is_short_of_memory |= body->is_broken;
    r->compressed = body->data;
    *body = (text_buffer){0};
    send_pieces(r, 200, "application/json", &piece, 1);
}

/* Does the API of the route have errors of its own? */
static bool is_language(const request *r)
{
    return r->route.dialect != ROUTE_KSERVE && r->route.dialect != ROUTE_PLATFORM &&
           r->route.dialect != ROUTE_TENSORFLOW && !is_grpc(r);
}

static const language_fault *fault_of(const request *r)
{
    return r->language != NULL ? &r->language->fault : NULL;
}

/* On a stream of inferences an error is a message: the others go on. */
static void respond_stream_error(request *r, int code, const char *message)
{
    static const char head[GRPC_FRAME_HEAD_BYTES];
    text_buffer *text = &r->loop->text;
    grpc_message in;
    grpc_infer_head named = {.raw_bytes = 0};
    size_t bytes = strlen(message);
    text_buffer_clear(text);
    text_buffer_append(text, head, sizeof head);
    wire_put_bytes(text, STREAM_ERROR_MESSAGE, message, bytes);
    bool is_whole = !grpc_read_only_message(r->body.data, r->body.bytes, &in);
    if (!is_whole || in.is_compressed) /* or it has been taken out of its frame already */
        in = (grpc_message){r->body.data, r->body.bytes, false};
    size_t from = text->bytes;
    if (!grpc_read_infer_head(&named, in.data, in.bytes) && named.id.bytes > 0) {
        wire_put_bytes(text, 3, named.id.text, named.id.bytes);
        wire_wrap(text, from, STREAM_INFER_RESPONSE);
    }
    r->is_short_of_memory |= text->is_broken;
    request_text piece = copy(r, text->data, text->bytes);
    if (!r->is_short_of_memory)
        grpc_write_frame_head((char *)(uintptr_t)piece.data, false,
                              piece.bytes - GRPC_FRAME_HEAD_BYTES);
    send_pieces(r, code, NULL, &piece, 1);
}

/* A call without messages: the status stands in the head (Trailers-Only). */
static void respond_grpc_error(request *r, int code, const char *message, uint64_t retry_after_ns)
{
    text_buffer *text = &r->loop->text;
    char digits[24];
    text_buffer_clear(text);
    grpc_write_message(text, message, GRPC_MESSAGE_BYTES_MAX);
    r->is_short_of_memory |= text->is_broken;
    int n = snprintf(digits, sizeof digits, "%d", (int)grpc_code_of_http(code));
    respond_header(r, "grpc-status", digits, (size_t)n);
    respond_header(r, "grpc-message", text->data, text->bytes);
    if (retry_after_ns > 0) {
        n = snprintf(digits, sizeof digits, "%llu",
                     (unsigned long long)((retry_after_ns + 999999) / 1000000));
        respond_header(r, "grpc-retry-pushback-ms", digits, (size_t)n);
    }
    request_text none = {NULL, 0};
    send_pieces(r, code, NULL, &none, 0);
}

static void respond_message(request *r, int code, const char *message, uint64_t retry_after_ns)
{
    text_buffer *body = &r->loop->text;
    const char *text = message[0] ? message : reason_of(code);
    bool ends_stream = code == 401 || code == 403; /* so would all others */
    if (r->route.kind == ROUTE_GRPC_STREAM_INFER && is_grpc(r) && !ends_stream) {
        char said[STATUS_MESSAGE_BYTES_MAX]; /* reading the message may fail, and say so */
        snprintf(said, sizeof said, "%s", text);
        respond_stream_error(r, code, said);
        return;
    }
    if (is_grpc(r)) {
        respond_grpc_error(r, code, text, retry_after_ns);
        return;
    }
    text_buffer_clear(body);
    if (is_language(r)) {
        language_write_error(body, r->route.dialect, code, text, fault_of(r));
    } else {
        text_buffer_put(body, "{\"error\":");
        text_write_json_text(body, text);
        text_buffer_put(body, "}");
    }
    if (code == 429 || code == 503) {
        /* Whole seconds, rounded up: who comes back then is not told to wait again. */
        char seconds[24];
        uint64_t s = (retry_after_ns + 999999999) / 1000000000;
        int n = snprintf(seconds, sizeof(seconds), "%llu", (unsigned long long)(s ? s : 1));
        respond_header(r, "retry-after", seconds, (size_t)n);
    }
    respond_buffer(r, code, "application/json", body);
}

void respond_error(request *r, int code, const char *message)
{
    respond_message(r, code, message, 0);
}

void respond_refusal(request *r, status s, const char *message, uint64_t retry_after_ns)
{
    if (s == STATUS_RESOURCE_EXHAUSTED && r->sample.reason == RECORD_SERVED)
        r->sample.reason = RECORD_QUEUE_FULL; /* which TensorFlow Serving's code does not tell */
    int code = is_language(r) ? language_error_code(r->route.dialect, s, fault_of(r))
                              : respond_code(s, r->route.dialect == ROUTE_TENSORFLOW);
    respond_message(r, code, message, retry_after_ns);
}

void respond_status(request *r, status s, const char *message)
{
    respond_refusal(r, s, message, 0);
}

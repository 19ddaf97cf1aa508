#include "server/infer/results.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/call/invocation.h"
#include "server/protocol/grpc/call.h"
#include "server/protocol/grpc/predict_message.h"
#include "server/protocol/language/write_language.h"
#include "server/protocol/rows/merge_rows.h"
#include "server/protocol/text/number_write.h"
#include "server/protocol/write_infer.h"
#include "server/request/respond.h"
#include "server/request/work.h"
#include "server/service/shared_tensors.h"

#define TEXT_KEEP_BYTES (1 << 20)
#define JSON_BYTES_A_NUMBER 8              /* roughly */
#define COPIES 2                           /* of JSON: as it is written, and in the job's memory */
#define LONG_JSON_BYTES ((size_t)1 << 18)  /* half a millisecond to write */
#define LONG_CODED_BYTES ((size_t)1 << 16) /* the same to compress */
#define SERVER_TIMING_BYTES 128
#define BINARY_TYPE "application/vnd.sagemaker-triton.binary+json;json-header-size="

static bool is_finite(const tensor *t)
{
    int64_t count = tensor_count(t);
    for (int64_t i = 0; dtype_is_float(t->dtype) && i < count; i++) {
        if (!isfinite(tensor_get_number(t, i)))
            return false;
    }
    return true;
}

/* A strict server writes no bare NaN, which JSON does not have. */
static bool can_write(const infer_request *q)
{
    for (int o = 0; o < q->output_count; o++) {
        bool is_text = !q->outputs[o].is_binary && q->outputs[o].region.name.bytes == 0;
        for (int j = 0; is_text && j < q->job_count; j++) {
            if (!is_finite(&q->jobs[j]->outputs[q->outputs[o].index]))
                return false;
        }
    }
    return true;
}

static int bucket_index(const model *m, const job *j)
{
    for (int i = 0; i < m->bucket_count; i++) {
        if (m->buckets[i].shape.batch == j->bucket.batch &&
            m->buckets[i].shape.sequence == j->bucket.sequence &&
            (m->buckets[i].sequences > 0) == j->is_packed)
            return i;
    }
    return -1;
}

/* The request waited for the job that was done last: its stages and its batch are recorded. */
static void take_sample(request *r)
{
    const infer_request *q = &r->infer;
    const job *last = q->jobs[0];
    for (int i = 1; i < q->job_count; i++) {
        if (q->jobs[i]->stage_ns[STAGE_SLICE] > last->stage_ns[STAGE_SLICE])
            last = q->jobs[i];
    }
    for (int i = STAGE_QUEUE; i <= STAGE_SLICE; i++)
        r->sample.stage_ns[i] = last->stage_ns[i];
    r->sample.batch_rows = last->batch_rows;
    r->sample.bucket = (record_shape){last->bucket, last->is_packed};
    r->sample.bucket_index = bucket_index(q->model, last);
    r->sample.fell_back = last->fell_back;
}

static char *write_ms(char *out, uint64_t ns)
{
    out = number_write_u64(out, ns / 1000000);
    uint64_t us = ns / 1000 % 1000;
    *out++ = '.';
    *out++ = (char)('0' + us / 100);
    *out++ = (char)('0' + us / 10 % 10);
    *out++ = (char)('0' + us % 10);
    return out;
}

/* W3C Server-Timing. "batch" is form, pad and place. */
static void add_server_timing(request *r)
{
    const uint64_t *at = r->sample.stage_ns;
    struct {
        const char *name;
        uint64_t from, to;
    } spans[] = {{"queue;dur=", at[STAGE_ADMIT], at[STAGE_QUEUE]},
                 {", batch;dur=", at[STAGE_QUEUE], at[STAGE_PLACE]},
                 {", execute;dur=", at[STAGE_PLACE], at[STAGE_EXECUTE]}};
    char line[SERVER_TIMING_BYTES], *p = line;
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(spans[i].name);
        memcpy(p, spans[i].name, n);
        p = write_ms(p + n, spans[i].to > spans[i].from ? spans[i].to - spans[i].from : 0);
    }
    respond_header(r, "server-timing", line, (size_t)(p - line));
}

/* The binary form of a tensor of strings is made in the job's memory; others lie there as they are
 * sent. */
static status binary_piece(job *j, const tensor *t, request_text *piece)
{
    if (t->dtype != DTYPE_BYTES) {
        *piece = (request_text){t->data, tensor_bytes(t)};
        return STATUS_OK;
    }
    size_t bytes = write_strings_bytes(t);
    char *data = arena_allocate(&j->memory, bytes + 1);
    if (data == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %zu bytes of strings", bytes);
    write_strings(data, t);
    *piece = (request_text){data, bytes};
    return STATUS_OK;
}

/* The body of a response: the JSON, then the binary outputs, in the memory of the jobs. */
typedef struct body_pieces {
    request_text of[MODEL_TENSORS_MAX + 1];
    int count;
} body_pieces;

/* A gRPC message with its head. */
static status make_message(const infer_request *q, text_buffer *text, body_pieces *out)
{
    static const char head[GRPC_FRAME_HEAD_BYTES];
    grpc_pieces pieces;
    text_buffer_append(text, head, sizeof head);
    status failure = q->protocol == INFER_GRPC ? grpc_write_infer(text, q, &pieces)
                                               : grpc_write_predict(text, q, &pieces);
    if (failure)
        return failure;
    char *copy = arena_allocate(&q->jobs[0]->memory, text->bytes);
    if (copy == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the response");
    const char *at = memcpy(copy, text->data, text->bytes);
    out->count = pieces.count;
    for (int i = 0; i < pieces.count; i++) {
        const grpc_piece *piece = &pieces.of[i];
        out->of[i] = (request_text){piece->data != NULL ? piece->data : at, piece->bytes};
        at += piece->data == NULL ? piece->bytes : 0;
    }
    return STATUS_OK;
}

static status write_text(const infer_request *q, tokenizer_scratch *scratch, text_buffer *text)
{
    if (q->protocol == INFER_LANGUAGE)
        return language_write(text, q, scratch);
    if (q->protocol != INFER_KSERVE) {
        write_tensorflow(text, q);
        return STATUS_OK;
    }
    write_kserve(text, q);
    return STATUS_OK;
}

/* Any thread: the jobs are the caller's. `text` is scratch memory. */
static status make_pieces(const infer_request *q, bool is_strict, text_scratches *scratches,
                          shared_memory *regions, text_buffer *text, body_pieces *out)
{
    job *first = q->jobs[0];
    if (is_strict && !infer_is_grpc(q->protocol) && !can_write(q))
        return status_fail(STATUS_INTERNAL,
                           "the result holds NaN or Infinity, which strict JSON does not have");
    status failure = STATUS_OK;
    if (q->protocol == INFER_KSERVE || infer_is_grpc(q->protocol))
        failure = merge_rows(q);
    if (!failure && shared_tensors_are_written(q))
        failure = shared_tensors_write(q, regions);
    if (failure)
        return failure;
    if (infer_is_grpc(q->protocol))
        return make_message(q, text, out);
    tokenizer_scratch *scratch = NULL; /* for offsets, which are not kept */
    if (q->protocol == INFER_LANGUAGE && q->language->task == LANGUAGE_PREDICT)
        scratch = text_scratches_take(scratches);
    failure = write_text(q, scratch, text);
    if (scratch != NULL)
        text_scratches_return(scratches, scratch);
    if (failure)
        return failure;
    char *json = text->is_broken ? NULL : arena_allocate(&first->memory, text->bytes);
    if (json == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the response");
    out->of[0] = (request_text){memcpy(json, text->data, text->bytes), text->bytes};
    out->count = 1;
    for (int i = 0; i < q->output_count; i++) {
        if (!q->outputs[i].is_binary || q->outputs[i].region.name.bytes > 0)
            continue;
        request_text *piece = &out->of[out->count];
        failure = binary_piece(first, &first->outputs[q->outputs[i].index], piece);
        if (failure)
            return failure;
        out->count += piece->bytes > 0;
    }
    return STATUS_OK;
}

/* A response that a helper thread writes. */
typedef struct writing {
    request_work work; /* first */
    const infer_request *infer;
    text_scratches *scratches;
    shared_memory *regions;
    bool is_strict;
    content_coding coding;
    body_pieces pieces;
    char *compressed; /* NULL: it goes uncompressed */
    size_t compressed_bytes;
    budget_account held; /* what is written, before it is known: the response counts it then */
    status result;
    char error[STATUS_MESSAGE_BYTES_MAX];
} writing;

static void run(request_work *work)
{
    writing *w = (writing *)work;
    text_buffer text = {0};
    w->result = make_pieces(w->infer, w->is_strict, w->scratches, w->regions, &text, &w->pieces);
    text_buffer_dispose(&text);
    if (w->result) {
        strncpy(w->error, status_message(), sizeof w->error - 1);
        return;
    }
    compress_piece in[MODEL_TENSORS_MAX + 1];
    for (int i = 0; i < w->pieces.count; i++)
        in[i] = (compress_piece){w->pieces.of[i].data, w->pieces.of[i].bytes};
    if (infer_is_grpc(w->infer->protocol))
        in[0] = (compress_piece){(const char *)in[0].data + GRPC_FRAME_HEAD_BYTES,
                                 in[0].bytes - GRPC_FRAME_HEAD_BYTES};
    if (w->coding != CODING_IDENTITY &&
        compress_pieces(w->coding, in, w->pieces.count, &w->compressed, &w->compressed_bytes))
        w->compressed = NULL;
}

/* Headers that depend on the body; returns its type. The length and the octet stream only if
 * binary bytes follow: clients take their absence for "all of it is JSON". */
static const char *add_headers(request *r, const body_pieces *pieces)
{
    if (request_service(r)->options->server_timing)
        add_server_timing(r);
    if (r->infer.protocol == INFER_TENSORFLOW_ROWS && r->infer.rows_as != INFER_ROWS_JSON)
        return r->infer.rows_as == INFER_ROWS_CSV ? "text/csv" : "application/jsonlines";
    if (pieces->count == 1 || infer_is_grpc(r->infer.protocol))
        return "application/json";
    char digits[NUMBER_INTEGER_CHARS];
    size_t n = (size_t)(number_write_u64(digits, pieces->of[0].bytes) - digits);
    respond_header(r, "inference-header-content-length", digits, n);
    request_text asked;
    if (r->route.dialect != ROUTE_PLATFORM ||
        !invocation_find_header_size(request_header(r, "content-type"), &asked))
        return "application/octet-stream";
    char type[sizeof BINARY_TYPE + NUMBER_INTEGER_CHARS];
    int bytes = snprintf(type, sizeof type, BINARY_TYPE "%.*s", (int)n, digits);
    respond_header(r, "content-type", type, (size_t)bytes);
    return NULL;
}

static void respond_made(request *r, body_pieces *pieces)
{
    const char *type = add_headers(r, pieces);
    if (infer_is_grpc(r->infer.protocol))
        respond_grpc_pieces(r, pieces->of, pieces->count);
    else
        respond_pieces(r, type, pieces->of, pieces->count);
}

static void respond_written(request *r)
{
    writing *w = r->waits_for;
    r->waits_for = NULL;
    r->on_cancel = NULL;
    budget_return(&w->held);
    if (!request_has_ended(r) && w->result) {
        respond_status(r, w->result, w->error);
    } else if (!request_has_ended(r)) {
        if (w->compressed != NULL)
            respond_compressed(r, add_headers(r, &w->pieces), w->coding, w->compressed,
                               w->compressed_bytes);
        else
            respond_made(r, &w->pieces);
        w->compressed = NULL;
    }
    free(w->compressed);
    free(w);
}

/* Would writing the response hold the loop? `*json_bytes`: roughly. */
static bool is_long(const infer_request *q, content_coding coding, size_t *json_bytes)
{
    size_t json = 0, binary = 0;
    for (int o = 0; o < q->output_count; o++) {
        for (int j = 0; j < q->job_count; j++) {
            const tensor *t = &q->jobs[j]->outputs[q->outputs[o].index];
            if (q->outputs[o].region.name.bytes > 0)
                continue;
            if (q->outputs[o].is_binary)
                binary += tensor_bytes(t);
            else
                json += (size_t)tensor_count(t) * JSON_BYTES_A_NUMBER;
        }
    }
    *json_bytes = json;
    if (shared_tensors_are_written(q))
        return true;
    return json > LONG_JSON_BYTES ||
           (coding != CODING_IDENTITY && json + binary > LONG_CODED_BYTES);
}

/* A response that no connection may hold never has room: it is not worth another try. */
static void refuse_json(request *r, size_t bytes)
{
    size_t most = request_service(r)->budget.limits.connection_bytes_max;
    if (bytes <= most)
        respond_status(r, STATUS_UNAVAILABLE, "there is no room for the response now");
    else
        respond_status(r,
                       status_fail(STATUS_TOO_LARGE,
                                   "writing the outputs as JSON takes %zu MiB; the limit is %zu "
                                   "MiB for a connection: ask for binary outputs",
                                   bytes >> 20, most >> 20),
                       status_message());
}

static bool write_beside(request *r)
{
    content_coding coding = respond_coding(r);
    size_t json_bytes;
    if (request_service(r)->helpers == NULL || !is_long(&r->infer, coding, &json_bytes))
        return false;
    writing *w = calloc(1, sizeof *w);
    if (w == NULL && shared_tensors_are_written(&r->infer))
        respond_status(r, STATUS_OUT_OF_MEMORY, "no memory for the response");
    if (w == NULL)
        return request_has_ended(r);
    budget_lend(&r->connection->held, &w->held);
    if (budget_add(&w->held, COPIES * json_bytes) != BUDGET_GRANTED) {
        free(w);
        refuse_json(r, COPIES * json_bytes);
        return true;
    }
    w->work.run = run;
    w->infer = &r->infer;
    w->scratches = &request_service(r)->text_scratches;
    w->regions = request_service(r)->regions;
    w->is_strict = request_service(r)->options->strict_json;
    w->coding = coding;
    bool is_taken = request_offload(r, &w->work, true, respond_written);
    assert(is_taken);
    return is_taken;
}

/* Outputs whose shapes nobody knew before. */
static status check_sizes(request *r)
{
    const infer_request *q = &r->infer;
    const server_limits *limits = &request_service(r)->options->limits;
    status failure = STATUS_OK;
    for (int i = 0; model_is_whole(q->model) && i < q->job_count && !failure; i++)
        failure = infer_check_outputs(q->model, q->jobs[i]->outputs, limits);
    return failure;
}

void respond_with_results(request *r)
{
    const infer_request *q = &r->infer;
    text_buffer *text = &r->loop->text;
    body_pieces pieces;
    if (request_has_ended(r))
        return;
    take_sample(r);
    for (int i = 0; i < q->job_count; i++) {
        if (q->jobs[i]->result != STATUS_OK) {
            if (q->jobs[i]->result == STATUS_UNAVAILABLE)
                r->sample.reason = RECORD_DEVICE_LOST;
            respond_status(r, q->jobs[i]->result, q->jobs[i]->error);
            return;
        }
    }
    status too_large = check_sizes(r);
    if (too_large) {
        respond_status(r, too_large, status_message());
        return;
    }
    if (write_beside(r))
        return;
    text_buffer_reset(text, TEXT_KEEP_BYTES);
    service *s = request_service(r);
    status failure =
        make_pieces(q, s->options->strict_json, &s->text_scratches, s->regions, text, &pieces);
    if (failure)
        respond_status(r, failure, status_message());
    else
        respond_made(r, &pieces);
}

#include "server/infer/results.h"

#include <math.h>
#include <string.h>

#include "server/protocol/text/number_write.h"
#include "server/protocol/write_infer.h"
#include "server/request/respond.h"

#define TEXT_KEEP_BYTES (1 << 20)
#define SERVER_TIMING_BYTES 128

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
        for (int j = 0; j < q->job_count && !q->outputs[o].is_binary; j++) {
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

/* The JSON, then the binary outputs. Returns their number, or 0 when memory is out. */
static int make_pieces(request *r, request_text pieces[MODEL_TENSORS_MAX + 1])
{
    const infer_request *q = &r->infer;
    text_buffer *text = &r->loop->text;
    job *first = q->jobs[0];
    text_buffer_reset(text, TEXT_KEEP_BYTES);
    if (q->protocol == INFER_KSERVE)
        write_kserve(text, q);
    else
        write_tensorflow(text, q);
    char *json = arena_allocate(&first->memory, text->bytes);
    if (json == NULL)
        return 0;
    pieces[0] = (request_text){memcpy(json, text->data, text->bytes), text->bytes};
    int count = 1;
    for (int i = 0; i < q->output_count; i++) {
        if (!q->outputs[i].is_binary)
            continue;
        if (binary_piece(first, &first->outputs[q->outputs[i].index], &pieces[count]))
            return 0;
        count += pieces[count].bytes > 0;
    }
    return count;
}

void respond_with_results(request *r)
{
    const infer_request *q = &r->infer;
    const server_options *o = request_service(r)->options;
    request_text pieces[MODEL_TENSORS_MAX + 1];
    if (request_has_ended(r))
        return;
    take_sample(r);
    for (int i = 0; i < q->job_count; i++) {
        if (q->jobs[i]->result != STATUS_OK) {
            respond_status(r, q->jobs[i]->result, q->jobs[i]->error);
            return;
        }
    }
    if (o->strict_json && !can_write(q)) {
        respond_error(r, 500, "the result holds NaN or Infinity, which strict JSON does not have");
        return;
    }
    int count = make_pieces(r, pieces);
    if (count == 0) {
        respond_status(r, STATUS_OUT_OF_MEMORY, "no memory for the response");
        return;
    }
    if (o->server_timing)
        add_server_timing(r);
    /* This header and the octet stream only if binary bytes follow: clients take its absence for
     * "all of it is JSON". */
    if (count > 1) {
        char digits[NUMBER_INTEGER_CHARS];
        size_t n = (size_t)(number_write_u64(digits, pieces[0].bytes) - digits);
        respond_header(r, "inference-header-content-length", digits, n);
    }
    respond_pieces(r, count > 1 ? "application/octet-stream" : "application/json", pieces, count);
}

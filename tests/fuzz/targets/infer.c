/* Bodies of inference requests: KServe JSON, binary tensors, TensorFlow Serving. What is accepted
 * is read in full, answered, and the answer is read again. */
#include <stdlib.h>
#include <string.h>

#include "server/protocol/grpc/predict_message.h"
#include "server/protocol/grpc/wire.h"
#include "server/protocol/infer.h"
#include "server/protocol/write_infer.h"
#include "tests/fuzz/fuzz.h"

#define JOBS_MAX 8

static job *acquired[JOBS_MAX + 1];
static int acquired_count;
static model models[4];
static const server_limits limits = {.json_depth_max = 16,
                                     .request_jobs_max = JOBS_MAX,
                                     .output_bytes_max = 1 << 20,
                                     .decompressed_bytes_max = 1 << 20};

static job *acquire_job(void *context)
{
    if (acquired_count == JOBS_MAX)
        return NULL;
    job *j = calloc(1, sizeof *j);
    j->model = context;
    j->rows = j->length = -1;
    acquired[acquired_count++] = j;
    return j;
}

static model_tensor tensor_of(const char *name, dtype type, int64_t dim, bool has_sequence)
{
    return (model_tensor){.name = name,
                          .dtype = type,
                          .rank = 2,
                          .dims = {-1, has_sequence ? -1 : dim},
                          .batch_axis = 0,
                          .sequence_axis = has_sequence ? 1 : -1};
}

/* Pixels; token ids with an optional mask; strings; one input of each type. */
static void make_models(void)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g",
                                        "h", "i", "j", "k", "l", "m", "n"};
    static const dtype types[] = {DTYPE_BOOL, DTYPE_U8,  DTYPE_I8,  DTYPE_I16,  DTYPE_U16,
                                  DTYPE_I32,  DTYPE_U32, DTYPE_I64, DTYPE_U64,  DTYPE_F16,
                                  DTYPE_BF16, DTYPE_F32, DTYPE_F64, DTYPE_BYTES};
    if (models[0].name != NULL)
        return;
    for (int i = 0; i < 4; i++) {
        models[i].name = "m";
        models[i].version = 1;
        models[i].batching = (model_batching){.can_batch = true,
                                              .can_pad = true,
                                              .batch_max = 8,
                                              .sequence_max = i == 1 ? 8 : 0,
                                              .queue_rows_max = 100};
        models[i].outputs[0] = tensor_of("y", i == 2 ? DTYPE_I64 : DTYPE_F32, 2, i == 1);
        models[i].output_count = 1;
        models[i].input_count = 1;
    }
    models[0].inputs[0] = tensor_of("x", DTYPE_F32, 2, false);
    models[1].inputs[0] = tensor_of("ids", DTYPE_I64, 0, true);
    models[1].inputs[1] = tensor_of("mask", DTYPE_I64, 0, true);
    models[1].inputs[1].is_mask = models[1].inputs[1].is_optional = true;
    models[1].input_count = 2;
    models[2].inputs[0] = tensor_of("text", DTYPE_BYTES, 1, false);
    models[3].input_count = sizeof types / sizeof types[0];
    for (int i = 0; i < models[3].input_count; i++) {
        models[3].inputs[i] = tensor_of(names[i], types[i], 1, false);
        models[3].inputs[i].is_optional = i > 0;
    }
}

static void read_bytes(const void *data, size_t bytes)
{
    volatile uint8_t sum = 0;
    for (size_t i = 0; i < bytes; i++)
        sum ^= ((const uint8_t *)data)[i];
}

static void read_tensor(const tensor *t)
{
    if (t->dtype == DTYPE_BYTES) {
        for (int64_t i = 0; i < tensor_count(t); i++)
            read_bytes(((const tensor_string *)t->data)[i].data,
                       ((const tensor_string *)t->data)[i].bytes);
        return;
    }
    read_bytes(t->data, tensor_bytes(t));
}

/* The response to an accepted call is a message, and its pieces are all of it. */
static void answer_call(text_buffer *out, const infer_request *r)
{
    grpc_pieces pieces;
    size_t text = 0;
    wire_reader reader;
    wire_field f;
    bool has_field = true;
    if (r->protocol == INFER_GRPC)
        assert(grpc_write_infer(out, r, &pieces) == STATUS_OK);
    else
        assert(grpc_write_predict(out, r, &pieces) == STATUS_OK);
    for (int i = 0; i < pieces.count; i++)
        text += pieces.of[i].data == NULL ? pieces.of[i].bytes : 0;
    assert(text == out->bytes && pieces.count >= 1);
    reader = (wire_reader){out->data, out->data + out->bytes};
    while (pieces.count == 1 && has_field)
        assert(wire_next(&reader, &f, &has_field) == STATUS_OK);
}

/* The response to an accepted request is well-formed JSON. */
static void answer(const infer_request *r)
{
    text_buffer out = {0};
    arena memory = {0};
    for (int i = 0; i < r->job_count; i++)
        for (int k = 0; k < r->model->output_count; k++)
            if (tensor_count(&r->jobs[i]->outputs[k]) > 0)
                memset(r->jobs[i]->outputs[k].data, 0, tensor_bytes(&r->jobs[i]->outputs[k]));
    if (infer_is_grpc(r->protocol)) {
        answer_call(&out, r);
        text_buffer_dispose(&out);
        return;
    }
    if (r->protocol == INFER_KSERVE)
        write_kserve(&out, r);
    else
        write_tensorflow(&out, r);
    json_scan s;
    json_scan_init(&s, out.data, out.bytes, 32, true, &memory);
    assert(json_skip_value(&s) == STATUS_OK && json_expect_end(&s) == STATUS_OK);
    text_buffer_dispose(&out);
    arena_dispose(&memory);
}

static void check(const infer_request *r)
{
    int64_t rows = 0;
    assert(r->job_count >= 1 && r->job_count <= JOBS_MAX && r->job_count == acquired_count);
    for (int i = 0; i < r->job_count; i++) {
        const job *j = r->jobs[i];
        assert(j->rows >= 1 && j->length >= 0);
        assert(j->length <= r->model->batching.sequence_max);
        for (int k = 0; k < r->model->input_count; k++) {
            if (!r->model->inputs[k].is_optional)
                assert(j->inputs[k].dims[0] == j->rows);
            read_tensor(&j->inputs[k]);
        }
        rows += j->rows;
    }
    assert(r->rows == NULL || r->row_count == rows);
    answer(r);
}

typedef enum body_kind {
    BODY_KSERVE,
    BODY_KSERVE_BINARY,
    BODY_TENSORFLOW,
    BODY_GRPC,
    BODY_PREDICT
} body_kind;

/* The head names what is inside the message. */
static status parse_predict(infer_request *r, const infer_context *c, const char *body,
                            size_t bytes)
{
    grpc_predict_head head;
    status failure = grpc_read_predict_head(&head, body, bytes);
    if (failure)
        return failure;
    assert(head.raw_bytes <= bytes && head.version >= 0);
    read_bytes(head.model_name.text, head.model_name.bytes);
    read_bytes(head.label.text, head.label.bytes);
    return grpc_parse_predict(r, c, body, bytes);
}

static void run(body_kind kind, const uint8_t *data, size_t bytes)
{
    fuzz_input in = {data, bytes};
    infer_scratch scratch = {0};
    job *jobs[JOBS_MAX];
    infer_request r;
    make_models();
    uint8_t options = fuzz_take_byte(&in);
    size_t json_bytes = kind == BODY_KSERVE_BINARY ? fuzz_take_u16(&in) : in.bytes;
    infer_context c = {.limits = &limits,
                       .is_strict = options & 4,
                       .can_borrow = options & 8,
                       .acquire_job = acquire_job,
                       .context = &models[options & 3],
                       .scratch = &scratch};
    const char *body = (const char *)in.data;
    status failure;
    infer_request_init(&r, &models[options & 3],
                       kind == BODY_TENSORFLOW ? INFER_TENSORFLOW_ROWS
                       : kind == BODY_GRPC     ? INFER_GRPC
                       : kind == BODY_PREDICT  ? INFER_GRPC_TENSORFLOW
                                               : INFER_KSERVE,
                       jobs, JOBS_MAX);
    if (kind == BODY_TENSORFLOW)
        failure = parse_tensorflow(&r, &c, body, in.bytes);
    else if (kind == BODY_GRPC)
        failure = grpc_parse_infer(&r, &c, body, in.bytes);
    else if (kind == BODY_PREDICT)
        failure = parse_predict(&r, &c, body, in.bytes);
    else if (kind == BODY_KSERVE_BINARY && json_bytes == 0)
        failure = parse_kserve_raw(&r, &c, body, in.bytes);
    else
        failure =
            parse_kserve(&r, &c, body, in.bytes, json_bytes < in.bytes ? json_bytes : in.bytes);
    if (failure)
        assert(failure != STATUS_INTERNAL && status_message()[0] != 0);
    else
        check(&r);
    while (acquired_count > 0) {
        job *j = acquired[--acquired_count];
        arena_dispose(&j->memory);
        free(j);
    }
    infer_scratch_dispose(&scratch);
}

void fuzz_kserve(const uint8_t *data, size_t bytes)
{
    run(BODY_KSERVE, data, bytes);
}

void fuzz_kserve_binary(const uint8_t *data, size_t bytes)
{
    run(BODY_KSERVE_BINARY, data, bytes);
}

void fuzz_tensorflow(const uint8_t *data, size_t bytes)
{
    run(BODY_TENSORFLOW, data, bytes);
}

void fuzz_grpc(const uint8_t *data, size_t bytes)
{
    run(BODY_GRPC, data, bytes);
}

void fuzz_predict(const uint8_t *data, size_t bytes)
{
    run(BODY_PREDICT, data, bytes);
}

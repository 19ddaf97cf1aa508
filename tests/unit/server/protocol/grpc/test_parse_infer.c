/* ModelInferRequest to a job, and back to ModelInferResponse. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "server/protocol/grpc/infer_message.h"
#include "server/protocol/grpc/wire.h"

static model the_model;
static job *taken;

static job *acquire_job(void *unused)
{
    (void)unused;
    taken = calloc(1, sizeof *taken);
    taken->model = &the_model;
    taken->rows = taken->length = -1;
    return taken;
}

static void make_model(dtype type)
{
    memset(&the_model, 0, sizeof the_model);
    the_model.name = "m";
    the_model.version = 7;
    the_model.inputs[0] = the_model.outputs[0] =
        (model_tensor){.name = "x", .dtype = type, .rank = 2, .dims = {-1, 2}, .sequence_axis = -1};
    the_model.outputs[0].name = "y";
    the_model.input_count = the_model.output_count = 1;
    the_model.batching = (model_batching){.can_batch = true, .batch_max = 8, .queue_rows_max = 100};
}

static const server_limits limits = {.request_jobs_max = 1, .output_bytes_max = 1 << 20};
static infer_request request;
static job *jobs[1];

static status parse(const text_buffer *message)
{
    infer_context c = {.limits = &limits, .can_borrow = true, .acquire_job = acquire_job};
    taken = NULL;
    infer_request_init(&request, &the_model, INFER_GRPC, jobs, 1);
    return grpc_parse_infer(&request, &c, message->data, message->bytes);
}

static void drop(void)
{
    if (taken != NULL)
        arena_dispose(&taken->memory);
    free(taken);
}

/* A packed field, of one byte each. */
static void put_packed(text_buffer *out, uint32_t field, const char *values, size_t count)
{
    wire_put_bytes(out, field, values, count);
}

static void put_input(text_buffer *out, const char *datatype, const text_buffer *contents)
{
    size_t from = out->bytes;
    wire_put_bytes(out, 1, "x", 1);
    wire_put_bytes(out, 2, datatype, strlen(datatype));
    put_packed(out, 3, "\x01\x02", 2);
    if (contents != NULL)
        wire_put_bytes(out, 5, contents->data, contents->bytes);
    wire_wrap(out, from, 5);
}

static text_buffer raw_request(void)
{
    static const float x[2] = {1.5f, -2};
    text_buffer m = {0};
    wire_put_bytes(&m, 1, "m", 1);
    wire_put_bytes(&m, 3, "id", 2);
    put_input(&m, "FP32", NULL);
    wire_put_bytes(&m, 7, x, sizeof x);
    return m;
}

Test(grpc_parse_infer, raw_contents)
{
    make_model(DTYPE_F32);
    text_buffer m = raw_request();
    cr_assert_eq(parse(&m), STATUS_OK, "%s", status_message());
    const float *x = taken->inputs[0].data;
    cr_assert(taken->rows == 1 && x[0] == 1.5f && x[1] == -2);
    cr_assert(request.id.bytes == 2 && memcmp(request.id.text, "id", 2) == 0);
    cr_assert(request.output_count == 1 && request.outputs[0].is_binary);
    drop();
    grpc_infer_head head;
    cr_assert_eq(grpc_read_infer_head(&head, m.data, m.bytes), STATUS_OK);
    cr_assert(head.raw_bytes == 8 && head.model_name.bytes == 1 && head.id.bytes == 2);
    text_buffer_dispose(&m);
}

Test(grpc_parse_infer, no_part_of_a_message_is_one)
{
    make_model(DTYPE_F32);
    text_buffer m = raw_request();
    for (size_t n = 0; n < m.bytes; n++) {
        text_buffer part = {.data = malloc(n + 1), .bytes = n};
        memcpy(part.data, m.data, n);
        cr_assert_eq(parse(&part), STATUS_INVALID_ARGUMENT, "%zu of %zu", n, m.bytes);
        drop();
        free(part.data);
    }
    text_buffer_dispose(&m);
}

Test(grpc_parse_infer, typed_contents_of_every_type)
{
    static const struct {
        dtype type;
        uint32_t field;
        const char *data;
        size_t bytes;
        double first;
    } cases[] = {{DTYPE_BOOL, 1, "\x00\x01", 2, 0},
                 {DTYPE_I8, 2, "\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, 127},
                 {DTYPE_I16, 2, "\x05\x06", 2, 5},
                 {DTYPE_I32, 2, "\x05\x06", 2, 5},
                 {DTYPE_I64, 3, "\x05\x06", 2, 5},
                 {DTYPE_U8, 4, "\xff\x01\x06", 3, 255},
                 {DTYPE_U16, 4, "\x05\x06", 2, 5},
                 {DTYPE_U32, 4, "\xff\xff\xff\xff\x0f\x06", 6, 4294967295.0},
                 {DTYPE_U64, 5, "\x05\x06", 2, 5},
                 {DTYPE_F32, 6, "\x00\x00\x80\x3f\x00\x00\x00\x00", 8, 1},
                 {DTYPE_F64, 7, "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\0", 16, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        text_buffer contents = {0}, m = {0};
        make_model(cases[i].type);
        put_packed(&contents, cases[i].field, cases[i].data, cases[i].bytes);
        put_input(&m, dtype_kserve_name(cases[i].type), &contents);
        cr_assert_eq(parse(&m), STATUS_OK, "%zu: %s", i, status_message());
        cr_assert_eq(tensor_get_number(&taken->inputs[0], 0), cases[i].first, "%zu", i);
        drop();
        text_buffer_dispose(&contents);
        text_buffer_dispose(&m);
    }
}

static void expect_failure(dtype type, const char *datatype, uint32_t field, const char *data,
                           size_t bytes, const char *message)
{
    text_buffer contents = {0}, m = {0};
    make_model(type);
    put_packed(&contents, field, data, bytes);
    put_input(&m, datatype, &contents);
    cr_assert_eq(parse(&m), STATUS_INVALID_ARGUMENT, "%s", message);
    cr_assert(strstr(status_message(), message) != NULL, "%s", status_message());
    drop();
    text_buffer_dispose(&contents);
    text_buffer_dispose(&m);
}

Test(grpc_parse_infer, wrong_contents_are_refused_with_their_name)
{
    expect_failure(DTYPE_U8, "UINT8", 4, "\x80\x02\x01", 3, "256 does not fit UINT8");
    expect_failure(DTYPE_I32, "INT32", 2, "\xff\xff\xff\xff\x0f\x01", 6, "does not fit INT32");
    expect_failure(DTYPE_I32, "INT32", 3, "\x01\x01", 2, "int64_contents");
    expect_failure(DTYPE_I32, "INT32", 2, "\x01", 1, "elements of shape [1,2]");
    expect_failure(DTYPE_I32, "INT32", 2, "\x01\x02\x03", 3, "elements of shape [1,2]");
    expect_failure(DTYPE_F32, "FP32", 6, "\x00\x00\x80\x3f\x00\x00\x00", 7, "elements of shape");
    expect_failure(DTYPE_F16, "FP16", 6, "\x00\x00\x80\x3f", 4, "raw_input_contents");
    expect_failure(DTYPE_F32, "FP33", 6, "\x00\x00\x80\x3f", 4, "datatype \"FP33\"");
    expect_failure(DTYPE_I64, "INT32", 2, "\x01\x01", 2, "the model takes INT64");
}

Test(grpc_parse_infer, strings_outlive_the_message)
{
    text_buffer contents = {0}, m = {0};
    make_model(DTYPE_BYTES);
    wire_put_bytes(&contents, 8, "ab", 2);
    wire_put_bytes(&contents, 8, "", 0);
    put_input(&m, "BYTES", &contents);
    cr_assert_eq(parse(&m), STATUS_OK, "%s", status_message());
    memset(m.data, 'z', m.bytes);
    const tensor_string *s = taken->inputs[0].data;
    cr_assert(s[0].bytes == 2 && memcmp(s[0].data, "ab", 2) == 0 && s[1].bytes == 0);
    drop();
    text_buffer_dispose(&contents);
    text_buffer_dispose(&m);
}

Test(grpc_parse_infer, raw_and_typed_contents_exclude_each_other)
{
    text_buffer contents = {0}, m = {0};
    make_model(DTYPE_F32);
    put_packed(&contents, 6, "\0\0\0\0\0\0\0\0", 8);
    put_input(&m, "FP32", &contents);
    wire_put_bytes(&m, 7, "\0\0\0\0\0\0\0\0", 8);
    cr_assert_eq(parse(&m), STATUS_INVALID_ARGUMENT);
    cr_assert(strstr(status_message(), "exclude each other") != NULL, "%s", status_message());
    drop();
    wire_put_bytes(&m, 7, "\0", 1);
    cr_assert_eq(parse(&m), STATUS_INVALID_ARGUMENT);
    cr_assert(strstr(status_message(), "2 tensors for 1 inputs") != NULL, "%s", status_message());
    drop();
    text_buffer_dispose(&contents);
    text_buffer_dispose(&m);
}

/* An entry of the map of parameters: a bool_param (1) or int64_param (2). */
static void put_parameter(text_buffer *out, const char *key, uint32_t kind, uint64_t value)
{
    size_t from = out->bytes;
    wire_put_bytes(out, 1, key, strlen(key));
    size_t inner = out->bytes;
    wire_put_varint(out, kind, value);
    wire_wrap(out, inner, 2);
    wire_wrap(out, from, 4);
}

Test(grpc_parse_infer, parameters)
{
    static const struct {
        const char *key;
        uint32_t kind;
        uint64_t value;
        status result;
    } cases[] = {{"timeout", 2, 1000, STATUS_OK},
                 {"timeout", 1, 1, STATUS_INVALID_ARGUMENT},
                 {"timeout", 2, (uint64_t)-5, STATUS_INVALID_ARGUMENT},
                 {"priority", 5, 3, STATUS_OK},
                 {"binary_data_output", 1, 0, STATUS_OK},
                 {"sequence_id", 2, 0, STATUS_OK},
                 {"sequence_id", 2, 4, STATUS_UNSUPPORTED},
                 {"unknown", 2, 4, STATUS_OK}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make_model(DTYPE_F32);
        text_buffer m = raw_request();
        put_parameter(&m, cases[i].key, cases[i].kind, cases[i].value);
        cr_assert_eq(parse(&m), cases[i].result, "%s: %s", cases[i].key, status_message());
        if (i == 0)
            cr_assert_eq(request.timeout_ns, 1000000);
        if (i == 3)
            cr_assert_eq(request.priority, 3);
        if (i == 4)
            cr_assert(!request.outputs[0].is_binary);
        drop();
        text_buffer_dispose(&m);
    }
}

Test(grpc_parse_infer, the_response_has_what_the_job_computed)
{
    make_model(DTYPE_F32);
    text_buffer m = raw_request(), out = {0};
    cr_assert_eq(parse(&m), STATUS_OK);
    memcpy(taken->outputs[0].data, (float[]){3, 4}, 8);
    for (int is_raw = 0; is_raw < 2; is_raw++) {
        grpc_pieces pieces;
        int outputs = 0, raw = 0;
        request.outputs[0].is_binary = is_raw;
        text_buffer_clear(&out);
        cr_assert_eq(grpc_write_infer(&out, &request, &pieces), STATUS_OK);
        cr_assert(pieces.count == 1 && pieces.of[0].bytes == out.bytes);
        wire_reader r = {out.data, out.data + out.bytes};
        wire_field f;
        bool has_field;
        while (!wire_next(&r, &f, &has_field) && has_field) {
            outputs += f.number == 5;
            raw += f.number == 6 && f.bytes == 8;
            cr_assert(f.number != 2 || (f.bytes == 1 && f.data[0] == '7'));
        }
        cr_assert(outputs == 1 && raw == is_raw);
    }
    drop();
    text_buffer_dispose(&m);
    text_buffer_dispose(&out);
}

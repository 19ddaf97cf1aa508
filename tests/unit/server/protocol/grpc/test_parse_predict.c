/* PredictRequest to a job, and back to PredictResponse. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "server/protocol/grpc/predict_message.h"
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

static void make_model(dtype type, int64_t width)
{
    memset(&the_model, 0, sizeof the_model);
    the_model.name = "m";
    the_model.version = 7;
    the_model.inputs[0] = the_model.outputs[0] = (model_tensor){
        .name = "x", .dtype = type, .rank = 2, .dims = {-1, width}, .sequence_axis = -1};
    the_model.outputs[0].name = "y";
    the_model.input_count = the_model.output_count = 1;
    the_model.batching = (model_batching){.can_batch = true, .batch_max = 8, .queue_rows_max = 100};
}

static const server_limits limits = {
    .request_jobs_max = 1, .output_bytes_max = 1 << 30, .decompressed_bytes_max = 4096};
static infer_request request;
static job *jobs[1];

static status parse(const text_buffer *message)
{
    infer_context c = {.limits = &limits, .can_borrow = true, .acquire_job = acquire_job};
    taken = NULL;
    infer_request_init(&request, &the_model, INFER_GRPC_TENSORFLOW, jobs, 1);
    return grpc_parse_predict(&request, &c, message->data, message->bytes);
}

static void drop(text_buffer *message)
{
    if (taken != NULL)
        arena_dispose(&taken->memory);
    free(taken);
    taken = NULL;
    text_buffer_dispose(message);
}

/* The spec of version 3, and input "x": the elements are one field. */
static text_buffer message_of(int type, const uint64_t dims[2], uint32_t field,
                              const void *elements, size_t bytes)
{
    text_buffer m = {0};
    wire_put_bytes(&m, 1, "m", 1);
    size_t version = m.bytes;
    wire_put_varint(&m, 1, 3);
    wire_wrap(&m, version, 2);
    wire_wrap(&m, 0, 1);
    size_t entry = m.bytes;
    wire_put_bytes(&m, 1, "x", 1);
    size_t value = m.bytes;
    wire_put_varint(&m, 1, (uint64_t)type);
    size_t shape = m.bytes;
    for (int i = 0; i < 2; i++) {
        size_t dim = m.bytes;
        wire_put_varint(&m, 1, dims[i]);
        wire_wrap(&m, dim, 2);
    }
    wire_wrap(&m, shape, 2);
    if (field != 0)
        wire_put_bytes(&m, field, elements, bytes);
    wire_wrap(&m, value, 2);
    wire_wrap(&m, entry, 2);
    return m;
}

static const float x[2] = {1.5f, -2};

Test(grpc_parse_predict, content_and_typed)
{
    for (uint32_t field = 4; field <= 5; field++) {
        make_model(DTYPE_F32, 2);
        text_buffer m = message_of(1, (uint64_t[]){1, 2}, field, x, sizeof x);
        cr_assert_eq(parse(&m), STATUS_OK, "%s", status_message());
        const float *found = taken->inputs[0].data;
        cr_assert(taken->rows == 1 && found[0] == 1.5f && found[1] == -2);
        cr_assert(request.output_count == 1 && request.outputs[0].index == 0);
        grpc_predict_head head;
        cr_assert_eq(grpc_read_predict_head(&head, m.data, m.bytes), STATUS_OK);
        cr_assert(head.version == 3 && head.model_name.bytes == 1 && head.label.bytes == 0);
        cr_assert_eq(head.raw_bytes, field == 4 ? sizeof x : 0);
        cr_assert_eq(head.repeated_bytes, 0);
        drop(&m);
    }
}

Test(grpc_parse_predict, no_part_of_a_message_is_one)
{
    make_model(DTYPE_F32, 2);
    text_buffer m = message_of(1, (uint64_t[]){1, 2}, 4, x, sizeof x);
    for (size_t n = 0; n < m.bytes; n++) {
        text_buffer part = {.data = malloc(n + 1), .bytes = n};
        memcpy(part.data, m.data, n);
        cr_assert_eq(parse(&part), STATUS_INVALID_ARGUMENT, "%zu of %zu", n, m.bytes);
        drop(&part);
    }
    text_buffer_dispose(&m);
}

/* A few bytes reserve no more memory than limits.decompressed_bytes_max, and what they stand for is
 * told beforehand. */
Test(grpc_parse_predict, elements_that_are_repeated)
{
    static const struct {
        uint64_t width;
        status result;
    } cases[] = {{1000, STATUS_OK}, {1024, STATUS_OK}, {1025, STATUS_TOO_LARGE}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make_model(DTYPE_F32, (int64_t)cases[i].width);
        text_buffer m = message_of(1, (uint64_t[]){1, cases[i].width}, 5, x, sizeof x);
        grpc_predict_head head;
        cr_assert_eq(parse(&m), cases[i].result, "%zu: %s", i, status_message());
        cr_assert_eq(grpc_read_predict_head(&head, m.data, m.bytes), STATUS_OK);
        cr_assert(head.repeated_bytes <= cases[i].width * 4 &&
                  head.repeated_bytes + m.bytes >= cases[i].width * 4);
        if (cases[i].result == STATUS_OK)
            cr_assert_eq(((const float *)taken->inputs[0].data)[cases[i].width - 1], -2);
        drop(&m);
    }
}

/* The response's one output, of that type. */
Test(grpc_parse_predict, responses_of_every_type)
{
    static const struct {
        dtype type;
        int number;
        uint32_t field;
    } cases[] = {{DTYPE_F32, 1, 5},    {DTYPE_F64, 2, 6},  {DTYPE_I32, 3, 7},
                 {DTYPE_U8, 4, 7},     {DTYPE_I16, 5, 7},  {DTYPE_I8, 6, 7},
                 {DTYPE_BYTES, 7, 8},  {DTYPE_I64, 9, 10}, {DTYPE_BOOL, 10, 11},
                 {DTYPE_BF16, 14, 13}, {DTYPE_U16, 17, 7}, {DTYPE_F16, 19, 13},
                 {DTYPE_U32, 22, 16},  {DTYPE_U64, 23, 17}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make_model(cases[i].type, 2);
        text_buffer m = message_of(cases[i].number, (uint64_t[]){1, 2}, 0, NULL, 0), out = {0};
        cr_assert_eq(parse(&m), STATUS_OK, "%zu: %s", i, status_message());
        taken->outputs[0] = taken->inputs[0];
        grpc_pieces pieces;
        cr_assert_eq(grpc_write_predict(&out, &request, &pieces), STATUS_OK);
        cr_assert(pieces.count == 1 && pieces.of[0].bytes == out.bytes);
        wire_reader r = {out.data, out.data + out.bytes};
        wire_field f = {.number = 0}, inner = {.number = 0};
        bool has_field = true, has_elements = false;
        while (has_field && f.number != 1)
            cr_assert_eq(wire_next(&r, &f, &has_field), STATUS_OK);
        wire_reader entry = {f.data, f.data + f.bytes};
        cr_assert_eq(wire_next(&entry, &f, &has_field), STATUS_OK);
        cr_assert(f.number == 1 && f.bytes == 1 && f.data[0] == 'y');
        cr_assert_eq(wire_next(&entry, &f, &has_field), STATUS_OK);
        wire_reader value = {f.data, f.data + f.bytes};
        while (!wire_next(&value, &inner, &has_field) && has_field) {
            if (inner.number == 1)
                cr_assert_eq(inner.value, (uint64_t)cases[i].number);
            has_elements |= inner.number == cases[i].field;
        }
        cr_assert(has_elements, "%zu", i);
        text_buffer_dispose(&out);
        drop(&m);
    }
}

/* Request bodies to jobs: KServe with and without binary tensors, TensorFlow Serving. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/protocol/infer.h"

static model the_model;
static job *taken[8];
static int taken_count;

static job *acquire_job(void *pool)
{
    (void)pool;
    job *j = calloc(1, sizeof(*j));
    j->model = &the_model;
    j->rows = j->length = -1;
    taken[taken_count++] = j;
    return j;
}

static model_tensor tensor_of(const char *name, dtype type, int64_t dim, bool is_sequence)
{
    return (model_tensor){.name = name,
                          .dtype = type,
                          .rank = 2,
                          .dims = {-1, is_sequence ? -1 : dim},
                          .batch_axis = 0,
                          .sequence_axis = is_sequence ? 1 : -1};
}

/* x: FP32 [batch,2], y: INT64 [batch,sequence], mask optional; one output like x. */
static void make_model(bool has_sequence)
{
    memset(&the_model, 0, sizeof(the_model));
    the_model.name = "m";
    the_model.version = 1;
    if (has_sequence) {
        the_model.inputs[0] = tensor_of("ids", DTYPE_I64, 0, true);
        the_model.inputs[1] = tensor_of("mask", DTYPE_I64, 0, true);
        the_model.inputs[1].is_mask = the_model.inputs[1].is_optional = true;
        the_model.input_count = 2;
    } else {
        the_model.inputs[0] = tensor_of("x", DTYPE_F32, 2, false);
        the_model.input_count = 1;
    }
    the_model.outputs[0] = tensor_of("y", DTYPE_F32, 2, false);
    the_model.output_count = 1;
    the_model.batching = (model_batching){.can_batch = true,
                                          .can_pad = true,
                                          .batch_max = 8,
                                          .sequence_max = has_sequence ? 4 : 0,
                                          .queue_rows_max = 100};
}

static server_limits limits = {
    .json_depth_max = 16, .request_jobs_max = 4, .output_bytes_max = 1 << 20};
static infer_scratch scratch;
static job *jobs[8];
static infer_request request;

static void forget(void)
{
    for (int i = 0; i < taken_count; i++) {
        arena_dispose(&taken[i]->memory);
        free(taken[i]);
    }
    taken_count = 0;
    infer_scratch_dispose(&scratch);
}

static infer_context context(void)
{
    return (infer_context){.limits = &limits, .acquire_job = acquire_job, .scratch = &scratch};
}

static status kserve(const void *body, size_t bytes, size_t json_bytes)
{
    infer_context c = context();
    infer_request_init(&request, &the_model, INFER_KSERVE, jobs, 8);
    return parse_kserve(&request, &c, body, bytes, json_bytes);
}

static status kserve_text(const char *json)
{
    return kserve(json, strlen(json), strlen(json));
}

static status tensorflow(const char *json)
{
    infer_context c = context();
    infer_request_init(&request, &the_model, INFER_TENSORFLOW_ROWS, jobs, 8);
    return parse_tensorflow(&request, &c, json, strlen(json));
}

#define X(more) "{\"inputs\":[{\"name\":\"x\"," more "}]}"

TestSuite(infer, .fini = forget);

Test(infer, kserve_json)
{
    make_model(false);
    cr_assert_eq(
        kserve_text("{\"id\":\"7\",\"parameters\":{\"timeout\":5,\"other\":[1]},\"inputs\":[{"
                    "\"data\":[[1,2],[3,4]],\"name\":\"x\",\"shape\":[2,2],\"datatype\":"
                    "\"FP32\"}],\"outputs\":[{\"name\":\"y\",\"parameters\":{\"binary_data\":"
                    "true}}]}"),
        STATUS_OK, "%s", status_message());
    cr_assert(jobs[0]->rows == 2 && ((float *)jobs[0]->inputs[0].data)[3] == 4);
    cr_assert(json_string_is(request.id, "7") && request.timeout_ns == 5000);
    cr_assert(request.output_count == 1 && request.outputs[0].is_binary);
    cr_assert_eq(jobs[0]->outputs[0].dims[0], 2);
}

Test(infer, kserve_refusals_name_what_is_wrong)
{
    static const struct {
        const char *json, *says;
    } cases[] = {
        {"[]", "object"},
        {"{}", "inputs"},
        {X("\"shape\":[1,2],\"datatype\":\"FP32\",\"data\":[1,2]") "x", "nothing more"},
        {X("\"shape\":[1,2],\"datatype\":\"FP32\",\"data\":[1]"), "shape"},
        {X("\"shape\":[1,2],\"datatype\":\"FP32\",\"data\":[1,2,3]"), "more than"},
        {X("\"shape\":[2,1],\"datatype\":\"FP32\",\"data\":[1,2]"), "[batch,2]"},
        {X("\"shape\":[2],\"datatype\":\"FP32\",\"data\":[1,2]"), "[batch,2]"},
        {X("\"shape\":[-1,2],\"datatype\":\"FP32\",\"data\":[1,2]"), "not negative"},
        {X("\"shape\":[1,2],\"datatype\":\"FP64\",\"data\":[1,2]"), "FP64"},
        {X("\"shape\":[1,2],\"datatype\":\"FP31\",\"data\":[1,2]"), "FP31"},
        {X("\"shape\":[1,2],\"data\":[1,2]"), "datatype"},
        {X("\"shape\":[1,2],\"datatype\":\"FP32\""), "no data"},
        {X("\"shape\":[0,2],\"datatype\":\"FP32\",\"data\":[]"), "no rows"},
        {X("\"shape\":[2,2],\"datatype\":\"FP32\",\"data\":[[1,2,3,4]]"), "shape"},
        {X("\"shape\":[90,2],\"datatype\":\"FP32\",\"data\":[]"), "more elements"},
        {"{\"inputs\":[{\"name\":\"z\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":[1]}]}", "z"},
        {"{\"inputs\":[]}", "missing"},
        {"{\"inputs\":[],\"inputs\":[]}", "twice"},
        {"{\"outputs\":[{\"name\":\"q\"}],\"inputs\":[]}", "q"},
        {X("\"shape\":[1,2],\"datatype\":\"FP32\",\"data\":[1,1e400]"), "FP32"},
        {X("\"shape\":[1,2],\"datatype\":\"FP32\",\"data\":[1,-3.5e38]"), "FP32"},
        {X("\"shape\":[1,2],\"datatype\":\"FP32\",\"data\":[1,2,]"), "more than"},
        {X("\"shape\":[1,2],\"datatype\":\"FP32\",\"data\":[[1,2],]"), "different lengths"},
        {X("\"shape\":[1,2,],\"datatype\":\"FP32\",\"data\":[1,2]"), "a value"},
        {X("\"shape\":[1,2],\"datatype\":\"FP32\",\"data\":[1,2],"), "a key"},
        {X("\"shape\":[1,2] \"datatype\":\"FP32\",\"data\":[1,2]"), "','"},
        {X("\"shape\":[1,2],\"datatype\":\"FP32\",\"data\":[1,2]},"), "object"},
        {X("\"shape\":[1,2],\"shape\":[1,2],\"datatype\":\"FP32\",\"data\":[1,2]"), "twice"},
    };
    make_model(false);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_assert_eq(kserve_text(cases[i].json), STATUS_INVALID_ARGUMENT, "%s", cases[i].json);
        cr_assert(strstr(status_message(), cases[i].says), "%s: %s", cases[i].json,
                  status_message());
        forget();
    }
}

#define BINARY(size)                                                                               \
    X("\"shape\":[1,2],\"datatype\":\"FP32\",\"parameters\":{\"binary_data_size\":" size "}")

static status binary(const char *json, size_t blob_bytes)
{
    char body[512];
    size_t n = strlen(json);
    float values[4] = {1.5f, 2.5f, 3.5f, 4.5f};
    memcpy(body, json, n);
    memcpy(body + n, values, sizeof(values));
    return kserve(body, n + blob_bytes, n);
}

Test(infer, binary_tensors_must_fit_exactly)
{
    make_model(false);
    cr_assert_eq(binary(BINARY("8"), 8), STATUS_OK, "%s", status_message());
    cr_assert_eq(((float *)jobs[0]->inputs[0].data)[1], 2.5f);
    cr_assert_eq(binary(BINARY("8"), 9), STATUS_INVALID_ARGUMENT, "a byte is left over");
    cr_assert_eq(binary(BINARY("8"), 7), STATUS_INVALID_ARGUMENT, "a byte is missing");
    cr_assert_eq(binary(BINARY("4"), 4), STATUS_INVALID_ARGUMENT, "half a tensor");
    cr_assert_eq(binary(BINARY("-1"), 0), STATUS_INVALID_ARGUMENT);
    cr_assert_eq(binary(BINARY("\"8\""), 8), STATUS_INVALID_ARGUMENT);
    cr_assert_eq(binary(X("\"shape\":[1,2],\"datatype\":\"FP32\",\"data\":[1,2],\"parameters\":{"
                          "\"binary_data_size\":8}"),
                        8),
                 STATUS_INVALID_ARGUMENT, "both forms");
}

Test(infer, raw_mode_takes_the_body_as_the_input)
{
    float values[2] = {1, 2};
    infer_context c = context();
    make_model(false);
    infer_request_init(&request, &the_model, INFER_KSERVE, jobs, 8);
    cr_assert_eq(parse_kserve_raw(&request, &c, (char *)values, 8), STATUS_OK);
    cr_assert(jobs[0]->rows == 1 && request.outputs[0].is_binary);
    infer_request_init(&request, &the_model, INFER_KSERVE, jobs, 8);
    cr_assert_eq(parse_kserve_raw(&request, &c, (char *)values, 4), STATUS_INVALID_ARGUMENT);
}

Test(infer, strings_in_binary_form)
{
    tensor t;
    bool is_borrowed;
    arena memory = {0};
    cr_assert_eq(tensor_set_shape(&t, DTYPE_BYTES, 1, (int64_t[]){2}), STATUS_OK);
    cr_assert_eq(parse_binary_tensor(&t, &memory, "\2\0\0\0ab\0\0\0\0", 10, false, &is_borrowed),
                 STATUS_OK);
    cr_assert(((tensor_string *)t.data)[0].bytes == 2 && ((tensor_string *)t.data)[1].bytes == 0);
    cr_assert_eq(parse_binary_tensor(&t, &memory, "\2\0\0\0ab\1\0\0\0", 10, false, &is_borrowed),
                 STATUS_INVALID_ARGUMENT);
    cr_assert_eq(parse_binary_tensor(&t, &memory, "\2\0\0\0ab\0\0\0\0x", 11, false, &is_borrowed),
                 STATUS_INVALID_ARGUMENT);
    arena_dispose(&memory);
}

Test(infer, optional_masks_are_filled_and_long_rows_refused)
{
    make_model(true);
    cr_assert_eq(
        kserve_text("{\"inputs\":[{\"name\":\"ids\",\"shape\":[1,3],\"datatype\":\"INT64\","
                    "\"data\":[5,6,7]}]}"),
        STATUS_OK, "%s", status_message());
    cr_assert(jobs[0]->length == 3 && ((int64_t *)jobs[0]->inputs[1].data)[2] == 1);
    cr_assert_eq(
        kserve_text("{\"inputs\":[{\"name\":\"ids\",\"shape\":[1,5],\"datatype\":\"INT64\","
                    "\"data\":[5,6,7,8,9]}]}"),
        STATUS_INVALID_ARGUMENT);
    cr_assert(strstr(status_message(), "limit is 4"), "%s", status_message());
}

Test(infer, ids_beyond_the_table_are_rejected_on_admission)
{
    make_model(true);
    the_model.inputs[0].id_limit = 8;
    cr_assert_eq(
        kserve_text("{\"inputs\":[{\"name\":\"ids\",\"shape\":[2,2],\"datatype\":\"INT64\","
                    "\"data\":[0,7,1,2]}]}"),
        STATUS_OK, "%s", status_message());
    static const char *const bad[] = {"8", "-1", "-8", "9223372036854775807"};
    for (int i = 0; i < 4; i++) {
        char text[200], words[100];
        snprintf(text, sizeof text,
                 "{\"inputs\":[{\"name\":\"ids\",\"shape\":[2,2],\"datatype\":\"INT64\","
                 "\"data\":[0,7,%s,2]}]}",
                 bad[i]);
        snprintf(words, sizeof words, "input \"ids\": %s at row 1, position 0; ids are 0 to 7",
                 bad[i]);
        cr_assert_eq(kserve_text(text), STATUS_INVALID_ARGUMENT);
        cr_assert_str_eq(status_message(), words);
    }
}

Test(infer, tensorflow_rows_of_different_lengths_become_jobs)
{
    make_model(true);
    cr_assert_eq(tensorflow("{\"instances\":[[1,2],[3],[4,5],{\"ids\":[6]}]}"),
                 STATUS_INVALID_ARGUMENT, "objects and arrays mixed");
    cr_assert_eq(tensorflow("{\"instances\":[[1,2],[3],[4,5]]}"), STATUS_OK, "%s",
                 status_message());
    cr_assert(request.job_count == 2 && jobs[0]->rows == 2 && jobs[1]->rows == 1);
    cr_assert_eq(((int64_t *)jobs[0]->inputs[0].data)[3], 5);
    cr_assert(request.rows[1].job == 1 && request.rows[2].row == 1);
    cr_assert_eq(tensorflow("{\"inputs\":{\"ids\":[[1,2],[3]],\"mask\":[[1,1],[1]]}}"), STATUS_OK,
                 "%s", status_message());
    cr_assert_eq(request.protocol, INFER_TENSORFLOW_COLUMNS);
}

Test(infer, tensorflow_refusals)
{
    static const char *const texts[] = {
        "{}",
        "{\"instances\":[]}",
        "{\"instances\":[[1]],\"inputs\":[[1]]}",
        "{\"instances\":[{\"ids\":[1]},{\"ids\":[1],\"mask\":[1]}]}",
        "{\"instances\":[{\"ids\":[1,2],\"mask\":[1]}]}",
        "{\"instances\":[{\"q\":[1]}]}",
        "{\"instances\":[1]}",
        "{\"instances\":[[[1]]]}",
        "{\"instances\":[[1],[1,2],[1,2,3],[]]}",
        "{\"inputs\":{\"ids\":[[1],[2]],\"mask\":[[1]]}}",
        "{\"inputs\":{}}",
        "{\"instances\":[[1]],\"signature_name\":\"other\"}",
        "{\"instances\":{\"ids\":[1]}}"};
    make_model(true);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        cr_assert_neq(tensorflow(texts[i]), STATUS_OK, "%s", texts[i]);
        forget();
    }
}

Test(infer, strings_do_not_lie_in_the_body)
{
    char body[] = "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,2],\"datatype\":\"BYTES\",\"data\":"
                  "[\"ab\",\"c\\nd\"]}]}";
    make_model(false);
    the_model.inputs[0].dtype = DTYPE_BYTES;
    cr_assert_eq(kserve(body, strlen(body), strlen(body)), STATUS_OK, "%s", status_message());
    memset(body, '#', sizeof(body)); /* the client has gone, the job has not run */
    const tensor_string *strings = jobs[0]->inputs[0].data;
    cr_assert(strings[0].bytes == 2 && memcmp(strings[0].data, "ab", 2) == 0);
    cr_assert(strings[1].bytes == 3 && memcmp(strings[1].data, "c\nd", 3) == 0);
}

static job *no_job(void *context)
{
    (void)context;
    return NULL;
}

Test(infer, without_a_free_job_it_is_worth_trying_again)
{
    static const char json[] = X("\"shape\":[1,2],\"datatype\":\"FP32\",\"data\":[1,2]");
    make_model(false);
    infer_context c = context();
    c.acquire_job = no_job;
    infer_request_init(&request, &the_model, INFER_KSERVE, jobs, 8);
    cr_assert_eq(parse_kserve(&request, &c, json, strlen(json), strlen(json)), STATUS_UNAVAILABLE);
    cr_assert_eq(request.job_count, 0);
    infer_request_init(&request, &the_model, INFER_TENSORFLOW_ROWS, jobs, 8);
    cr_assert_eq(parse_tensorflow(&request, &c, "{}", 2), STATUS_UNAVAILABLE);
}

/* Two inputs, x and z, both FP32 [batch,2]. */
static void make_model_of_two(void)
{
    make_model(false);
    the_model.inputs[1] = tensor_of("z", DTYPE_F32, 2, false);
    the_model.input_count = 2;
}

Test(infer, columns_end_where_their_arrays_end)
{
    static const char *const bad[] = {"{\"inputs\":{\"x\":[[1,2]],\"z\":[[3,4],}}",
                                      "{\"inputs\":{\"x\":[[1,2]],\"z\":[[3,4],}",
                                      "{\"inputs\":{\"x\":[[1,2]],\"z\":[[3,4],]}}",
                                      "{\"inputs\":{\"x\":[[1,2],],\"z\":[[3,4]]}}",
                                      "{\"inputs\":{\"x\":[[1,2]],\"z\":[[3,4]],}}",
                                      "{\"inputs\":{\"x\":[[1,2]],\"z\":[[3,4]]},}",
                                      "{\"inputs\":{\"x\":[[1,2]],\"z\":[[3,4],[5,6]]}}",
                                      "{\"inputs\":{\"x\":[[1,2],[5,6]],\"z\":[[3,4]]}}",
                                      "{\"inputs\":{\"x\":[[1,2]],\"x\":[[3,4]],\"z\":[[3,4]]}}",
                                      "{\"instances\":[{\"x\":[1,2],\"z\":[3,4]},]}",
                                      "{\"instances\":[{\"x\":[1,2],\"z\":[3,4],}]}"};
    make_model_of_two();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_expect_eq(tensorflow(bad[i]), STATUS_INVALID_ARGUMENT, "%s", bad[i]);
        forget();
    }
    cr_expect_eq(tensorflow("{\"inputs\":{\"x\":[[1,2]],\"z\":[[3,4]]}}"), STATUS_OK, "%s",
                 status_message());
}

Test(infer, numbers_that_no_value_is_near_are_refused)
{
    static const struct {
        dtype type;
        const char *largest, *beyond;
    } cases[] = {{DTYPE_F64, "1.7976931348623158e308", "1.7976931348623159e308"},
                 {DTYPE_F32, "3.4028235677973366e38", "3.4028235677973367e38"},
                 {DTYPE_F16, "65519.99", "65520"},
                 {DTYPE_BF16, "3.396177529230459e38", "3.396177529230461e38"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char json[200], word[40];
        make_model(false);
        the_model.inputs[0].dtype = cases[i].type;
        for (int k = 0; k < 4; k++) {
            snprintf(word, sizeof(word), "%s%s", k % 2 ? "-" : "",
                     k < 2 ? cases[i].largest : cases[i].beyond);
            snprintf(json, sizeof(json), "{\"instances\":[[0,%s]]}", word);
            cr_expect_eq(tensorflow(json), k < 2 ? STATUS_OK : STATUS_INVALID_ARGUMENT, "%s: %s",
                         dtype_kserve_name(cases[i].type), word);
            forget();
        }
        cr_expect_eq(tensorflow("{\"instances\":[[NaN,-Infinity]]}"), STATUS_OK);
        forget();
    }
}

/* What follows the point where the limit shows is broken, so only who has read on says so. */
Test(infer, sizes_are_checked_while_they_are_read)
{
    make_model(false);
    cr_assert_eq(kserve_text(X("\"shape\":[101,2],\"datatype\":\"FP32\",\"data\":[broken]")),
                 STATUS_TOO_LARGE);
    cr_assert_str_eq(status_message(), "101 rows in one request: the limit is 100");
    limits.output_bytes_max = 100;
    cr_assert_eq(kserve_text(X("\"shape\":[13,2],\"datatype\":\"FP32\",\"data\":[broken]")),
                 STATUS_TOO_LARGE);
    cr_assert_str_eq(status_message(), "outputs of 104 bytes: the limit is 100");
    limits.output_bytes_max = 1 << 20;
    make_model(true);
    cr_assert_eq(kserve_text("{\"inputs\":[{\"name\":\"ids\",\"shape\":[1,5],\"datatype\":"
                             "\"INT64\",\"data\":[broken]}]}"),
                 STATUS_INVALID_ARGUMENT);
    cr_assert(strstr(status_message(), "limit is 4"), "%s", status_message());
    cr_assert_eq(tensorflow("{\"instances\":[[1,2,3,4,5],broken]}"), STATUS_INVALID_ARGUMENT);
    cr_assert(strstr(status_message(), "limit is 4"), "%s", status_message());
    char rows[1000] = "{\"instances\":[";
    for (int i = 0; i < 101; i++)
        strcat(rows, "[1],");
    strcat(rows, "broken");
    cr_assert_eq(tensorflow(rows), STATUS_TOO_LARGE, "%s", status_message());
}

/* A row that is longer than any may be is not read to its end. */
Test(infer, rows_do_not_grow_beyond_the_longest)
{
    enum { BYTES = 1 << 20 };
    char *text = malloc(BYTES);
    int n = sprintf(text, "{\"instances\":[[1");
    while (n < BYTES - 20)
        n += sprintf(text + n, ",1");
    sprintf(text + n, "broken");
    make_model(true);
    cr_assert_eq(tensorflow(text), STATUS_INVALID_ARGUMENT);
    cr_assert(strstr(status_message(), "more elements than a row"), "%s", status_message());
    cr_assert_lt(scratch.bytes[0], 65536);
    free(text);
}

Test(infer, parsing_ends_when_it_is_cancelled)
{
    cancel_token cancelled = {.is_requested = true};
    const char *const lists[] = {"{\"x\":[1", "{\"inputs\":[{\"name\":\"x\",\"shape\":[50,1000],"
                                              "\"datatype\":\"FP32\",\"data\":[1"};
    for (int i = 0; i < 2; i++) {
        char *text = malloc(200000);
        int n = sprintf(text, "%s", lists[i]);
        for (int k = 1; k < 50000; k++)
            n += sprintf(text + n, ",1");
        sprintf(text + n, i == 0 ? "]}" : "]}]}");
        make_model(false);
        the_model.inputs[0].dims[1] = 1000;
        infer_context c = context();
        c.cancel = &cancelled;
        infer_request_init(&request, &the_model, INFER_KSERVE, jobs, 8);
        cr_assert_eq(parse_kserve(&request, &c, text, strlen(text), strlen(text)), STATUS_CANCELLED,
                     "%s", status_message());
        free(text);
    }
}

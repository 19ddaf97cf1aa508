#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/repository/repository.h"
#include "tests/support/temporary.h"

/* Between what batches of 4 and of 8 rows hold. */
#define LIMIT (600 << 10)

static char folder[TEMPORARY_FOLDER_BYTES];
static device *cpu;

static void report(void *context, const char *text)
{
    (void)context, (void)text;
}

/* Loads a convolutional network of [N, 3, 32, 32] with that model.json and that limit. */
static status load(const char *model_json, int64_t activation_bytes_max, model **out)
{
    const char *shared = getenv("PENSTOCK_SHARED");
    char onnx[4096], path[4096];
    snprintf(onnx, sizeof onnx, "%s/models/models/cnn_3x32x32_dynamo.onnx",
             shared ? shared : "../shared");
    if (access(onnx, R_OK) != 0)
        cr_skip_test("%s is absent", onnx);
    temporary_make(folder);
    snprintf(path, sizeof path, "%s/model.json", folder);
    FILE *f = fopen(path, "w");
    fputs(model_json, f);
    fclose(f);
    cr_assert_eq(device_cpu_create(1, NULL, &cpu), STATUS_OK);
    load_options options = {.batch_max = 16, .activation_bytes_max = activation_bytes_max};
    load_request request = {.name = "m",
                            .version = 1,
                            .folder = onnx,
                            .manifest = path,
                            .options = &options,
                            .devices = &cpu,
                            .device_count = 1,
                            .report = report};
    return load_model(&request, out);
}

static void end(model *m)
{
    if (m != NULL)
        load_destroy(m);
    cpu->interface->destroy(cpu);
    temporary_remove(folder);
}

Test(costly_buckets, batches_that_cost_too_much_are_left_out)
{
    model *m = NULL;
    cr_assert_eq(load("{}", 0, &m), STATUS_OK, "%s", status_message());
    cr_assert_eq(m->batching.batch_max, 16);
    cr_assert_null(strstr(m->batching_note, "GiB"));
    end(m);

    m = NULL;
    cr_assert_eq(load("{}", LIMIT, &m), STATUS_OK, "%s", status_message());
    cr_expect(m->batching.can_batch);
    cr_expect_eq(m->batching.batch_max, 4);
    cr_expect_eq(m->batch_bucket_count, 3);
    cr_expect_eq(m->bucket_count, 3, "1, 2, 4");
    cr_expect(strstr(m->batching_note, "without batches of 8 rows: node"), "%s", m->batching_note);
    for (int i = 0; i < m->bucket_count; i++)
        cr_expect_not_null(m->buckets[i].programs[0]);
    end(m);
}

Test(costly_buckets, those_that_are_asked_for_are_an_error)
{
    static const char *const manifests[] = {"{\"batch_max\": 8}",
                                            "{\"buckets\": {\"batch\": [2, 8]}}"};
    for (size_t i = 0; i < sizeof manifests / sizeof *manifests; i++) {
        model *m = NULL;
        cr_expect_eq(load(manifests[i], LIMIT, &m), STATUS_TOO_LARGE);
        cr_expect(strstr(status_message(), "batches of 8 rows: node"), "%s", status_message());
        end(m);
    }
    model *m = NULL;
    cr_expect_eq(load("{\"batch_max\": 4}", LIMIT, &m), STATUS_OK, "%s", status_message());
    end(m);
}

Test(costly_buckets, one_row_that_costs_too_much_is_an_error)
{
    model *m = NULL;
    cr_expect_eq(load("{}", 1000, &m), STATUS_TOO_LARGE);
    cr_expect(strstr(status_message(), "limit is 1000 bytes"), "%s", status_message());
    end(m);
}

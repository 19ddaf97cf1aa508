#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "models/manifest/manifest.h"

static status read(const char *text, manifest *m)
{
    return manifest_read_text("model.json", text, strlen(text), m);
}

Test(manifest, everything_is_read)
{
    manifest m;
    cr_assert_eq(read("{\"precision\": \"int8\", \"buckets\": {\"batch\": [1, 8], \"sequence\": "
                      "[16, 64]}, \"batch_max\": 8, \"queue_delay_us\": 20, \"slo_ms\": 2.5, "
                      "\"priority\": 1, \"inputs\": {\"x\": {\"pad\": 1, \"default\": 3}, \"m\": "
                      "{\"mask\": true}}, \"labels\": {\"stable\": 3}, \"pooling\": \"cls\", "
                      "\"can_pad\": false, \"dims\": {\"height\": 224}, "
                      "\"dimensions\": [64, 256]}",
                      &m),
                 STATUS_OK, "%s", status_message());
    cr_assert_eq(m.precision, DEVICE_INT8);
    cr_assert_eq(m.batch_buckets[1], 8);
    cr_assert_eq(m.sequence_bucket_count, 2);
    cr_assert_eq(m.queue_delay_ns, 20000);
    cr_assert_eq(m.slo_ns, 2500000);
    cr_assert_eq(manifest_find_input(&m, "x")->pad_value, 1);
    cr_assert(manifest_find_input(&m, "x")->is_optional);
    cr_assert(manifest_find_input(&m, "m")->is_mask);
    cr_assert_eq(m.labels[0].version, 3);
    cr_assert_eq(m.can_pad, 0);
    cr_assert_eq(m.can_batch, -1);
    cr_assert_eq(m.fixed_dims[0].size, 224);
    cr_assert(m.dimension_count == 2 && m.dimensions[1] == 256);
    manifest_dispose(&m);
    cr_assert_eq(read("{\"dimensions\": true}", &m), STATUS_OK, "%s", status_message());
    cr_assert(m.dimension_count == 1 && m.dimensions[0] == -1);
    manifest_dispose(&m);
    cr_assert_eq(read("{\"dimensions\": [0]}", &m), STATUS_INVALID_ARGUMENT);
    cr_assert_eq(read("{\"dimensions\": 64}", &m), STATUS_INVALID_ARGUMENT);
}

static void refused(const char *text, const char *words, const char *more)
{
    manifest m;
    cr_assert_eq(read(text, &m), STATUS_INVALID_ARGUMENT);
    cr_assert(strstr(status_message(), words), "%s", status_message());
    cr_assert(strstr(status_message(), more), "%s", status_message());
}

static manifest_policy policy_of(const char *value)
{
    char text[200];
    manifest m;
    snprintf(text, sizeof text, "{\"version_policy\": %s}", value);
    cr_assert_eq(read(text, &m), STATUS_OK, "%s: %s", value, status_message());
    manifest_policy policy = m.policy;
    manifest_dispose(&m);
    return policy;
}

Test(manifest, version_policy_has_our_words_and_tritons)
{
    manifest m;
    cr_assert_eq(policy_of("\"all\"").kind, POLICY_ALL);
    cr_assert_eq(policy_of("{\"all\": {}}").kind, POLICY_ALL);
    cr_assert_eq(policy_of("\"latest\"").latest, 1);
    cr_assert_eq(policy_of("\"latest:3\"").latest, 3);
    cr_assert_eq(policy_of("{\"latest\": {\"num_versions\": 2}}").latest, 2);
    cr_assert_eq(policy_of("{\"latest\": 4}").latest, 4);
    cr_assert_eq(policy_of("[5, 7]").versions[1], 7);
    cr_assert_eq(policy_of("{\"specific\": {\"versions\": [\"9\", 2]}}").versions[0], 9);
    static const char *const wrong[] = {"\"newest\"",
                                        "\"latest:\"",
                                        "\"latest:0\"",
                                        "\"latest:65\"",
                                        "[]",
                                        "[0]",
                                        "{}",
                                        "{\"newest\": 1}",
                                        "{\"latest\": \"x\"}",
                                        "{\"latest\": {\"count\": 1}}",
                                        "3"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[200];
        snprintf(text, sizeof text, "{\"version_policy\": %s}", wrong[i]);
        cr_assert_eq(read(text, &m), STATUS_INVALID_ARGUMENT, "%s", wrong[i]);
        cr_assert(strstr(status_message(), "version_policy"), "%s", status_message());
    }
}

Test(manifest, what_is_wrong_is_named_by_line_and_path)
{
    refused("{\n \"precison\": \"int8\"}", "model.json:2: precison", "did you mean \"precision\"");
    refused("{\"inputs\":\n{\"a\": {},\n\"b\": {\"pda\": 1}}}", "model.json:3: inputs.b.pda",
            "\"pad\"");
    refused("{\"precision\": \"fp8\"}", "precision: must be one of", "\"bf16\"");
    refused("{\n\n\"buckets\": {\"batch\": [8, 1]}}", "model.json:3: buckets.batch", "grow");
    refused("{\"batch_max\": 0}", "batch_max", "1 to 65536");
    refused("{\"batch_max\": 1.5}", "batch_max", "whole number");
    refused("{\n\"batch_max\": }", "model.json:2", "JSON");
    refused("[]", "model.json:1", "object");
}

#define TENSOR "{\"name\": \"x\", \"datatype\": \"FP32\", \"dims\": [\"batch\", 3]}"

Test(manifest, programs_say_what_they_take_and_give)
{
    manifest m;
    cr_assert_eq(read("{\"program\": {\"inputs\": [{\"name\": \"ids\", \"datatype\": \"INT32\", "
                      "\"dims\": [\"batch\", \"sequence\"]}], \"outputs\": [" TENSOR "], "
                      "\"weights\": \"w.safetensors\", \"arguments\": [\"w\", \"ids\"]}}",
                      &m),
                 STATUS_OK, "%s", status_message());
    cr_assert(m.program->input_count == 1 && m.program->inputs[0].dtype == DTYPE_I32);
    cr_assert_eq(m.program->inputs[0].dims[1], MANIFEST_DIM_SEQUENCE);
    cr_assert_eq(m.program->outputs[0].dims[1], 3);
    cr_assert(m.program->argument_count == 2 && strcmp(m.program->arguments[1], "ids") == 0);
    manifest_dispose(&m);
    refused("{\"program\": {\"inputs\": [" TENSOR ",\n" TENSOR "]}}",
            "model.json:2: program.inputs[1]", "two have the name x");
    refused("{\"program\": {\"inputs\": [" TENSOR "]}}", "program:", "\"outputs\"");
    refused("{\"program\": {\"outputs\": [{\"name\": \"y\"}]}}", "program.outputs[0]",
            "no datatype");
    refused("{\"program\": {\"outputs\": []}}", "program.outputs", "1 to 64");
    refused("{\"program\": {\"weights\": \"../w\"}}", "program.weights", "beside");
}

Test(manifest, absent_file_is_all_defaults)
{
    manifest m;
    cr_assert_eq(manifest_read("/nowhere/model.json", &m), STATUS_OK);
    cr_assert_eq(m.batch_max, 0);
    manifest_dispose(&m);
}

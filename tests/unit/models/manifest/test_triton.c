#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/manifest/manifest.h"
#include "models/manifest/pbtxt.h"
#include "models/manifest/triton.h"
#include "tests/support/temporary.h"

static void reads(const char *text, const char *expected)
{
    json_t *found;
    cr_assert_eq(pbtxt_read("f", text, strlen(text), &found), STATUS_OK, "%s: %s", text,
                 status_message());
    char *printed = json_dumps(found, JSON_COMPACT);
    cr_assert_str_eq(printed, expected, "%s", text);
    free(printed);
    json_decref(found);
}

Test(pbtxt, messages_become_objects)
{
    reads("", "{}");
    reads("# only\n", "{}");
    reads("a: 1 b: -2, c: 0x10; d: 1.5e1 e: 2f",
          "{\"a\":1,\"b\":-2,\"c\":16,\"d\":15.0,\"e\":2.0}");
    reads("a: true b: false c: TYPE_FP32", "{\"a\":true,\"b\":false,\"c\":\"TYPE_FP32\"}");
    reads("a: 'x' \"y\\n\\x41\\101\"", "{\"a\":\"xy\\nAA\"}");
    reads("m { a: 1 } n: < b: 2 >", "{\"m\":{\"a\":1},\"n\":{\"b\":2}}");
    reads("a: [1, 2] b [ { x: 1 }, { } ] c: []", "{\"a\":[1,2],\"b\":[{\"x\":1},{}],\"c\":[]}");
    reads("a: 1 a: 2 a: [3]", "{\"a\":[1,2,3]}");
    reads("m { a: 1 } m { a: 2 }", "{\"m\":[{\"a\":1},{\"a\":2}]}");
}

Test(pbtxt, what_is_wrong_is_named_by_its_line)
{
    static const char *const wrong[] = {"\na",          "\na: ",        "\na: [1", "\na: \"x",
                                        "\nm {",        "\nm < a: 1 }", "\na 1",   "\n[x.y]: 1",
                                        "\na: \"\\q\"", "\na: 1e999",   "\n}",     "\na: [1 2]"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        json_t *found;
        cr_assert_eq(pbtxt_read("f", wrong[i], strlen(wrong[i]), &found), STATUS_INVALID_ARGUMENT,
                     "%s", wrong[i]);
        cr_assert_eq(strncmp(status_message(), "f:2: ", 5), 0, "%s: %s", wrong[i],
                     status_message());
    }
    char deep[200];
    memset(deep, 0, sizeof deep);
    for (int i = 0; i < 40; i++)
        strcat(deep, "m {");
    json_t *found;
    cr_assert_eq(pbtxt_read("f", deep, strlen(deep), &found), STATUS_INVALID_ARGUMENT);
}

Test(triton, a_file_says_what_it_can)
{
    static const char text[] =
        "name: \"m\"\nplatform: \"onnxruntime_onnx\"\nmax_batch_size: 8\n"
        "input [ { name: \"x\" data_type: TYPE_FP32 dims: [ 4 ] } ]\n"
        "dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100\n"
        "  default_queue_policy { max_queue_size: 64 timeout_action: REJECT } }\n"
        "version_policy: { specific: { versions: 1 versions: 3 } }\n"
        "instance_group [ { count: 2 } ] optimization { }\n";
    char root[TEMPORARY_FOLDER_BYTES], path[200], unused[TRITON_UNUSED_BYTES], *json;
    temporary_make(root);
    temporary_write_text(root, "config.pbtxt", text);
    snprintf(path, sizeof path, "%s/config.pbtxt", root);
    cr_assert_eq(triton_read_file(path, &json, unused), STATUS_OK, "%s", status_message());
    cr_assert_str_eq(unused, "dynamic_batching.default_queue_policy.timeout_action, "
                             "instance_group, optimization");
    manifest m;
    cr_assert_eq(manifest_read_text("f", json, strlen(json), &m), STATUS_OK, "%s",
                 status_message());
    cr_assert_eq(m.batch_max, 8);
    cr_assert_eq(m.queue_delay_ns, 100000);
    cr_assert_eq(m.queue_rows_max, 64);
    cr_assert_eq(m.policy.kind, POLICY_SPECIFIC);
    cr_assert_eq(m.policy.versions[1], 3);
    manifest_dispose(&m);
    free(json);
    temporary_write_text(root, "config.pbtxt", "max_batch_sise: 8");
    cr_assert_eq(triton_read_file(path, &json, unused), STATUS_INVALID_ARGUMENT);
    cr_assert(strstr(status_message(), "max_batch_sise"), "%s", status_message());
    temporary_remove(root);
    cr_assert_eq(triton_read_file(path, &json, unused), STATUS_NOT_FOUND);
}

static status config(const char *text, manifest *m)
{
    char *json;
    status failure = triton_read_config(text, strlen(text), &json);
    if (failure)
        return failure;
    failure = manifest_read_text("f", json, strlen(json), m);
    free(json);
    return failure;
}

Test(triton, a_client_may_send_keys_of_both)
{
    manifest m;
    cr_assert_eq(config("{\"max_batch_size\": 0, \"precision\": \"int8\"}", &m), STATUS_OK);
    cr_assert_eq(m.can_batch, 0);
    cr_assert_eq(m.precision, DEVICE_INT8);
    manifest_dispose(&m);
    static const struct {
        const char *text, *word;
    } cases[] = {{"{\"instance_group\": [], \"model_warmup\": []}", "instance_group, model_warmup"},
                 {"{\"dynamic_batching\": {\"priority_levels\": 2}}", "priority_levels"},
                 {"{\"batch_mx\": 3}", "batch_m"},
                 {"{\"batch_max\": \"x\"}", "batch_max"},
                 {"[]", "not a JSON object"},
                 {"{", "not a JSON object"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_assert_eq(config(cases[i].text, &m), STATUS_INVALID_ARGUMENT, "%s", cases[i].text);
        cr_assert(strstr(status_message(), cases[i].word), "%s", status_message());
    }
}

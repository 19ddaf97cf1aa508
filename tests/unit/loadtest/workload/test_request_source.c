#include "loadtest/workload/request_source.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/loadtest/case.h"

TestSuite(request_source, .init = case_begin, .fini = case_end);

static metadata two_inputs(void)
{
    metadata m;
    const char *text = "{\"name\":\"m\",\"inputs\":[{\"name\":\"input_ids\",\"datatype\":\"INT64\","
                       "\"shape\":[-1,-1]},"
                       "{\"name\":\"attention_mask\",\"datatype\":\"INT32\",\"shape\":[-1,-1]}]}";
    cr_assert_eq(metadata_parse_kserve(&m, text, strlen(text)), STATUS_OK);
    return m;
}

static char *written(const source_options *o, const metadata *m, uint32_t length,
                     const int64_t *ids, uint64_t *json_bytes, size_t *bytes)
{
    random_state r;
    random_seed(&r, 1);
    text_buffer b = {0};
    cr_assert_eq(request_source_write(&b, json_bytes, o, m, length, ids, &r), STATUS_OK);
    text_buffer_string(&b);
    *bytes = b.bytes;
    return b.data;
}

Test(request_source, bodies)
{
    metadata m = two_inputs();
    int64_t ids[] = {101, 5, 102};
    uint64_t json_bytes;
    size_t bytes;
    source_options o = {.format = SOURCE_KSERVE, .rows = 2, .vocabulary = 10};
    char *text = written(&o, &m, 3, ids, &json_bytes, &bytes);
    cr_expect_str_eq(text, "{\"inputs\":[{\"name\":\"input_ids\",\"shape\":[2,3],\"datatype\":"
                           "\"INT64\",\"data\":[101,5,102,101,5,102]},"
                           "{\"name\":\"attention_mask\",\"shape\":[2,3],\"datatype\":\"INT32\","
                           "\"data\":[1,1,1,1,1,1]}]}");
    cr_expect_eq(json_bytes, 0);
    free(text);
    o.format = SOURCE_TENSORFLOW;
    text = written(&o, &m, 3, ids, &json_bytes, &bytes);
    cr_expect_str_eq(text, "{\"instances\":[{\"input_ids\":[101,5,102],\"attention_mask\":[1,1,1]},"
                           "{\"input_ids\":[101,5,102],\"attention_mask\":[1,1,1]}]}");
    free(text);
    o.format = SOURCE_KSERVE_BINARY;
    text = written(&o, &m, 3, ids, &json_bytes, &bytes);
    cr_assert_eq(bytes, json_bytes + 6 * 8 + 6 * 4);
    cr_expect_eq(text[json_bytes - 1], '}');
    int64_t second;
    memcpy(&second, text + json_bytes + 8, 8);
    cr_expect_eq(second, 5);
    int32_t mask;
    memcpy(&mask, text + json_bytes + 48, 4);
    cr_expect_eq(mask, 1);
    free(text);
    metadata_dispose(&m);
}

Test(request_source, made_ids_are_inside_the_vocabulary)
{
    metadata m = two_inputs();
    uint64_t json_bytes;
    size_t bytes;
    source_options o = {.format = SOURCE_KSERVE, .rows = 1, .vocabulary = 7};
    char *text = written(&o, &m, 500, NULL, &json_bytes, &bytes);
    const char *at = strstr(text, "\"data\":[") + 8;
    for (int i = 0; i < 500; i++) {
        long value = strtol(at, (char **)&at, 10);
        cr_assert(value >= 0 && value < 7);
        at++;
    }
    free(text);
    metadata_dispose(&m);
}

static const char kserve[] = "{\"name\":\"m\",\"inputs\":[{\"name\":\"input_ids\",\"datatype\":"
                             "\"%s\",\"shape\":[-1,-1]}]}";

static status make_source(request_source *s, const source_options *o, const char *type)
{
    static const request_head head = {
        .method = "POST", .authority = "x", .path = "/", .scheme = "http"};
    char text[200];
    metadata m;
    snprintf(text, sizeof text, kserve, type);
    cr_assert_eq(metadata_parse_kserve(&m, text, strlen(text)), STATUS_OK);
    status made = request_source_create(s, o, &m, &head);
    metadata_dispose(&m);
    return made;
}

static status read_ids(request_source *s, const char *text, const char *type)
{
    source_options o = {.format = SOURCE_KSERVE, .rows = 1, .ids_file = case_file(text)};
    return make_source(s, &o, type);
}

Test(request_source, lines_of_token_ids)
{
    static const struct {
        const char *text, *type, *words;
    } wrong[] = {
        {"[1, 2]\n[1,,2]\n", "INT64", "file:2: expected token ids"},
        {"[1, 2\n", "INT64", "file:1: expected token ids"},
        {"1 2]\n", "INT64", "file:1: expected token ids"},
        {"[[1, 2]]\n", "INT64", "expected token ids"},
        {"1, 2,\n", "INT64", "expected token ids"},
        {"[]\n", "INT64", "expected token ids"},
        {"1 2 three\n", "INT64", "found \"three\""},
        {"1 2.5\n", "INT64", "expected token ids"},
        {"5]6[7\n", "INT64", "expected token ids"},
        {"1 99999999999999999999999\n", "INT64", "99999999999999999999999 does not fit in INT64"},
        {"1\n-9223372036854775809\n", "INT64", "file:2: -9223372036854775809 does not fit"},
        {"3000000000\n", "INT32", "3000000000 does not fit in INT32"},
        {"-1\n", "UINT8", "-1 does not fit in UINT8"},
        {"\n\n", "INT64", "contains no requests"},
    };
    request_source s;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_expect_eq(read_ids(&s, wrong[i].text, wrong[i].type), STATUS_INVALID_ARGUMENT, "%s",
                     wrong[i].text);
        case_expect_message(wrong[i].words, wrong[i].text);
    }
    cr_assert_eq(read_ids(&s, " [1, 2]\r\n\n1 2\n1,2\n 9223372036854775807 ,\t-1 \n", "INT64"),
                 STATUS_OK, "%s", status_message());
    cr_assert_eq(s.count, 4);
    for (int i = 0; i < 3; i++)
        cr_expect(strstr(s.payloads[i].body, "\"data\":[1,2]") != NULL, "%s", s.payloads[i].body);
    cr_expect(strstr(s.payloads[3].body, "[9223372036854775807,-1]") != NULL);
    request_source_dispose(&s);
}

Test(request_source, the_bodies_together_have_a_limit)
{
    length_spec spec;
    cr_assert_eq(length_parse(&spec, "100000"), STATUS_OK);
    source_options o = {.format = SOURCE_KSERVE_BINARY,
                        .lengths = &spec,
                        .rows = 1,
                        .vocabulary = 9,
                        .pool = 100000,
                        .bytes_max = 16 << 20};
    request_source s;
    cr_expect_eq(make_source(&s, &o, "INT64"), STATUS_TOO_LARGE);
    case_expect_message("--pool", "800 kB each");
    case_expect_message("16 MiB", "800 kB each");
    o.pool = 0; /* not asked for: as many as are reasonable */
    cr_assert_eq(make_source(&s, &o, "INT64"), STATUS_OK, "%s", status_message());
    cr_expect_eq(s.count, 3);
    request_source_dispose(&s);
    cr_assert_eq(length_parse(&spec, "16"), STATUS_OK);
    cr_assert_eq(make_source(&s, &o, "INT64"), STATUS_OK, "%s", status_message());
    cr_expect_eq(s.count, 512);
    request_source_dispose(&s);
}

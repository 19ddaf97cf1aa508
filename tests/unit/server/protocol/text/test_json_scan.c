#include <criterion/criterion.h>
#include <string.h>

#include "base/text/text_buffer.h"
#include "server/protocol/tensor_scan.h"
#include "server/protocol/text/json_scan.h"
#include "server/protocol/text/text_write.h"

static status skip(const char *text, int depth_max, bool is_strict)
{
    arena memory = {0};
    json_scan s;
    json_scan_init(&s, text, strlen(text), depth_max, is_strict, &memory);
    status failure = json_skip_value(&s);
    if (!failure)
        failure = json_expect_end(&s);
    arena_dispose(&memory);
    return failure;
}

Test(json, well_formed_texts_are_walked)
{
    static const char *const texts[] = {"{}",
                                        "[]",
                                        " [1, 2.5e3 , \"a\\n\\u00e9\\ud83d\\ude00\"] ",
                                        "{\"a\":{\"b\":[{},[],null,true,false]},\"c\":-1}",
                                        "NaN",
                                        "[[[[]]]]"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        cr_assert_eq(skip(texts[i], 16, false), STATUS_OK, "%s: %s", texts[i], status_message());
}

Test(json, broken_texts_are_refused)
{
    static const char *const texts[] = {"",
                                        "{",
                                        "[1,]",
                                        "{\"a\":1,}",
                                        "{\"a\" 1}",
                                        "[1 2]",
                                        "{a:1}",
                                        "\"a",
                                        "\"\\x\"",
                                        "\"\\ud800\"",
                                        "\"\\udc00\\ud800\"",
                                        "\"\x01\"",
                                        "[1]]",
                                        "nul",
                                        "\"\xff\"",
                                        "\"\xc0\xaf\"",
                                        "\"\xed\xa0\x80\"",
                                        "\"\xf4\x90\x80\x80\"",
                                        "{\"a\":}",
                                        "{\"\xff\":1}",
                                        "[,1]"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        cr_assert_eq(skip(texts[i], 16, false), STATUS_INVALID_ARGUMENT, "%s", texts[i]);
}

Test(json, depth_and_strictness_have_limits)
{
    cr_assert_eq(skip("[[[1]]]", 3, false), STATUS_OK);
    cr_assert_eq(skip("[[[[1]]]]", 3, false), STATUS_INVALID_ARGUMENT);
    cr_assert_eq(skip("[NaN]", 3, true), STATUS_INVALID_ARGUMENT);
    cr_assert_eq(skip("-Infinity", 3, false), STATUS_OK);
}

Test(json, duplicate_keys_are_refused)
{
    arena memory = {0};
    json_scan s;
    json_object o;
    json_string key;
    bool has_key;
    static const char text[] = "{\"a\":1,\"\\u0061\":2}"; /* the same key, written differently */
    json_scan_init(&s, text, sizeof(text) - 1, 8, false, &memory);
    cr_assert_eq(json_open_object(&s, &o), STATUS_OK);
    cr_assert_eq(json_object_next(&s, &o, &key, &has_key), STATUS_OK);
    cr_assert_eq(json_skip_value(&s), STATUS_OK);
    cr_assert_eq(json_object_next(&s, &o, &key, &has_key), STATUS_INVALID_ARGUMENT);
    arena_dispose(&memory);
}

Test(json, strings_are_unfolded)
{
    arena memory = {0};
    json_scan s;
    json_string out;
    static const char text[] = "\"\\\"\\/\\b\\u20ac\\ud83d\\ude00\"";
    json_scan_init(&s, text, sizeof(text) - 1, 8, false, &memory);
    cr_assert_eq(json_read_string(&s, &out), STATUS_OK);
    cr_assert(json_string_is(out, "\"/\b\xe2\x82\xac\xf0\x9f\x98\x80"));
    arena_dispose(&memory);
}

static status scan(const char *text, dtype type, void *data, int64_t capacity, tensor_scan *t)
{
    static arena memory;
    json_scan s;
    json_scan_init(&s, text, strlen(text), 16, false, &memory);
    *t = (tensor_scan){.dtype = type, .data = data, .capacity = capacity, .takes_base64 = true};
    return tensor_scan_value(&s, t);
}

Test(json, tensors_are_flat_or_nested)
{
    float data[8];
    tensor_scan t;
    cr_assert_eq(scan("[[1,2,3],[4,5,6]]", DTYPE_F32, data, 8, &t), STATUS_OK);
    cr_assert(t.count == 6 && t.rank == 2 && t.dims[0] == 2 && t.dims[1] == 3);
    cr_assert_float_eq(data[5], 6, 0);
    cr_assert_eq(scan("7", DTYPE_F32, data, 8, &t), STATUS_OK);
    cr_assert(t.count == 1 && t.rank == 0);
    cr_assert_eq(scan("[[],[]]", DTYPE_F32, data, 8, &t), STATUS_OK);
    cr_assert(t.count == 0 && t.rank == 2 && t.dims[1] == 0);
}

Test(json, tensors_that_are_not_rectangular_are_refused)
{
    static const char *const texts[] = {"[[1],[2,3]]", "[1,[2]]",  "[[1],2]",
                                        "[[],[1]]",    "[[1],[]]", "[1,]",
                                        "[",           "[1",       "[[[[[[[[[1]]]]]]]]]",
                                        "[null]",      "{}",       "[1,2,3,4,5,6,7,8,9]"};
    float data[8];
    tensor_scan t;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        cr_assert_eq(scan(texts[i], DTYPE_F32, data, 8, &t), STATUS_INVALID_ARGUMENT, "%s",
                     texts[i]);
}

Test(json, elements_are_range_checked)
{
    static const struct {
        dtype type;
        const char *good, *bad;
    } cases[] = {{DTYPE_I8, "[-128,127]", "[128]"},
                 {DTYPE_U8, "[0,255]", "[-1]"},
                 {DTYPE_I16, "[-32768]", "[32768]"},
                 {DTYPE_U16, "[65535]", "[65536]"},
                 {DTYPE_I32, "[-2147483648]", "[2147483648]"},
                 {DTYPE_U32, "[4294967295]", "[4294967296]"},
                 {DTYPE_I64, "[9223372036854775807]", "[9223372036854775808]"},
                 {DTYPE_BOOL, "[true,false]", "[1]"},
                 {DTYPE_I32, "[1e2]", "[1.5]"},
                 {DTYPE_BYTES, "[\"a\",{\"b64\":\"AAE=\"}]", "[1]"}};
    tensor_string data[4];
    tensor_scan t;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_assert_eq(scan(cases[i].good, cases[i].type, data, 4, &t), STATUS_OK, "%s",
                     cases[i].good);
        cr_assert_eq(scan(cases[i].bad, cases[i].type, data, 4, &t), STATUS_INVALID_ARGUMENT, "%s",
                     cases[i].bad);
    }
}

Test(json, half_floats_are_rounded_once)
{
    uint16_t data[2];
    tensor_scan t;
    /* Just above half way between two halves: by way of binary32 it would become a tie. */
    cr_assert_eq(scan("[1.00048828125000001]", DTYPE_F16, data, 2, &t), STATUS_OK);
    cr_assert_eq(scan("[1.0004882813, 1.00048828125]", DTYPE_F16, data, 2, &t), STATUS_OK);
    cr_assert_eq(data[0], 0x3c01);
    cr_assert_eq(data[1], 0x3c00);
}

Test(json, written_strings_read_back)
{
    text_buffer out = {0};
    text_write_json_string(&out, "a\"\\\n\x01\xc3\xa9\xff", 8);
    text_buffer_append(&out, "", 1);
    cr_assert_str_eq(out.data, "\"a\\\"\\\\\\n\\u0001\xc3\xa9\xef\xbf\xbd\"");
    text_buffer_dispose(&out);
}

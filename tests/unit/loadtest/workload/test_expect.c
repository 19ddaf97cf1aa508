#include "loadtest/workload/expect.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/loadtest/case.h"

TestSuite(expect, .init = case_begin, .fini = case_end);

Test(expect, compares_what_is_named)
{
    expect *e;
    cr_assert_eq(
        expect_load(&e, case_file("{\"outputs\":[{\"name\":\"y\",\"data\":[1,2.5]}]}\n\n[1]\n"),
                    1e-3),
        STATUS_OK);
    cr_expect_eq(expect_count(e), 2);
    const struct {
        const char *body;
        bool right;
    } cases[] = {
        {"{\"id\":\"x\",\"outputs\":[{\"name\":\"y\",\"shape\":[2],\"data\":[1.0005,2.5]}]}", true},
        {"{\"outputs\":[{\"name\":\"y\",\"data\":[1.1,2.5]}]}", false},
        {"{\"outputs\":[{\"name\":\"z\",\"data\":[1,2.5]}]}", false},
        {"{\"outputs\":[{\"name\":\"y\",\"data\":[1]}]}", false},
        {"{\"outputs\":[]}", false},
        {"{}", false},
        {"not json", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int twice = 0; twice < 2; twice++) {
            char reason[200];
            response a = {.keep_body = true, .code = 200};
            response_body(&a, cases[i].body, strlen(cases[i].body));
            cr_expect_eq(expect_check(e, 0, &a, reason, sizeof reason), cases[i].right, "%s",
                         cases[i].body);
            cr_expect(expect_check(e, 9, &a, reason, sizeof reason), "no line, nothing to compare");
            text_buffer_dispose(&a.body);
        }
    expect_destroy(e);
}

Test(expect, binary_outputs_compare_like_JSON)
{
    expect *e;
    cr_assert_eq(
        expect_load(&e, case_file("{\"outputs\":[{\"data\":[1.5,-2]},{\"data\":[\"ab\"]}]}"), 1e-3),
        STATUS_OK);
    const char *json =
        "{\"outputs\":[{\"datatype\":\"FP32\",\"parameters\":{\"binary_data_size\":8}},"
        "{\"datatype\":\"BYTES\",\"parameters\":{\"binary_data_size\":6}}]}";
    float values[] = {1.5f, -2};
    response a = {.keep_body = true, .code = 200, .header_json_bytes = strlen(json)};
    response_body(&a, json, strlen(json));
    response_body(&a, values, sizeof values);
    response_body(&a, "\2\0\0\0ab", 6);
    char reason[200] = "";
    cr_expect(expect_check(e, 0, &a, reason, sizeof reason), "%s", reason);
    a.body.data[strlen(json) + 3] ^= 0x10;
    cr_expect_not(expect_check(e, 0, &a, reason, sizeof reason));
    a.header_json_bytes = 1 << 20;
    cr_expect_not(expect_check(e, 0, &a, reason, sizeof reason), "a length beyond the body");
    text_buffer_dispose(&a.body);
    expect_destroy(e);
}

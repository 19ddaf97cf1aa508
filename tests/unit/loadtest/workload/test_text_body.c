#include <criterion/criterion.h>

#include "loadtest/workload/text_body.h"

Test(text_body, each_format_has_its_body)
{
    static const struct {
        source_format format;
        const char *wanted;
    } cases[] = {
        {SOURCE_OPENAI, "{\"model\":\"m\",\"input\":\"a\\\"b\",\"encoding_format\":\"base64\"}"},
        {SOURCE_TEI, "{\"inputs\":\"a\\\"b\",\"truncate\":true}"},
        {SOURCE_TENSORFLOW, "{\"instances\":[\"a\\\"b\"]}"},
        {SOURCE_KSERVE, "{\"inputs\":[{\"name\":\"text\",\"datatype\":\"BYTES\",\"shape\":[1],"
                        "\"data\":[\"a\\\"b\"]}]}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        text_buffer body = {0};
        cr_assert_eq(text_body_write(&body, cases[i].format, "m", "a\"b"), STATUS_OK);
        cr_assert_str_eq(text_buffer_string(&body), cases[i].wanted);
        text_buffer_dispose(&body);
    }
    text_buffer body = {0};
    cr_assert_eq(text_body_write(&body, SOURCE_TEI, "m", "\xff"), STATUS_INVALID_ARGUMENT);
}

#include <criterion/criterion.h>
#include <string.h>

#include "server/protocol/grpc/call.h"

Test(grpc_call, timeouts_have_a_unit_and_at_most_eight_digits)
{
    static const struct {
        const char *text;
        bool is_one;
        uint64_t ns;
    } cases[] = {{"1n", true, 1},
                 {"100m", true, 100000000},
                 {"2S", true, 2000000000},
                 {"3u", true, 3000},
                 {"1M", true, 60000000000},
                 {"1H", true, 3600000000000},
                 {"99999999n", true, 99999999},
                 {"99999999H", true, UINT64_MAX / 4},
                 {"123456789n", false, 0},
                 {"m", false, 0},
                 {"", false, 0},
                 {"5", false, 0},
                 {"5s", false, 0},
                 {"-5m", false, 0},
                 {" 5m", false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t ns = 0;
        cr_assert_eq(grpc_read_timeout(cases[i].text, strlen(cases[i].text), &ns), cases[i].is_one,
                     "%s", cases[i].text);
        if (cases[i].is_one)
            cr_assert_eq(ns, cases[i].ns, "%s", cases[i].text);
    }
}

Test(grpc_call, content_types)
{
    static const char *const right[] = {"application/grpc", "application/grpc+proto",
                                        "Application/gRPC; charset=utf-8",
                                        "application/grpc+proto;x=1"};
    static const char *const wrong[] = {"application/grpc-web",
                                        "application/grpc+json",
                                        "application/json",
                                        "application/grp",
                                        "",
                                        "application/grpc+protobuf"};
    for (int i = 0; i < 4; i++)
        cr_assert(grpc_is_content_type(right[i], strlen(right[i])), "%s", right[i]);
    for (int i = 0; i < 6; i++)
        cr_assert(!grpc_is_content_type(wrong[i], strlen(wrong[i])), "%s", wrong[i]);
    cr_assert(!grpc_is_any_content_type("application/grpc-web", 20));
    cr_assert(grpc_is_any_content_type("application/grpc+json", 21));
}

Test(grpc_call, every_http_code_has_a_status)
{
    static const struct {
        int http;
        grpc_code code;
    } cases[] = {{200, GRPC_OK},
                 {400, GRPC_INVALID_ARGUMENT},
                 {401, GRPC_UNAUTHENTICATED},
                 {403, GRPC_PERMISSION_DENIED},
                 {404, GRPC_NOT_FOUND},
                 {408, GRPC_DEADLINE_EXCEEDED},
                 {413, GRPC_RESOURCE_EXHAUSTED},
                 {429, GRPC_RESOURCE_EXHAUSTED},
                 {499, GRPC_CANCELLED},
                 {500, GRPC_INTERNAL},
                 {501, GRPC_UNIMPLEMENTED},
                 {503, GRPC_UNAVAILABLE},
                 {504, GRPC_DEADLINE_EXCEEDED},
                 {299, GRPC_UNKNOWN}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_assert_eq(grpc_code_of_http(cases[i].http), cases[i].code, "%d", cases[i].http);
}

Test(grpc_call, messages_are_percent_encoded_and_cut)
{
    text_buffer out = {0};
    grpc_write_message(&out, "100%\n\"\xc3\xa9\"~", 100);
    cr_assert_str_eq(text_buffer_string(&out), "100%25%0A\"%C3%A9\"~");
    text_buffer_clear(&out);
    grpc_write_message(&out, "%%%%", 7);
    cr_assert_str_eq(text_buffer_string(&out), "%25%25");
    text_buffer_dispose(&out);
}

Test(grpc_call, a_unary_call_has_one_whole_message)
{
    static const struct {
        const char *body;
        size_t bytes, message; /* SIZE_MAX: refused */
    } cases[] = {{"\0\0\0\0\0", 5, 0},
                 {"\1\0\0\0\3abc", 8, 3},
                 {"", 0, SIZE_MAX},
                 {"\0\0\0\0", 4, SIZE_MAX},
                 {"\0\0\0\0\2a", 6, SIZE_MAX},
                 {"\0\0\0\0\1ab", 7, SIZE_MAX},
                 {"\2\0\0\0\0", 5, SIZE_MAX},
                 {"\0\xff\xff\xff\xff", 5, SIZE_MAX}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        grpc_message m;
        status s = grpc_read_only_message(cases[i].body, cases[i].bytes, &m);
        cr_assert_eq(s, cases[i].message == SIZE_MAX ? STATUS_INVALID_ARGUMENT : STATUS_OK);
        if (!s)
            cr_assert(m.bytes == cases[i].message && m.is_compressed == (cases[i].body[0] == 1));
    }
}

Test(grpc_call, versions_are_digits)
{
    int64_t version = -1;
    cr_assert_eq(grpc_read_version(NULL, 0, &version), STATUS_OK);
    cr_assert_eq(version, 0);
    cr_assert_eq(grpc_read_version("12", 2, &version), STATUS_OK);
    cr_assert_eq(version, 12);
    cr_assert_eq(grpc_read_version("1a", 2, &version), STATUS_INVALID_ARGUMENT);
    cr_assert_eq(grpc_read_version("0", 1, &version), STATUS_INVALID_ARGUMENT);
    cr_assert_eq(grpc_read_version("1234567890123456789", 19, &version), STATUS_INVALID_ARGUMENT);
}

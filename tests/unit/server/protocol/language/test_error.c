#include <criterion/criterion.h>

#include "server/protocol/language/error.h"

static void check(route_dialect dialect, int code, const language_fault *fault, const char *wanted)
{
    text_buffer out = {0};
    language_write_error(&out, dialect, code, "no \"x\"", fault);
    cr_assert_str_eq(text_buffer_string(&out), wanted);
    text_buffer_dispose(&out);
}

Test(error, each_api_has_its_own_body)
{
    language_fault fault = {"empty_array", "input"};
    check(ROUTE_OPENAI, 400, &fault,
          "{\"error\":{\"message\":\"no \\\"x\\\"\",\"type\":\"invalid_request_error\","
          "\"param\":\"input\",\"code\":\"empty_array\"}}");
    check(ROUTE_OPENAI, 429, NULL,
          "{\"error\":{\"message\":\"no \\\"x\\\"\",\"type\":\"rate_limit_error\",\"param\":null,"
          "\"code\":\"rate_limit_exceeded\"}}");
    check(ROUTE_OPENAI, 500, NULL,
          "{\"error\":{\"message\":\"no \\\"x\\\"\",\"type\":\"server_error\",\"param\":null,"
          "\"code\":null}}");
    check(ROUTE_TEI, 413, NULL, "{\"error\":\"no \\\"x\\\"\",\"error_type\":\"Validation\"}");
    check(ROUTE_TEI, 400, &fault, "{\"error\":\"no \\\"x\\\"\",\"error_type\":\"Empty\"}");
    check(ROUTE_TEI, 429, NULL, "{\"error\":\"no \\\"x\\\"\",\"error_type\":\"Overloaded\"}");
    check(ROUTE_COHERE, 400, NULL, "{\"message\":\"no \\\"x\\\"\",\"detail\":\"no \\\"x\\\"\"}");
}

Test(error, codes_differ_between_the_apis)
{
    language_fault empty = {"empty", "inputs"};
    static const struct {
        status s;
        int openai, tei;
    } cases[] = {{STATUS_INVALID_ARGUMENT, 400, 422},   {STATUS_UNSUPPORTED, 400, 424},
                 {STATUS_TOO_LARGE, 400, 413},          {STATUS_NOT_FOUND, 404, 404},
                 {STATUS_RESOURCE_EXHAUSTED, 429, 429}, {STATUS_UNAVAILABLE, 503, 503},
                 {STATUS_DEADLINE_EXCEEDED, 504, 504},  {STATUS_INTERNAL, 500, 424}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert_eq(language_error_code(ROUTE_OPENAI, cases[i].s, NULL), cases[i].openai);
        cr_assert_eq(language_error_code(ROUTE_TEI, cases[i].s, NULL), cases[i].tei);
    }
    cr_assert_eq(language_error_code(ROUTE_TEI, STATUS_INVALID_ARGUMENT, &empty), 400);
}

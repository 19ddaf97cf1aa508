#include "loadtest/workload/trace.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "loadtest/wire/memory.h"
#include "tests/unit/loadtest/case.h"

static trace right_trace(const char *text, double speed)
{
    trace t = {0};
    char *copy = memory_copy_string(text, strlen(text));
    cr_assert_eq(trace_parse(&t, copy, "log", speed), STATUS_OK, "%s", status_message());
    free(copy);
    return t;
}

Test(trace, formats)
{
    trace t = right_trace("0.5 40\n0.25\n# a comment\n\n1.5,7\n", 1);
    cr_assert_eq(t.count, 3);
    cr_expect_eq(t.entries[0].offset_ns, 0);
    cr_expect_eq(t.entries[1].offset_ns, 250000000u);
    cr_expect_eq(t.entries[1].length, 40);
    cr_expect_eq(t.entries[2].offset_ns, 1250000000u);
    cr_expect_eq(t.entries[2].length, 7);
    trace_dispose(&t);
    t = right_trace("{\"time\":\"2026-11-21T23:59:59.500Z\",\"tokens\":12}\n"
                    "{\"time\":\"2026-11-22T01:00:00.000+01:00\",\"body\":{\"a\":[1]}}\n",
                    2);
    cr_assert_eq(t.count, 2);
    cr_expect_eq(t.entries[1].offset_ns, 250000000u,
                 "half a second at twice the speed, another zone");
    cr_expect_eq(t.entries[0].length, 12);
    cr_expect_str_eq(t.entries[1].body, "{\"a\":[1]}");
    trace_dispose(&t);
    t = right_trace("1.2.3.4 - - [21/Nov/2026:14:13:20 +0000] \"POST / HTTP/1.1\" 200 5\n"
                    "1.2.3.4 - - [21/Nov/2026:14:13:20 +0000] \"POST / HTTP/1.1\" 200 5\n"
                    "1.2.3.4 - - [21/Nov/2026:15:13:21 +0100] \"POST / HTTP/1.1\" 200 5\n",
                    1);
    cr_assert_eq(t.count, 3);
    cr_expect_eq(t.entries[1].offset_ns, 500000000u, "spread over the second");
    cr_expect_eq(t.entries[2].offset_ns, 1000000000u);
    trace_dispose(&t);
}

Test(trace, an_access_log_of_penstock)
{
    trace t = right_trace(
        "{\"time_ms\":5000,\"method\":\"POST\",\"path\":\"/v2/models/m/"
        "infer\",\"total_us\":900000}\n"
        "{\"time_ms\":4500,\"method\":\"POST\",\"path\":\"/v2/models/m/"
        "infer\",\"total_us\":100000}\n"
        "{\"time_ms\":4400,\"method\":\"GET\",\"path\":\"/v2/health/ready\",\"total_us\":10}\n",
        1);
    cr_assert_eq(t.count, 2, "health checks are no load");
    cr_expect_eq(t.entries[1].offset_ns, 500000000u, "time_ms is when a request came");
    trace_dispose(&t);
}

Test(trace, lines_without_a_time_are_named)
{
    static const char *const wrong[] = {"1\nhello\n", "1\n{\"a\":1}\n", "1\n{\n", "1\n[xx]\n",
                                        "",           "\n#\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        trace t = {0};
        char *copy = memory_copy_string(wrong[i], strlen(wrong[i]));
        cr_expect_eq(trace_parse(&t, copy, "log", 1), STATUS_INVALID_ARGUMENT, "%s", wrong[i]);
        if (i < 4)
            cr_expect(strstr(status_message(), "log:2") != NULL, "%s", status_message());
        free(copy);
    }
}

static status read_trace(trace *t, const char *text, double speed)
{
    char *copy = memory_copy_string(text, strlen(text));
    *t = (trace){0};
    status s = trace_parse(t, copy, "log", speed);
    free(copy);
    return s;
}

Test(trace, times_and_lengths_have_limits)
{
    static const struct {
        const char *text, *words;
    } wrong[] = {
        {"0\n1e308\n", "log:2: 1e+308 s after the first"},
        {"1e308\n-1e308\n0\n", "log:1: inf s after the first"},
        {"nan\n", "log:1: no time"},
        {"0\ninf\n", "log:2: no time"},
        {"{\"time\":1}\n{\"time\":1e300}\n", "log:2: 1e+300 s"},
        {"0 7\n1 1000001\n", "log:2: a length of 1000001; a request has at most 1000000 tokens"},
        {"{\"time\":1,\"tokens\":99999999999}\n", "log:1: a length of 99999999999"},
    };
    trace t;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_expect_eq(read_trace(&t, wrong[i].text, 1), STATUS_INVALID_ARGUMENT, "%s",
                     wrong[i].text);
        case_expect_message(wrong[i].words, wrong[i].text);
    }
    /* A year at twice the speed is half a year. */
    cr_expect_eq(read_trace(&t, "0\n50000000\n", 1), STATUS_INVALID_ARGUMENT);
    cr_assert_eq(read_trace(&t, "50000000\n0\n25000000\n", 2), STATUS_OK, "%s", status_message());
    cr_expect_eq(t.entries[0].offset_ns, 0, "lines may be out of order");
    cr_expect_eq(t.entries[1].offset_ns, 12500000000000000u);
    cr_expect_eq(t.entries[2].offset_ns, 25000000000000000u);
    trace_dispose(&t);
    cr_assert_eq(read_trace(&t, "5\n5\n5\n", 1), STATUS_OK, "all at once");
    cr_expect_eq(t.entries[2].offset_ns, 0);
    trace_dispose(&t);
}

#include "loadtest/workload/quantity.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/loadtest/case.h"

TestSuite(quantity, .init = case_begin, .fini = case_end);

Test(quantity, durations)
{
    uint64_t ns = 7;
    cr_expect_eq(quantity_duration("50ms", &ns), STATUS_OK);
    cr_expect_eq(ns, 50000000u);
    cr_expect_eq(quantity_duration("1.5", &ns), STATUS_OK);
    cr_expect_eq(ns, 1500000000u);
    cr_expect_eq(quantity_duration("2m", &ns), STATUS_OK);
    cr_expect_eq(ns, 120000000000u);
    for (const char *const *wrong =
             (const char *const[]){"", "ms", "5 ms", "-1s", "1e20", "nan", "5d", NULL};
         *wrong; wrong++)
        cr_expect_eq(quantity_duration(*wrong, &ns), STATUS_INVALID_ARGUMENT, "%s", *wrong);
    cr_expect_eq(ns, 120000000000u, "untouched by failures");
}

Test(quantity, a_lognormal_has_its_median_and_spread)
{
    length_spec spec;
    random_state r;
    random_seed(&r, 1);
    cr_assert_eq(length_parse(&spec, "lognormal:40:0.9:max=100000"), STATUS_OK);
    int below = 0, below_sigma = 0, n = 100000;
    for (int i = 0; i < n; i++) {
        uint32_t length = length_draw(&spec, &r);
        below += length <= 40;
        below_sigma += length <= 40 * exp(0.9);
    }
    cr_expect_float_eq(below / (double)n, 0.5, 0.015);
    cr_expect_float_eq(below_sigma / (double)n, 0.8413, 0.01);
}

Test(quantity, length_distributions)
{
    length_spec spec;
    random_state r;
    random_seed(&r, 1);
    cr_assert_eq(length_parse(&spec, "lognormal:400:2"), STATUS_OK);
    for (int i = 0; i < 1000; i++) {
        uint32_t length = length_draw(&spec, &r);
        cr_assert(length >= 1 && length <= LENGTH_MAX_DEFAULT);
    }
    cr_assert_eq(length_parse(&spec, "uniform:5:7"), STATUS_OK);
    bool seen[8] = {false};
    for (int i = 0; i < 1000; i++) {
        uint32_t length = length_draw(&spec, &r);
        cr_assert(length >= 5 && length <= 7);
        seen[length] = true;
    }
    cr_expect(seen[5] && seen[6] && seen[7]);
    char text[96];
    snprintf(text, sizeof text, "file:%s", case_file("# lengths\n3\n\n9\n"));
    cr_assert_eq(length_parse(&spec, text), STATUS_OK);
    for (int i = 0; i < 100; i++) {
        uint32_t length = length_draw(&spec, &r);
        cr_assert(length == 3 || length == 9);
    }
    length_dispose(&spec);
    case_file("3\nfour\n");
    cr_expect_eq(length_parse(&spec, text), STATUS_INVALID_ARGUMENT);
    cr_expect(strstr(status_message(), ":2:") != NULL, "%s", status_message());
    for (const char *const *wrong = (const char *const[]){"0", "x", "uniform:5", "uniform:7:5",
                                                          "lognormal:40", "40:max=", NULL};
         *wrong; wrong++)
        cr_expect_eq(length_parse(&spec, *wrong), STATUS_INVALID_ARGUMENT, "%s", *wrong);
}

Test(quantity, lengths_and_durations_have_limits)
{
    static const char *const too_long[] = {"1000001", "uniform:5:10000000", "lognormal:1e7:1",
                                           "40:max=1000001"};
    length_spec spec;
    for (size_t i = 0; i < sizeof too_long / sizeof *too_long; i++) {
        cr_expect_eq(length_parse(&spec, too_long[i]), STATUS_INVALID_ARGUMENT);
        case_expect_message("1000000 tokens", too_long[i]);
    }
    cr_expect_eq(length_parse(&spec, "1000000"), STATUS_OK);
    char text[96];
    snprintf(text, sizeof text, "file:%s", case_file("3\n1000001\n"));
    cr_expect_eq(length_parse(&spec, text), STATUS_INVALID_ARGUMENT);
    case_expect_message("file:2: expected a length from 1 to 1000000", text);
    uint64_t ns = 7;
    cr_expect_eq(quantity_duration("367d", &ns), STATUS_INVALID_ARGUMENT);
    cr_expect_eq(quantity_duration("1e9h", &ns), STATUS_INVALID_ARGUMENT);
    case_expect_message("366 days", "1e9h");
    cr_expect_eq(ns, 7);
    cr_expect_eq(quantity_duration("8784h", &ns), STATUS_OK);
}

#include "loadtest/options.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static status parse_options(options *o, const char *line)
{
    static char copy[512];
    static char *argv[40];
    int argc = 0;
    snprintf(copy, sizeof copy, "penstock-load %s", line);
    for (char *at = strtok(copy, " "); at != NULL; at = strtok(NULL, " "))
        argv[argc++] = at;
    return options_parse(o, argc, argv);
}

Test(options, what_follows_from_the_rest)
{
    options o;
    cr_assert_eq(parse_options(&o, "http://x --rate 50 --duration 5s --json"), STATUS_OK);
    cr_expect_str_eq(o.json, "-");
    cr_expect_eq(o.duration_ns, 5000000000u);
    cr_assert_eq(parse_options(&o, "--json out.json --rate=50 http://x"), STATUS_OK);
    cr_expect_str_eq(o.json, "out.json");
    cr_expect_str_eq(o.url, "http://x");
    cr_assert_eq(parse_options(&o, "--json http://x --concurrency 4"), STATUS_OK);
    cr_expect_str_eq(o.json, "-");
    cr_expect_str_eq(o.url, "http://x");
    cr_assert_eq(parse_options(&o, "http://x --sweep 10:30:3"), STATUS_OK);
    cr_assert_eq(o.sweep_count, 3);
    cr_expect_float_eq(o.sweep[1], 20, 1e-9);
    cr_assert_eq(parse_options(&o, "--compare a b"), STATUS_OK);
    cr_expect_eq(parse_options(&o, "--compare a"), STATUS_INVALID_ARGUMENT);
    cr_expect_eq(parse_options(&o, "http://x http://y --rate 5"), STATUS_INVALID_ARGUMENT);
    cr_expect_eq(parse_options(&o, "http://x --concurency 5"), STATUS_INVALID_ARGUMENT);
    cr_expect(strstr(status_message(), "--concurrency") != NULL, "%s", status_message());
}

#include <criterion/criterion.h>
#include <string.h>

#include "models/usage.h"

#define S UINT64_C(1000000000)

static model_usage u;

/* 100 tokens a second, a quarter of them padding, on a device of 4 dollars an hour that is busy. */
static void run(uint64_t from_s, uint64_t until_s)
{
    for (uint64_t s = from_s; s < until_s; s++) {
        usage_execution e = {.computed_tokens = 100,
                             .operations = 5e11,
                             .device_s = 1,
                             .peak_per_s = 1e12,
                             .dollars_per_hour = 4};
        usage_add_execution(&u, s * S + S / 2, &e);
        usage_add_tokens(&u, s * S + S / 2, 75);
    }
}

Test(usage, rates_of_the_last_minute)
{
    usage_summary at;
    memset(&u, 0, sizeof u);
    usage_read(&u, 5 * S, &at);
    cr_expect_eq(at.tokens_per_s, 0);
    cr_expect_eq(at.dollars_per_million_tokens, 0);
    run(1000, 1010);
    usage_read(&u, 1010 * S, &at); /* ten seconds so far */
    cr_expect_float_eq(at.tokens_per_s, 75, 0.01);
    cr_expect_float_eq(at.waste, 0.25, 1e-9);
    cr_expect_float_eq(at.mfu, 0.5 * 0.75, 1e-6);
    /* 4/3600 dollars a second for 75 tokens. */
    cr_expect_float_eq(at.dollars_per_million_tokens, 4.0 / 3600 / 75 * 1e6, 1e-6);
    run(1010, 1200);
    usage_read(&u, 1200 * S, &at);
    cr_expect_float_eq(at.tokens_per_s, 75, 1.5);
    usage_read(&u, 1230 * S, &at); /* half of the minute was idle */
    cr_expect_float_eq(at.tokens_per_s, 75 / 2.0, 2);
    cr_expect_float_eq(at.waste, 0.25, 1e-9);
    usage_read(&u, 1300 * S, &at);
    cr_expect_eq(at.tokens_per_s, 0);
    cr_expect_eq(at.mfu, 0);
}

Test(usage, what_is_not_known_is_zero)
{
    usage_summary at;
    memset(&u, 0, sizeof u);
    usage_execution e = {.computed_tokens = 8, .operations = 100, .device_s = 1};
    usage_add_execution(&u, 10 * S, &e);
    usage_add_tokens(&u, 10 * S, 8);
    usage_read(&u, 11 * S, &at);
    cr_expect_eq(at.mfu, 0);
    cr_expect_eq(at.dollars_per_million_tokens, 0);
    cr_expect_eq(at.waste, 0);
}

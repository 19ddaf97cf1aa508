#include "loadtest/report/result.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "tests/unit/loadtest/case.h"

Test(result, objectives)
{
    result_slo list[RESULT_SLO_MAX];
    size_t count = 0;
    cr_assert_eq(result_slo_parse(list, &count, "p99=50ms,p99.9=1s,errors=0.5%"), STATUS_OK);
    cr_assert_eq(count, 3);
    cr_expect_float_eq(list[1].quantile, 0.999, 1e-12);
    cr_expect_float_eq(list[2].limit, 0.005, 1e-12);
    cr_expect_eq(result_slo_limit_ns(list, count), 1000000000u);
    static result r;
    r.sent = 1000;
    for (int i = 0; i < 985; i++)
        histogram_record(&r.latency, 10000000);
    for (int i = 0; i < 15; i++)
        histogram_record(&r.latency, 60000000);
    double measured;
    cr_expect_not(result_slo_held(&r, &list[0], &measured));
    cr_expect_float_eq(measured, 60e6, 0.01 * 60e6);
    cr_expect(result_slo_held(&r, &list[1], &measured));
    r.errors[REQUEST_REFUSED] = 5;
    cr_expect(result_slo_held(&r, &list[2], &measured));
    r.errors[REQUEST_TIMEOUT] = 1;
    cr_expect_not(result_slo_held(&r, &list[2], &measured));
    for (const char *const *wrong = (const char *const[]){"p99", "p99<5", "p101=5ms", "q99=5ms",
                                                          "p99=x", "errors=x", NULL};
         *wrong; wrong++)
        cr_expect_eq(result_slo_parse(list, &count, *wrong), STATUS_INVALID_ARGUMENT, "%s", *wrong);
}

Test(result, merging_is_the_same_as_measuring_together)
{
    result a = {0}, b = {0};
    case_fill_result(&a, 1000000);
    case_fill_result(&b, 90000000);
    static histogram all;
    histogram_merge(&all, &a.latency);
    histogram_merge(&all, &b.latency);
    result_merge(&a, &b);
    cr_expect_eq(a.sent, 2000);
    cr_expect_eq(a.latency.count, 2000);
    cr_expect_eq(histogram_quantile(&a.latency, 0.7), histogram_quantile(&all, 0.7));
    cr_expect_eq(a.slices[0].sent, 2 * b.slices[0].sent);
    cr_expect_eq(a.stages[0].duration.count, 2);
    cr_expect_eq(a.refused.count, 2);
    result_dispose(&a);
    result_dispose(&b);
}

Test(result, bounds_of_quantiles_hold_the_quantile)
{
    static histogram h;
    for (int i = 1; i <= 1000; i++)
        histogram_record(&h, (uint64_t)i * 1000000);
    /* 1.96 sqrt(1000 * 0.9 * 0.1) = 18.6 ranks to either side, and a cell's width. */
    result_bounds b = result_quantile_bounds(&h, 0.9);
    cr_expect(b.low > 870e6 && b.low < 890e6, "%g", b.low);
    cr_expect(b.high > 910e6 && b.high < 930e6, "%g", b.high);
    cr_expect_float_eq(b.value, 900e6, 8e6);
}

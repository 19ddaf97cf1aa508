#include <criterion/criterion.h>

#include "batcher/fair.h"
#include "batcher/slo.h"
#include "models/latency.h"

Test(latency, fits_cost_and_shrugs_off_stalls)
{
    device d = {.name = "a", .kind = "k"}, e = {.name = "b", .kind = "k"};
    device *devices[] = {&d, &e};
    latency *l = latency_create(devices, 2);
    cr_assert_eq(latency_bucket_ns(l, 0, 3), 0);
    for (int i = 0; i < 400; i++) {
        int64_t rows = 1 + i % 8, length = 16 << (i / 8 % 4);
        latency_work w = {rows, rows * length, rows * length * length};
        double ns = 50000 + 900.0 * (double)w.tokens + 2.0 * (double)w.squares;
        latency_observe(l, 0, -1, w, (uint64_t)ns, 1 + (uint64_t)i);
    }
    latency_fit f = latency_fit_of(l, 1); /* equal kinds share what was measured */
    cr_expect_float_eq(f.fixed_ns, 50000, 2000);
    cr_expect_float_eq(f.token_ns, 900, 20);
    cr_expect_float_eq(f.square_ns, 2, 0.2);
    latency_work one = {1, 16, 256};
    latency_observe(l, 0, 3, one, 1000, 1);
    latency_observe(l, 0, 3, one, 100000000, 2);
    cr_expect_leq(latency_bucket_ns(l, 0, 3), 1125, "one stall moves it by an eighth");
    for (int i = 0; i < 100; i++)
        latency_observe(l, 1, 3, one, 3000, 3);
    cr_expect_float_eq((double)latency_bucket_ns(l, 0, 3), 3000, 50, "a new level is learned");
    latency_destroy(l);
}

Test(slo, shrinks_when_late_grows_back_and_never_below_a_quarter)
{
    uint64_t bound = 0;
    for (int i = 0; i < 100; i++)
        bound = slo_next_bound(bound, 40000, 60000, 20, 256);
    cr_assert_eq(bound, 10000);
    cr_assert_eq(slo_next_bound(bound, 40000, 60000, 2, 256), bound, "about right: stay");
    for (int i = 0; i < 100; i++)
        bound = slo_next_bound(bound, 40000, 60000, 0, 256);
    cr_assert_eq(bound, 0, "no bound is needed any more");
}

Test(fair, weights_and_no_credit_for_idleness)
{
    static fair f;
    uint32_t weights[] = {1, 3};
    int served[2] = {0};
    fair_init(&f, 2, weights);
    fair_flow a = {0, 0}, b = {1, 0};
    fair_add_rows(&f, a, 1000);
    for (int i = 0; i < 400; i++)
        fair_charge(&f, fair_next(&f, NULL), 1000);
    fair_add_rows(&f, b, 1000); /* comes late: starts where the other one is */
    for (int i = 0; i < 400; i++) {
        fair_flow next = fair_next(&f, NULL);
        served[next.tenant]++;
        fair_charge(&f, next, 1000);
    }
    cr_expect(served[0] >= 99 && served[0] <= 101, "%d", served[0]);
    fair_set passed = {0};
    fair_pass(&passed, a);
    fair_pass(&passed, b);
    cr_expect_eq(fair_next(&f, &passed).tenant, -1);
}

#include <criterion/criterion.h>

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

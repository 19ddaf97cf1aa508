#include "loadtest/workload/arrival.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#define SECOND 1000000000ull

static size_t collect(const arrival_spec *spec, uint64_t seed, double *out, size_t max)
{
    arrival a;
    arrival_init(&a, spec, seed);
    uint64_t at, last = 0;
    size_t count = 0;
    while (arrival_next(&a, &at)) {
        cr_assert_geq(at, last, "times go back");
        cr_assert_lt(at, spec->warm_up_ns + spec->duration_ns);
        last = at;
        cr_assert_lt(count, max);
        out[count++] = (double)at / 1e9;
    }
    return count;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The largest distance between the sample and a distribution, times the square root of its size:
 * above 1.63 in 1 of 100 cases if it is the distribution (Kolmogorov and Smirnov). */
static double kolmogorov(double *sample, size_t n, double (*distribution)(double, double), double p)
{
    qsort(sample, n, sizeof *sample, ascending);
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        double f = distribution(sample[i], p);
        most = fmax(most,
                    fmax(fabs(f - (double)i / (double)n), fabs((double)(i + 1) / (double)n - f)));
    }
    return most * sqrt((double)n);
}

static double exponential(double x, double rate)
{
    return -expm1(-rate * x);
}

static double uniform(double x, double width)
{
    return x / width;
}

static double ramp(double x, double width)
{
    return x * x / (width * width); /* from nothing, linearly */
}

#define MANY 200000
static double times[MANY], gaps[MANY];

Test(arrival, poisson_has_exponential_gaps_and_uniform_times)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        arrival_spec spec = {.kind = ARRIVAL_POISSON, .rate = 1000, .duration_ns = 50 * SECOND};
        size_t n = collect(&spec, seed, times, MANY);
        cr_assert_eq(n, 50000, "the rate is exact");
        for (size_t i = 1; i < n; i++)
            gaps[i - 1] = times[i] - times[i - 1];
        cr_expect_lt(kolmogorov(gaps, n - 1, exponential, 1000), 1.9, "seed %d", (int)seed);
        cr_expect_lt(kolmogorov(times, n, uniform, 50), 1.9, "seed %d", (int)seed);
    }
}

Test(arrival, the_test_above_can_tell_constant_from_poisson)
{
    arrival_spec spec = {.kind = ARRIVAL_CONSTANT, .rate = 1000, .duration_ns = 10 * SECOND};
    size_t n = collect(&spec, 1, times, MANY);
    for (size_t i = 1; i < n; i++)
        gaps[i - 1] = times[i] - times[i - 1];
    cr_expect_gt(kolmogorov(gaps, n - 1, exponential, 1000), 10);
}

Test(arrival, gaps_are_independent)
{
    arrival_spec spec = {.kind = ARRIVAL_POISSON, .rate = 100, .duration_ns = 500 * SECOND};
    size_t n = collect(&spec, 3, times, MANY);
    double sum = 0;
    for (size_t i = 2; i < n; i++) /* the lag-1 autocovariance, in units of the variance */
        sum += (100 * (times[i] - times[i - 1]) - 1) * (100 * (times[i - 1] - times[i - 2]) - 1);
    cr_expect_lt(fabs(sum / (double)n), 0.02);
}

Test(arrival, constant_is_even)
{
    arrival_spec spec = {.kind = ARRIVAL_CONSTANT, .rate = 333, .duration_ns = 3 * SECOND};
    size_t n = collect(&spec, 1, times, MANY);
    cr_assert_eq(n, 999);
    for (size_t i = 0; i < n; i++)
        cr_assert_float_eq(times[i], (double)i / 333, 1e-8);
}

Test(arrival, a_ramp_follows_its_slope)
{
    arrival_spec spec = {
        .kind = ARRIVAL_RAMP, .rate = 0, .rate_end = 2000, .duration_ns = 20 * SECOND};
    size_t n = collect(&spec, 1, times, MANY);
    cr_assert_eq(n, 20000);
    cr_expect_lt(kolmogorov(times, n, ramp, 20), 1.9);
    spec = (arrival_spec){
        .kind = ARRIVAL_RAMP, .rate = 500, .rate_end = 500, .duration_ns = 20 * SECOND};
    n = collect(&spec, 1, times, MANY);
    cr_expect_lt(kolmogorov(times, n, uniform, 20), 1.9, "a flat ramp");
    spec.rate_end = 0;
    cr_assert_eq(collect(&spec, 1, times, MANY), 5000, "a falling ramp");
    cr_expect_gt(times[4999], 19);
}

Test(arrival, steps_have_their_rates)
{
    arrival_spec spec = {0};
    cr_assert_eq(arrival_parse(&spec, "steps:100x2s,0x1s,1000x500ms"), STATUS_OK);
    cr_assert_eq(spec.duration_ns, 3500000000u);
    size_t n = collect(&spec, 9, times, MANY), first = 0, gap = 0;
    cr_assert_eq(n, 700);
    for (size_t i = 0; i < n; i++) {
        first += times[i] < 2;
        gap += times[i] > 2.0001 && times[i] < 2.9999;
    }
    cr_expect(first > 140 && first < 260, "%zu", first);
    cr_expect_eq(gap, 0);
}

Test(arrival, bursts_come_together)
{
    arrival_spec spec = {.rate = 100, .duration_ns = 10 * SECOND};
    cr_assert_eq(arrival_parse(&spec, "burst:30"), STATUS_OK);
    size_t n = collect(&spec, 1, times, MANY), groups = 1;
    cr_assert_eq(n, 1000);
    for (size_t i = 1; i < n; i++)
        groups += times[i] != times[i - 1];
    cr_expect_eq(groups, 34);
    cr_assert_eq(arrival_parse(&spec, "burst:10:250ms"), STATUS_OK);
    cr_assert_float_eq(spec.rate, 40, 1e-9);
    cr_assert_eq(collect(&spec, 1, times, MANY), 400);
    cr_expect_float_eq(times[10], 0.25, 1e-9);
    cr_expect_float_eq(times[399], 9.75, 1e-9);
}

Test(arrival, the_warm_up_comes_before_and_counts_apart)
{
    arrival_spec spec = {
        .kind = ARRIVAL_POISSON, .rate = 200, .warm_up_ns = 2 * SECOND, .duration_ns = 5 * SECOND};
    size_t n = collect(&spec, 1, times, MANY), before = 0;
    for (size_t i = 0; i < n; i++)
        before += times[i] < 2;
    cr_expect_eq(before, 400);
    cr_expect_eq(n - before, 1000);
}

Test(arrival, a_trace_keeps_its_times)
{
    uint64_t at[] = {0, 5, 5, 900000000u, 2 * SECOND};
    arrival_spec spec = {
        .kind = ARRIVAL_TRACE, .trace_ns = at, .trace_count = 5, .duration_ns = SECOND};
    cr_assert_eq(collect(&spec, 1, times, MANY), 4, "what is after the window is left out");
    cr_expect_float_eq(times[3], 0.9, 1e-9);
}

Test(arrival, seeds_decide)
{
    static double other[MANY];
    arrival_spec spec = {.kind = ARRIVAL_POISSON, .rate = 50, .duration_ns = SECOND};
    size_t n = collect(&spec, 1, times, MANY);
    collect(&spec, 1, other, MANY);
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(times[i], other[i]);
    collect(&spec, 2, other, MANY);
    cr_expect_neq(times[0], other[0]);
}

Test(arrival, nonsense_is_refused)
{
    static const char *const wrong[] = {"",         "uniform",    "burst:0",    "burst:x",
                                        "burst:5:", "burst:5x",   "ramp:5",     "ramp:-1:5",
                                        "ramp:0:0", "ramp:1:2:3", "steps:",     "steps:5",
                                        "steps:5x", "steps:0x5s", "steps:5x5s,"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        arrival_spec spec = {.kind = ARRIVAL_TRACE};
        cr_expect_eq(arrival_parse(&spec, wrong[i]), STATUS_INVALID_ARGUMENT, "%s", wrong[i]);
        cr_expect_eq(spec.kind, ARRIVAL_TRACE, "untouched");
    }
}

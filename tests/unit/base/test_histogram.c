#include "base/histogram.h"
#include "base/xorshift.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static histogram h, other;

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

Test(histogram, is_zero_when_empty)
{
    histogram_reset(&h);
    cr_assert_eq(histogram_quantile(&h, 0.5), 0);
    cr_assert_eq(histogram_count_at_most(&h, UINT64_MAX), 0);
}

Test(histogram, cells_are_ordered_and_narrower_than_one_percent_of_their_half)
{
    for (unsigned cell = 0; cell + 1 < HISTOGRAM_CELLS; cell++) {
        uint64_t low = histogram_cell_low(cell), next = histogram_cell_low(cell + 1);
        cr_assert_lt(low, next);
        cr_assert_eq(histogram_cell(low), cell);
        cr_assert_eq(histogram_cell(next - 1), cell);
        if (low > 0)
            cr_assert_leq((double)(next - 1 - low) / 2, 0.01 * (double)low);
    }
    cr_assert_eq(histogram_cell(UINT64_MAX), HISTOGRAM_CELLS - 1);
    cr_assert_eq(histogram_cell((uint64_t)1 << HISTOGRAM_OCTAVE_MAX), HISTOGRAM_CELLS - 1);
}

/* Every quantile lies within 1% of the exact one, for latencies spread over seven decades. */
Test(histogram, quantiles_are_within_one_percent)
{
    enum { COUNT = 20000 };
    uint64_t *values = malloc(COUNT * sizeof values[0]), state = 88172645463325252ull;
    histogram_reset(&h);
    for (int i = 0; i < COUNT; i++) {
        double exponent = (double)(xorshift64_next(&state) % 1000000) / 1000000 * 7;
        values[i] = (uint64_t)pow(10, 3 + exponent);
        histogram_record(&h, values[i]);
    }
    qsort(values, COUNT, sizeof values[0], compare);
    static const double quantiles[] = {0, 0.001, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 1};
    for (size_t i = 0; i < sizeof quantiles / sizeof quantiles[0]; i++) {
        double q = quantiles[i];
        int rank = (int)ceil(q * COUNT);
        double exact = (double)values[rank > 0 ? rank - 1 : 0];
        double found = (double)histogram_quantile(&h, q);
        cr_assert_leq(fabs(found - exact), 0.01 * exact, "q %g: %g, not %g", q, found, exact);
    }
    cr_assert_leq(histogram_quantile(&h, 1), values[COUNT - 1]);
    for (int i = 0; i < COUNT; i += 997) {
        uint64_t count = histogram_count_at_most(&h, values[i]);
        cr_assert_geq(count, (uint64_t)i + 1);
    }
    cr_assert_eq(histogram_count_at_most(&h, UINT64_MAX), COUNT);
    free(values);
}

Test(histogram, small_values_are_exact)
{
    histogram_reset(&h);
    for (uint64_t v = 0; v < 64; v++)
        histogram_record(&h, v);
    for (uint64_t v = 0; v < 64; v++)
        cr_assert_eq(histogram_quantile(&h, (double)(v + 1) / 64), v);
}

Test(histogram, one_value_is_every_quantile_to_its_cell)
{
    histogram_reset(&h);
    histogram_record(&h, 1000001);
    cr_assert_leq(histogram_quantile(&h, 0), 1000001);
    cr_assert_eq(histogram_quantile(&h, 0), histogram_quantile(&h, 1));
}

Test(histogram, merging_is_recording_both)
{
    static histogram both;
    histogram_reset(&h);
    histogram_reset(&other);
    histogram_reset(&both);
    uint64_t state = 42;
    for (int i = 0; i < 1000; i++) {
        uint64_t v = xorshift64_next(&state) % 1000000000;
        histogram_record(i % 2 ? &h : &other, v);
        histogram_record(&both, v);
    }
    histogram_merge(&h, &other);
    cr_assert_eq(h.count, both.count);
    cr_assert_eq(h.sum, both.sum);
    cr_assert_eq(h.max, both.max);
    for (unsigned i = 0; i < HISTOGRAM_CELLS; i++)
        cr_assert_eq(h.cells[i], both.cells[i]);
}

Test(histogram, values_past_the_last_octave_report_the_largest)
{
    histogram_reset(&h);
    histogram_record(&h, UINT64_MAX / 2);
    cr_assert_eq(histogram_quantile(&h, 0.5), UINT64_MAX / 2);
}

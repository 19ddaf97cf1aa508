#include "devices/accuracy.h"

#include <criterion/criterion.h>
#include <math.h>

Test(accuracy, wide_outputs_are_compared_one_by_one_and_narrow_ones_together)
{
    enum { WIDE = 16 };
    float a[WIDE] = {1}, same[WIDE] = {2}, other[WIDE] = {0, 1};
    device_comparison c = {0};
    device_comparison_add(&c, a, same, WIDE);
    device_comparison_add(&c, a, other, WIDE);
    device_accuracy found = device_comparison_read(&c, WIDE);
    cr_assert_float_eq(found.mean, 0.5, 1e-9);
    cr_assert_float_eq(found.lowest, 0, 1e-9);
    found = device_comparison_read(&c, 2);
    cr_assert_float_eq(found.mean, 2 / (1.41421356 * 2.23606798), 1e-6);
    cr_assert_eq(found.mean, found.lowest);
}

/* Beside a sequence that is right. `width`: of the output that both are of. */
static device_accuracy compare_with(float reference, float found, size_t width)
{
    enum { WIDE = 16 };
    float right[WIDE] = {1, 2}, a[WIDE] = {1, 2, reference}, b[WIDE] = {1, 2, found};
    device_comparison c = {0};
    device_comparison_add(&c, right, right, WIDE);
    device_comparison_add(&c, a, b, WIDE);
    device_comparison_add(&c, right, right, WIDE);
    return device_comparison_read(&c, width);
}

Test(accuracy, an_infinite_number_or_none_on_one_side_only_is_as_wrong_as_can_be)
{
    static const float pairs[][2] = {{0, NAN},        {0, INFINITY},  {3, -INFINITY},
                                     {NAN, 0},        {INFINITY, 3},  {INFINITY, -INFINITY},
                                     {NAN, INFINITY}, {INFINITY, NAN}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        device_accuracy wide = compare_with(pairs[i][0], pairs[i][1], 16);
        cr_expect_eq(wide.lowest, -1, "%zu: %g", i, wide.lowest);
        cr_expect_float_eq(wide.mean, 1.0 / 3, 1e-9, "%zu: %g", i, wide.mean);
        device_accuracy narrow = compare_with(pairs[i][0], pairs[i][1], 3);
        cr_expect(narrow.mean == -1 && narrow.lowest == -1, "%zu: %g", i, narrow.mean);
    }
}

Test(accuracy, an_infinite_number_or_none_on_both_sides_is_right)
{
    static const float same[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++)
        for (size_t width = 3; width <= 16; width += 13) {
            device_accuracy found = compare_with(same[i], same[i], width);
            cr_expect(found.lowest > 1 - 1e-9 && found.mean > 1 - 1e-9, "%d: %g", i, found.lowest);
        }
}

Test(accuracy, of_several_outputs_the_worst_counts)
{
    device_accuracy worse =
        device_accuracy_worse((device_accuracy){0.9, -1}, (device_accuracy){0.8, 0.7});
    cr_assert(worse.mean == 0.8 && worse.lowest == -1);
}

Test(accuracy, generated_samples_are_always_the_same_and_within_the_vocabulary)
{
    arena memory = {0};
    device_samples one, two;
    cr_assert_eq(device_samples_generate(500, 64, &memory, &one), STATUS_OK);
    cr_assert_eq(device_samples_generate(500, 64, &memory, &two), STATUS_OK);
    cr_assert_eq(one.count, DEVICE_SAMPLES_GENERATED);
    cr_assert_eq(one.samples[0].length, 8);
    cr_assert_eq(one.samples[one.count - 1].length, 64);
    for (int i = 0; i < one.count; i++)
        for (int64_t k = 0; k < one.samples[i].length; k++) {
            cr_assert(one.samples[i].ids[k] >= 0 && one.samples[i].ids[k] < 500);
            cr_assert_eq(one.samples[i].ids[k], two.samples[i].ids[k]);
        }
    arena_dispose(&memory);
}

Test(accuracy, int8_on_real_samples_has_to_be_better)
{
    device_accuracy real = device_accuracy_required(DEVICE_INT8, true);
    device_accuracy generated = device_accuracy_required(DEVICE_INT8, false);
    cr_assert(real.mean > generated.mean && real.lowest > generated.lowest);
    cr_assert(device_accuracy_is_reached(real, generated));
    cr_assert_not(device_accuracy_is_reached((device_accuracy){1, 0.98}, generated));
}

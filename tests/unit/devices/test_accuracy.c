#include "devices/accuracy.h"

#include <criterion/criterion.h>

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

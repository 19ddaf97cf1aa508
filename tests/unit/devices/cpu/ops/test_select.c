/* Unique: its four results, in both orders. What else selects is in tests/conformance. */
#include <criterion/criterion.h>
#include <math.h>

#include "tests/unit/devices/cpu/case.h"

static void run(cpu_case *c, bool is_sorted)
{
    c->attributes[c->attribute_count++] = graph_make_int("sorted", is_sorted);
    cr_assert_eq(cpu_case_run(c, GRAPH_OP_UNIQUE, 4), STATUS_OK, "%s", status_message());
}

static void expect(const tensor *t, int64_t count, const double *numbers)
{
    cr_assert_eq(tensor_count(t), count, "%lld", (long long)tensor_count(t));
    for (int64_t i = 0; i < count; i++) {
        double x = cpu_case_get(t, i);
        cr_expect(x == numbers[i] || (isnan(x) && isnan(numbers[i])), "[%lld] is %g, not %g",
                  (long long)i, x, numbers[i]);
    }
}

Test(select, unique_elements_in_order_and_as_they_appear)
{
    const double x[] = {3, NAN, -1, 3, 0, NAN, -1, 3}; /* NaN is one element, and the largest */
    cpu_case c = {0};
    cpu_case_input(&c, DTYPE_F32, DIMS(2, 4), x);
    run(&c, true);
    expect(&c.outputs[0], 4, (double[]){-1, 0, 3, NAN});
    expect(&c.outputs[1], 4, (double[]){2, 4, 0, 1});
    expect(&c.outputs[2], 8, (double[]){2, 3, 0, 2, 1, 3, 0, 2});
    expect(&c.outputs[3], 4, (double[]){2, 1, 3, 2});
    cpu_case_dispose(&c);
    c = (cpu_case){0};
    cpu_case_input(&c, DTYPE_F32, DIMS(2, 4), x);
    run(&c, false);
    expect(&c.outputs[0], 4, (double[]){3, NAN, -1, 0});
    expect(&c.outputs[1], 4, (double[]){0, 1, 2, 4});
    expect(&c.outputs[2], 8, (double[]){0, 1, 2, 0, 3, 1, 2, 0});
    expect(&c.outputs[3], 4, (double[]){3, 2, 2, 1});
    cpu_case_dispose(&c);
}

Test(select, unique_items_along_an_axis)
{
    cpu_case c = {.attributes = {graph_make_int("axis", 1)}, .attribute_count = 1};
    cpu_case_input(&c, DTYPE_I32, DIMS(2, 4), (double[]){5, 1, 5, 1, 2, 7, 2, 6});
    run(&c, true);
    expect(&c.outputs[0], 6, (double[]){1, 1, 5, 6, 7, 2});
    expect(&c.outputs[1], 3, (double[]){3, 1, 0});
    expect(&c.outputs[2], 4, (double[]){2, 1, 2, 0});
    expect(&c.outputs[3], 3, (double[]){1, 1, 2});
    cpu_case_dispose(&c);
}

Test(select, unique_integers_that_are_one_double)
{
    cpu_case c = {0};
    tensor *t = cpu_case_input(&c, DTYPE_I64, DIMS(3), NULL);
    const int64_t large = (int64_t)1 << 60;
    for (int64_t i = 0; i < 3; i++)
        ((int64_t *)t->data)[i] = large + (i + 1) % 2;
    run(&c, true);
    cr_assert_eq(tensor_count(&c.outputs[0]), 2);
    const int64_t *y = c.outputs[0].data;
    cr_expect(y[0] == large && y[1] == large + 1);
    cpu_case_dispose(&c);
}

/* Each with each other would take hours. */
Test(select, unique_of_many_elements, .timeout = 120)
{
    enum { MANY = 1 << 20 };
    cpu_case c = {0};
    tensor *t = cpu_case_input(&c, DTYPE_I64, DIMS(MANY), NULL);
    for (int64_t i = 0; i < MANY; i++)
        ((int64_t *)t->data)[i] = i * 7919 % (MANY / 2 + 1);
    run(&c, true);
    cr_assert_eq(tensor_count(&c.outputs[0]), MANY / 2 + 1);
    const int64_t *y = c.outputs[0].data, *number = c.outputs[2].data;
    for (int64_t i = 0; i < MANY; i++)
        cr_assert_eq(y[number[i]], ((const int64_t *)t->data)[i]);
    cpu_case_dispose(&c);
}

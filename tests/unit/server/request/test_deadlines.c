#include <criterion/criterion.h>

#include "base/xorshift.h"
#include "server/request/deadlines.h"

#define COUNT 500

Test(deadlines, come_out_in_order_whatever_is_removed)
{
    static deadline entries[COUNT];
    deadlines d;
    uint64_t random = 88172645463325252u;
    cr_assert_eq(deadlines_init(&d, COUNT), STATUS_OK);
    for (int round = 0; round < 20; round++) {
        size_t removed = 0, popped = 0;
        for (int i = 0; i < COUNT; i++)
            deadlines_add(&d, &entries[i], 1 + xorshift64_next(&random) % 1000);
        for (int i = 0; i < COUNT; i += 3, removed++)
            deadlines_remove(&d, &entries[i]);
        deadlines_remove(&d, &entries[0]); /* once is enough */
        uint64_t last_ns = 0;
        for (deadline *e; (e = deadlines_pop_due(&d, 1000)) != NULL; popped++) {
            cr_assert_geq(e->due_ns, last_ns);
            cr_assert_neq((e - entries) % 3, 0, "it was removed");
            cr_assert_eq(e->place, 0);
            last_ns = e->due_ns;
        }
        cr_assert_eq(popped, COUNT - removed);
    }
    deadlines_dispose(&d);
}

Test(deadlines, nothing_comes_out_early)
{
    deadline a = {0}, b = {0};
    deadlines d;
    cr_assert_eq(deadlines_init(&d, 2), STATUS_OK);
    deadlines_add(&d, &a, 20);
    deadlines_add(&d, &b, 10);
    cr_assert_null(deadlines_pop_due(&d, 9));
    cr_assert_eq(deadlines_pop_due(&d, 10), &b);
    cr_assert_null(deadlines_pop_due(&d, 19));
    cr_assert_eq(deadlines_pop_due(&d, 20), &a);
    cr_assert_eq(d.count, 0);
    deadlines_dispose(&d);
}

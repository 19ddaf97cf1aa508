#include <criterion/criterion.h>

#include "batcher/policy/slo.h"

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

/* Two windows of responses: all late, then none. */
Test(slo, the_bound_moves_once_a_window)
{
    static slo_controller c;
    for (int i = 0; i < SLO_WINDOW - 1; i++)
        slo_observe(&c, 40000, 50000, 60000);
    cr_assert_eq(c.bound_ns, 0);
    slo_observe(&c, 40000, 50000, 60000);
    uint64_t bound_ns = c.bound_ns;
    cr_assert_eq(bound_ns, slo_next_bound(0, 40000, 60000, SLO_WINDOW, SLO_WINDOW));
    for (int i = 0; i < SLO_WINDOW; i++)
        slo_observe(&c, 40000, 30000, 60000);
    cr_assert_gt(c.bound_ns, bound_ns);
}

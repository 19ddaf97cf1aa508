#include "server/budget/refusal_pace.h"

#include <criterion/criterion.h>

#define S UINT64_C(1000000000)

Test(refusal_pace, a_burst_is_told_at_once_and_then_so_many_a_second)
{
    refusal_pace p = {0};
    for (int i = 0; i < REFUSALS_BURST; i++)
        cr_assert_eq(refusal_pace_delay_ns(&p, S), 0);
    uint64_t before = 0;
    for (int i = 0; i < REFUSALS_PER_S; i++) {
        uint64_t late = refusal_pace_delay_ns(&p, S);
        cr_assert_eq(late - before, S / REFUSALS_PER_S);
        before = late;
    }
    cr_expect_eq(refusal_pace_delay_ns(&p, S), REFUSAL_DELAY_NS_MAX, "and never later");
}

Test(refusal_pace, who_waits_is_told_at_once)
{
    refusal_pace p = {0};
    for (int i = 0; i < 1000; i++)
        refusal_pace_delay_ns(&p, S);
    cr_expect_gt(refusal_pace_delay_ns(&p, 2 * S), 0);
    cr_expect_eq(refusal_pace_delay_ns(&p, 4 * S), 0);
    for (int i = 0; i < 1000; i++)
        cr_assert_eq(refusal_pace_delay_ns(&p, 10 * S + i * (S / REFUSALS_PER_S)), 0);
}

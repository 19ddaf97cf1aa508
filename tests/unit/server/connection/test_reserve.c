#include "server/connection/reserve.h"

#include <criterion/criterion.h>

Test(reserve, is_spent_at_once_and_then_waits_until_it_gives_up)
{
    reserve r = {0};
    cr_assert(reserve_fill(&r));
    cr_assert(reserve_spend(&r, 100));
    cr_expect_null(r.memory);
    cr_expect_not(reserve_is_exhausted(&r));
    cr_assert(reserve_spend(&r, 100));
    cr_expect(reserve_is_exhausted(&r));
    r.waits = RESERVE_WAITS_MAX;
    cr_expect_not(reserve_spend(&r, 100));
    reserve_dispose(&r);
}

Test(reserve, is_whole_again_once_there_is_memory)
{
    reserve r = {0};
    cr_assert(reserve_fill(&r));
    cr_assert(reserve_spend(&r, 100) && reserve_spend(&r, 100));
    cr_assert(reserve_fill(&r));
    cr_expect_not_null(r.memory);
    cr_expect_not(reserve_is_exhausted(&r));
    reserve_dispose(&r);
}

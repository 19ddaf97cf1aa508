#include <criterion/criterion.h>
#include <string.h>

#include "base/cancel.h"
#include "base/clock.h"

Test(cancel, work_goes_on_until_it_is_requested)
{
    cancel_token c = {0};
    cr_expect_eq(cancel_check(NULL), STATUS_OK);
    cr_expect_eq(cancel_check(&c), STATUS_OK);
    cancel_request(&c);
    cr_expect_eq(cancel_check(&c), STATUS_CANCELLED);
}

Test(cancel, a_deadline_that_has_passed_ends_it)
{
    cancel_token c = {.deadline_ns = UINT64_MAX};
    cr_expect_eq(cancel_check(&c), STATUS_OK);
    c.deadline_ns = clock_now_ns();
    cr_expect_eq(cancel_check(&c), STATUS_DEADLINE_EXCEEDED);
}

Test(cancel, its_two_errors_are_told_from_others)
{
    for (int s = STATUS_OK; s < STATUS_COUNT; s++)
        cr_expect_eq(cancel_is_end((status)s),
                     s == STATUS_CANCELLED || s == STATUS_DEADLINE_EXCEEDED);
}

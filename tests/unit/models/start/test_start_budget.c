#include "models/start/start_budget.h"

#include <criterion/criterion.h>

Test(start_budget, allows_what_fits_into_what_is_left)
{
    start_budget b = {.operations_max = 100};
    cr_expect(start_budget_allows(&b, 100));
    cr_expect_not(start_budget_allows(&b, 101));
    start_budget_spend(&b, 60);
    cr_expect(start_budget_allows(&b, 40));
    cr_expect_not(start_budget_allows(&b, 41));
    start_budget_spend(&b, INT64_MAX);
    cr_expect_not(start_budget_allows(&b, 1), "sums saturate");
}

Test(start_budget, without_one_everything_fits)
{
    start_budget_spend(NULL, 1);
    cr_expect(start_budget_allows(NULL, INT64_MAX));
}

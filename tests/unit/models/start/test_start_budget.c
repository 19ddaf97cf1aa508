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

Test(start_budget, executions_of_a_known_model_take_a_tenth)
{
    start_budget b = {.operations_max = 100};
    cr_expect(start_budget_allows_execution(&b, 100));
    b.is_known = true;
    cr_expect(start_budget_allows_execution(&b, 10));
    cr_expect_not(start_budget_allows_execution(&b, 11));
    cr_expect_not(start_budget_allows_execution(&b, INT64_MAX));
    cr_expect(start_budget_allows(&b, 100), "experiments and buckets are not executions");
}

Test(start_budget, without_one_everything_fits)
{
    start_budget_spend(NULL, 1);
    cr_expect(start_budget_allows(NULL, INT64_MAX));
}

#include "models/start/start_budget.h"

#include <stddef.h>

#include "graph/cost/cost.h"

bool start_budget_allows(const start_budget *b, int64_t operations)
{
    return b == NULL || graph_cost_add(b->spent, operations) <= b->operations_max;
}

bool start_budget_allows_execution(const start_budget *b, int64_t operations)
{
    bool is_known = b != NULL && b->is_known;
    return start_budget_allows(b, !is_known                     ? operations
                                  : operations > INT64_MAX / 10 ? INT64_MAX
                                                                : 10 * operations);
}

void start_budget_spend(start_budget *b, int64_t operations)
{
    if (b != NULL)
        b->spent = graph_cost_add(b->spent, operations);
}

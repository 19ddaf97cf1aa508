#include <criterion/criterion.h>
#include <stdlib.h>

#include "batcher/policy/fair.h"

Test(fair, weights_and_little_credit_for_idleness)
{
    static fair f;
    const int64_t ms = 1000000;
    uint32_t weights[] = {1, 3};
    int served[2] = {0};
    fair_init(&f, 2, weights);
    tenant_class a = {0, 0}, b = {1, 0};
    fair_add_rows(&f, a, 10000);
    for (int i = 0; i < 4000; i++) {
        fair_lead(&f, fair_next(&f, NULL));
        fair_add_service(&f, fair_next(&f, NULL), ms);
    }
    fair_add_rows(&f, b, 10000); /* comes late: starts a little before where the other one is */
    for (int i = 0; i < 4000; i++) {
        tenant_class next = fair_next(&f, NULL);
        if (i < (int)FAIR_CREDIT_NS / ms)
            cr_expect_eq(next.tenant, 1, "credit first");
        served[next.tenant]++;
        fair_lead(&f, next);
        fair_add_service(&f, next, ms);
    }
    int credit = (int)FAIR_CREDIT_NS / (int)ms;
    cr_expect_leq(abs(served[0] - (4000 - credit) / 4), 1, "%d", served[0]);
    fair_set passed = {0};
    fair_pass(&passed, a);
    fair_pass(&passed, b);
    cr_expect_eq(fair_next(&f, &passed).tenant, -1);
}

/* Else a low class that was idle would go before a higher one. */
Test(fair, classes_have_no_credit)
{
    static fair f;
    fair_init(&f, 1, NULL);
    tenant_class high = {0, 0}, low = {0, 3};
    fair_add_rows(&f, high, 1000);
    for (int i = 0; i < 100; i++) {
        fair_lead(&f, high);
        fair_add_service(&f, high, 1000000);
    }
    fair_add_rows(&f, low, 1000);
    fair_add_service(&f, fair_next(&f, NULL), 1000000);
    cr_expect_eq(fair_next(&f, NULL).class, 0);
}

/* Of two tenants that are served alike, the one that backfills the batches of the other is ahead of
 * it. That is no reason to move the other one up when its queue was empty for a moment. */
Test(fair, an_empty_moment_costs_nothing)
{
    static fair f;
    fair_init(&f, 2, NULL);
    tenant_class lead = {0, 0}, backfill = {1, 0};
    fair_add_rows(&f, lead, 1);
    fair_add_rows(&f, backfill, 10);
    fair_lead(&f, lead);
    fair_add_service(&f, backfill, 5000);
    fair_add_service(&f, lead, 100);
    fair_add_rows(&f, lead, -1);
    fair_add_rows(&f, lead, 1); /* back at once */
    cr_expect_eq(f.tenants[0].virtual_ns * 50, f.tenants[1].virtual_ns);
    fair_add_service(&f, lead, 200);
    fair_add_service(&f, lead, -200); /* it took less than it was charged */
    cr_expect_eq(f.tenants[0].virtual_ns * 50, f.tenants[1].virtual_ns);
}

#include <criterion/criterion.h>

#include "batcher/admission/admission.h"
#include "batcher/policy/fair.h"
#include "batcher/policy/slo.h"
#include "models/latency.h"

Test(latency, fits_cost_and_shrugs_off_stalls)
{
    device d = {.name = "a", .kind = "k"}, e = {.name = "b", .kind = "k"};
    device *devices[] = {&d, &e};
    latency *l = latency_create(devices, 2);
    cr_assert_eq(latency_bucket_ns(l, 0, 3), 0);
    for (int i = 0; i < 400; i++) {
        int64_t rows = 1 + i % 8, length = 16 << (i / 8 % 4);
        latency_work w = {rows, rows * length, rows * length * length};
        double ns = 50000 + 900.0 * (double)w.tokens + 2.0 * (double)w.squares;
        latency_observe(l, 0, -1, w, (uint64_t)ns, 1 + (uint64_t)i);
    }
    latency_fit f = latency_fit_of(l, 1); /* equal kinds share what was measured */
    cr_expect_float_eq(f.fixed_ns, 50000, 2000);
    cr_expect_float_eq(f.token_ns, 900, 20);
    cr_expect_float_eq(f.square_ns, 2, 0.2);
    latency_work one = {1, 16, 256};
    latency_observe(l, 0, 3, one, 1000, 1);
    latency_observe(l, 0, 3, one, 100000000, 2);
    cr_expect_leq(latency_bucket_ns(l, 0, 3), 1125, "one stall moves it by an eighth");
    for (int i = 0; i < 100; i++)
        latency_observe(l, 1, 3, one, 3000, 3);
    cr_expect_float_eq((double)latency_bucket_ns(l, 0, 3), 3000, 50, "a new level is learned");
    latency_destroy(l);
}

Test(admission, a_full_queue_says_when_it_is_empty)
{
    static admission a;
    model m = {.name = "m", .index = 0, .weight = 1},
          other = {.name = "o", .index = 1, .weight = 1};
    tenant_class flow = {0, 0};
    admission_init(&a, 1, NULL);
    cr_expect_eq(admission_drain_ns(&a, &m, 2), 0);
    hold ours = {0}, theirs = {0};
    int64_t before;
    cr_assert(hold_acquire(&a.backlog, &ours, &m, flow, 1, 6000000000, 10, &before));
    cr_expect_eq(admission_drain_ns(&a, &m, 2), 3000000000);
    /* Takes half of the devices meanwhile. */
    cr_assert(hold_acquire(&a.backlog, &theirs, &other, flow, 1, 60000000000, 10, &before));
    cr_expect_eq(admission_drain_ns(&a, &m, 2), 6000000000);
    for (int i = 0; i < 1000; i++)
        admission_learn(&a, 1000, 2000); /* batches take twice what was thought */
    cr_expect_float_eq((double)admission_drain_ns(&a, &m, 2), 12e9, 0.5e9);
}

/* A job of 32 positions that found `backlog_ns` and had `left_ns`. */
static void end_one(admission *a, model *m, uint64_t backlog_ns, uint64_t left_ns, bool is_in_time,
                    uint64_t admitted_ns)
{
    static job j;
    j.model = m;
    j.length = 32;
    j.backlog_ns = backlog_ns;
    j.stage_ns[STAGE_ADMIT] = admitted_ns;
    j.deadline_ns = admitted_ns + left_ns;
    admission_learn_end(a, &j, is_in_time, admitted_ns + left_ns);
}

Test(admission, limits_are_cut_once_and_creep_up)
{
    static admission a;
    model m = {.name = "m", .index = 0, .weight = 1};
    const uint64_t ms = 1000000;
    admission_init(&a, 1, NULL);
    const _Atomic uint32_t *limit = &a.limits[0][0][0][5].value;
    uint32_t first = *limit;
    for (int i = 0; i < 50; i++) /* all let in before the first of them was found late */
        end_one(&a, &m, 30 * ms, 50 * ms, false, 1000 * ms + (uint64_t)i);
    uint32_t once = *limit;
    cr_expect_lt(once, first);
    cr_expect_gt(once, first / 2, "one cut for all of them");
    end_one(&a, &m, 30 * ms, 50 * ms, false, 2000 * ms);
    cr_expect_lt(*limit, once);
    uint32_t cut = *limit;
    end_one(&a, &m, 1 * ms, 50 * ms, true, 2100 * ms);
    cr_expect_eq(*limit, cut, "far from the limit: proves nothing");
    for (uint64_t i = 0; i < 1000; i++)
        end_one(&a, &m, 45 * ms, 50 * ms, true, (3000 + 10 * i) * ms);
    cr_expect_gt(*limit, cut + cut / 2);
}

Test(admission, what_the_refused_are_told)
{
    const uint64_t ms = 1000000;
    admission_estimate e = {
        .is_known = true, .backlog_ns = 20 * ms, .wait_ns = 40 * ms, .run_ns = 5 * ms};
    cr_expect_not(admission_is_hopeless(&e, 100 * ms, 145 * ms));
    cr_expect(admission_is_hopeless(&e, 100 * ms, 144 * ms));
    cr_expect_not(admission_is_sure(&e, 100 * ms, 125 * ms));
    cr_expect(admission_is_sure(&e, 100 * ms, 124 * ms));
    e.backlog_ns = 60 * ms; /* others were let past it */
    cr_expect_eq(admission_expected_wait_ns(&e), 40 * ms);
}

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

/* Of two that are always served alike, one that rides along in the other's batches is ahead of it.
 * That is no reason to move the other one up when its queue was empty for a moment. */
Test(fair, an_empty_moment_costs_nothing)
{
    static fair f;
    fair_init(&f, 2, NULL);
    tenant_class lead = {0, 0}, rider = {1, 0};
    fair_add_rows(&f, lead, 1);
    fair_add_rows(&f, rider, 10);
    fair_lead(&f, lead);
    fair_add_service(&f, rider, 5000);
    fair_add_service(&f, lead, 100);
    fair_add_rows(&f, lead, -1);
    fair_add_rows(&f, lead, 1); /* back at once */
    cr_expect_eq(f.tenants[0].virtual_ns * 50, f.tenants[1].virtual_ns);
    fair_add_service(&f, lead, 200);
    fair_add_service(&f, lead, -200); /* it took less than it was charged */
    cr_expect_eq(f.tenants[0].virtual_ns * 50, f.tenants[1].virtual_ns);
}

#include <criterion/criterion.h>

#include "batcher/admission/admission.h"

Test(admission, a_full_queue_says_when_it_is_empty)
{
    static admission a;
    model m = {.name = "m", .index = 0, .weight = 1},
          other = {.name = "o", .index = 1, .weight = 1};
    tenant_class whose = {0, 0};
    admission_init(&a, 1, NULL);
    cr_expect_eq(admission_drain_ns(&a, &m, 2), 0);
    hold ours = {0}, theirs = {0};
    int64_t before;
    cr_assert(
        hold_acquire(&a.backlog, &ours, &m, whose, 1, 6000000000, (hold_limits){10, 10}, &before));
    cr_expect_eq(admission_drain_ns(&a, &m, 2), 3000000000);
    /* Takes half of the devices meanwhile. */
    cr_assert(hold_acquire(&a.backlog, &theirs, &other, whose, 1, 60000000000,
                           (hold_limits){10, 10}, &before));
    cr_expect_eq(admission_drain_ns(&a, &m, 2), 6000000000);
    for (int i = 0; i < 1000; i++)
        admission_learn(&a, 1000, 2000); /* batches take twice what was thought */
    cr_expect_float_eq((double)admission_drain_ns(&a, &m, 2), 12e9, 0.5e9);
}

/* A job of 32 tokens that found `backlog_ns` and had `left_ns`. */
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

Test(admission, limits_are_cut_once_and_rise)
{
    static admission a;
    model m = {.name = "m", .index = 0, .weight = 1};
    const uint64_t ms = 1000000;
    admission_init(&a, 1, NULL);
    const _Atomic uint32_t *limit = &a.limits[0][0][0][5].value;
    uint32_t first = ADMISSION_FIRST;
    cr_expect_eq(*limit, 0, "what no request uses is not touched: pages that stay out of memory");
    for (int i = 0; i < 50; i++) /* all admitted before the first of them was found late */
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

Test(admission, what_a_rejection_tells)
{
    const uint64_t ms = 1000000;
    admission_estimate e = {
        .is_known = true, .backlog_ns = 20 * ms, .wait_ns = 40 * ms, .run_ns = 5 * ms};
    cr_expect_not(admission_is_hopeless(&e, 100 * ms, 145 * ms));
    cr_expect(admission_is_hopeless(&e, 100 * ms, 144 * ms));
    cr_expect_not(admission_is_sure(&e, 100 * ms, 125 * ms));
    cr_expect(admission_is_sure(&e, 100 * ms, 124 * ms));
    e.backlog_ns = 60 * ms; /* other work passed it */
    cr_expect_eq(admission_expected_wait_ns(&e), 40 * ms);
}

Test(admission, queues_are_shared_by_weight)
{
    static admission a;
    static const uint32_t weights[] = {1, 3, 100};
    admission_init(&a, 3, weights);
    cr_expect_eq(admission_share(&a, 0, 1040), 10);
    cr_expect_eq(admission_share(&a, 1, 1040), 30);
    cr_expect_eq(admission_share(&a, 2, 1000000000), 961538461);
    admission_init(&a, 1, NULL);
    cr_expect_eq(admission_share(&a, 0, 7), 7, "no shares where there is one tenant");
}

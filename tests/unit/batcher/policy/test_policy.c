#include <criterion/criterion.h>

#include "batcher/policy/policy.h"

/* Buckets {1,2,4} x {16,64}, all ready; index = sequence * 3 + batch. */
static void make_table(bucket_table *t)
{
    memset(t, 0, sizeof *t);
    t->sequence_count = 2;
    t->batch_count = 3;
    t->sequences[0] = 16;
    t->sequences[1] = 64;
    for (int i = 0; i < 3; i++)
        t->batches[i] = 1 << i;
    memset(t->index, -1, sizeof t->index);
    for (int s = 0; s < 2; s++)
        for (int b = 0; b < 3; b++)
            t->index[s * MODEL_AXIS_MAX + b] = (int16_t)(s * 3 + b);
    t->has_any = true;
}

static policy_decision decide(const policy_queue *queues, int queue_count,
                              const policy_model *models, int model_count, uint64_t now_ns)
{
    policy_snapshot s = {.now_ns = now_ns,
                         .queues = queues,
                         .queue_count = queue_count,
                         .models = models,
                         .model_count = model_count};
    policy_decision d;
    policy_decide(&s, &d);
    return d;
}

Test(policy, nothing_waits)
{
    cr_assert_eq(decide(NULL, 0, NULL, 0, 5).action, POLICY_NOTHING);
}

/* A backlog of 100 ms in rows of 1 ms with a fixed cost of 0.16 ms: batches of sqrt(0.16 * 100) = 4
 * ms. */
Test(policy, ragged_batches_are_sized_by_cost)
{
    static bucket_table t;
    make_table(&t);
    t.is_ragged = true;
    device d = {.name = "cpu", .kind = "cpu"};
    device *devices[] = {&d};
    latency *l = latency_create(devices, 1);
    for (int i = 0; i < 200; i++) {
        int64_t rows = 1 + i % 8;
        latency_observe(l, 0, -1, (latency_work){rows, rows * 16, rows * 256},
                        (uint64_t)(160000 + 1000000 * rows), 1);
    }
    policy_model m = {.table = &t, .latency = l, .is_eligible = true, .rows_max = 64};
    policy_queue q = {
        .rows = 100, .jobs = 100, .deadline_ns = UINT64_MAX, .implied_deadline_ns = 1000000000};
    m.rows_queued = 100;
    policy_decision one = decide(&q, 1, &m, 1, 100);
    cr_expect_float_eq(one.budget_ns, 4e6, 2e5);
    m.rows_queued = 400;
    cr_expect_float_eq(decide(&q, 1, &m, 1, 100).budget_ns, 8e6, 4e5);
    m.rows_queued = 1; /* none waits behind: until the fixed cost is a sixteenth */
    cr_expect_float_eq(decide(&q, 1, &m, 1, 100).budget_ns, 15 * 160000, 1e5);
    m.time_max_ns = 2000000; /* the objective's bound */
    m.rows_queued = 400;
    cr_expect_leq(decide(&q, 1, &m, 1, 100).budget_ns, 2e6);
    latency_destroy(l);
}

Test(policy, oldest_head_first_over_models_and_lengths)
{
    static bucket_table t;
    make_table(&t);
    policy_model models[2] = {{.table = &t, .is_eligible = true},
                              {.table = &t, .is_eligible = true}};
    policy_queue q[3] = {
        {.model = 0, .sequence = 1, .rows = 4, .oldest_ns = 30, .deadline_ns = UINT64_MAX},
        {.model = 1, .sequence = 0, .rows = 1, .oldest_ns = 10, .deadline_ns = UINT64_MAX},
        {.model = 0, .sequence = 0, .rows = 9, .oldest_ns = 20, .deadline_ns = UINT64_MAX}};
    policy_decision d = decide(q, 3, models, 2, 100);
    cr_assert_eq(d.action, POLICY_RUN);
    cr_assert_eq(d.queue, 1);
    cr_assert_eq(d.bucket, 0);
    cr_assert_eq(d.rows, 1);
    models[1].is_eligible = false;
    d = decide(q, 3, models, 2, 100);
    cr_assert_eq(d.queue, 2);
    cr_assert_eq(d.rows, 4, "no more than the largest bucket");
}

Test(policy, shorter_rows_fill_up_but_never_enlarge)
{
    static bucket_table t;
    make_table(&t);
    policy_model m = {.table = &t, .is_eligible = true};
    policy_queue q[2] = {
        {.model = 0, .sequence = 1, .rows = 3, .oldest_ns = 1, .deadline_ns = UINT64_MAX},
        {.model = 0, .sequence = 0, .rows = 9, .oldest_ns = 2, .deadline_ns = UINT64_MAX}};
    policy_decision d = decide(q, 2, &m, 1, 10);
    cr_assert_eq(d.bucket, 5);
    cr_assert_eq(d.rows, 3);
    cr_assert_eq(d.backfill_rows, 1);
    q[0].rows = 2;
    d = decide(q, 2, &m, 1, 10);
    cr_assert_eq(d.bucket, 4, "two rows fill their bucket");
    cr_assert_eq(d.backfill_rows, 0);
    /* Longer rows never backfill a shorter bucket. */
    q[0].rows = 3;
    q[0].oldest_ns = 3;
    q[1].rows = 3;
    d = decide(q, 2, &m, 1, 10);
    cr_assert_eq(d.queue, 1);
    cr_assert_eq(d.backfill_rows, 0);
}

Test(policy, waits_for_more_requests_only_while_not_full_and_not_too_long)
{
    static bucket_table t;
    make_table(&t);
    policy_model m = {.table = &t, .is_eligible = true, .queue_delay_ns = 50};
    policy_queue q = {
        .model = 0, .sequence = 0, .rows = 3, .oldest_ns = 100, .deadline_ns = UINT64_MAX};
    policy_decision d = decide(&q, 1, &m, 1, 120);
    cr_assert_eq(d.action, POLICY_WAIT);
    cr_assert_eq(d.until_ns, 150);
    cr_assert_eq(decide(&q, 1, &m, 1, 150).action, POLICY_RUN);
    q.rows = 4;
    cr_assert_eq(decide(&q, 1, &m, 1, 120).action, POLICY_RUN, "full");
    q.rows = 3;
    q.deadline_ns = 140;
    cr_assert_eq(decide(&q, 1, &m, 1, 120).action, POLICY_RUN, "a deadline would pass");
}

Test(policy, one_that_waits_does_not_hold_up_another)
{
    static bucket_table t;
    make_table(&t);
    policy_model m[2] = {{.table = &t, .is_eligible = true, .queue_delay_ns = 1000},
                         {.table = &t, .is_eligible = true}};
    policy_queue q[2] = {
        {.model = 0, .sequence = 0, .rows = 1, .oldest_ns = 100, .deadline_ns = UINT64_MAX},
        {.model = 1, .sequence = 0, .rows = 1, .oldest_ns = 100, .deadline_ns = UINT64_MAX}};
    policy_decision d = decide(q, 2, m, 2, 200);
    cr_assert_eq(d.action, POLICY_RUN);
    cr_assert_eq(d.queue, 1);
}

Test(bucket, smallest_that_holds_then_larger_sequence)
{
    static bucket_table t;
    make_table(&t);
    cr_assert_eq(bucket_find_sequence(&t, 16), 0);
    cr_assert_eq(bucket_find_sequence(&t, 17), 1);
    cr_assert_eq(bucket_find_sequence(&t, 65), -1);
    cr_assert_eq(bucket_choose(&t, 0, 3), 2);
    cr_assert_eq(bucket_choose(&t, 0, 9), 2);
    t.index[1] = -1; /* {2, 16} is not ready */
    cr_assert_eq(bucket_choose(&t, 0, 2), 2);
    t.index[0] = t.index[2] = -1;
    cr_assert_eq(bucket_choose(&t, 0, 2), 4);
    cr_assert_eq(bucket_rows_max(&t, 0), 4);
    memset(t.index, -1, sizeof t.index);
    cr_assert_eq(bucket_choose(&t, 0, 1), -1);
    cr_assert_eq(bucket_rows_max(&t, 0), 0);
}

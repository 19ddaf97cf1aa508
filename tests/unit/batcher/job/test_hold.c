#include <criterion/criterion.h>
#include <signal.h>

#include "batcher/job/hold.h"

static backlog waiting;
static model m = {.name = "m", .index = 3, .weight = 2};
static hold h;

static bool acquire(int64_t rows, uint64_t cost_ns, int64_t rows_max)
{
    int64_t before;
    return hold_acquire(&waiting, &h, &m, (tenant_class){1, 2}, rows, cost_ns,
                        (hold_limits){rows_max, rows_max}, &before);
}

static void expect_backlog(int64_t rows, int64_t cost_ns)
{
    cr_expect_eq(backlog_rows(&waiting, &m), rows);
    cr_expect_eq(waiting.model_ns[3], cost_ns);
    cr_expect_eq(waiting.tenant_ns[1], cost_ns);
    cr_expect_eq(waiting.class_ns[1][2], cost_ns);
}

/* 7 rows of 100 ns: no part is a whole number, and nothing may be left over. */
Test(hold, parts_sum_to_the_whole)
{
    cr_assert(acquire(7, 100, 10));
    expect_backlog(7, 100);
    cr_expect_eq(waiting.model_weights[3], 2);
    uint64_t released_ns = hold_release(&waiting, &h, 3);
    cr_expect_eq(released_ns, 42);
    expect_backlog(4, 58);
    released_ns += hold_release(&waiting, &h, 1);
    released_ns += hold_release(&waiting, &h, 3);
    cr_expect_eq(released_ns, 100);
    expect_backlog(0, 0);
    cr_expect(h.rows == 0 && h.cost_ns == 0);
}

Test(hold, large_costs_do_not_overflow)
{
    const uint64_t cost_ns = UINT64_C(1) << 62;
    cr_assert(acquire(1000, cost_ns, 1000));
    cr_expect_eq(hold_release(&waiting, &h, 999) + hold_release(&waiting, &h, 1), cost_ns);
    expect_backlog(0, 0);
}

Test(hold, the_ceiling_is_exact_and_a_refusal_holds_nothing)
{
    hold first = {0};
    int64_t before;
    cr_assert(hold_acquire(&waiting, &first, &m, (tenant_class){0, 0}, 6, 60, (hold_limits){10, 10},
                           &before));
    cr_expect_eq(before, 0);
    cr_expect_not(hold_acquire(&waiting, &h, &m, (tenant_class){1, 2}, 5, 50, (hold_limits){10, 10},
                               &before));
    cr_expect_eq(before, 6);
    cr_expect(h.rows == 0 && h.cost_ns == 0);
    cr_expect_eq(backlog_rows(&waiting, &m), 6);
    cr_expect_eq(waiting.model_ns[3], 60);
    cr_expect(hold_acquire(&waiting, &h, &m, (tenant_class){1, 2}, 4, 40, (hold_limits){10, 10},
                           &before));
    cr_expect_eq(backlog_rows(&waiting, &m), 10);
}

/* One tenant fills the queue of 10; the other has 4 of its own, and no more than 10 are shared. */
Test(hold, a_share_is_there_when_the_queue_is_full)
{
    enum { CROWD, QUIET };
    static const hold_limits crowd = {10, 6}, quiet = {10, 4};
    hold of_crowd[2] = {0}, of_quiet[4] = {0};
    int64_t before;
    cr_assert(
        hold_acquire(&waiting, &of_crowd[0], &m, (tenant_class){CROWD, 0}, 10, 1, crowd, &before));
    cr_expect_not(
        hold_acquire(&waiting, &of_crowd[1], &m, (tenant_class){CROWD, 0}, 1, 1, crowd, &before));
    cr_expect_eq(before, 10);
    for (int i = 0; i < 4; i++)
        cr_expect(hold_acquire(&waiting, &of_quiet[i], &m, (tenant_class){QUIET, i}, 1, 1, quiet,
                               &before));
    cr_expect_not(hold_acquire(&waiting, &h, &m, (tenant_class){QUIET, 0}, 1, 1, quiet, &before));
    cr_expect_eq(backlog_rows(&waiting, &m), 14);
    hold_release(&waiting, &of_crowd[0], 5); /* 9 wait: one place for anybody */
    cr_expect(hold_acquire(&waiting, &h, &m, (tenant_class){QUIET, 0}, 1, 1, quiet, &before));
    cr_expect_not(
        hold_acquire(&waiting, &of_crowd[1], &m, (tenant_class){CROWD, 0}, 2, 1, crowd, &before));
    cr_expect(
        hold_acquire(&waiting, &of_crowd[1], &m, (tenant_class){CROWD, 0}, 1, 1, crowd, &before));
    hold_release(&waiting, &of_crowd[0], 5);
    hold_release(&waiting, &of_crowd[1], 1);
    hold_release(&waiting, &h, 1);
    for (int i = 0; i < 4; i++)
        hold_release(&waiting, &of_quiet[i], 1);
    expect_backlog(0, 0);
    cr_expect(waiting.tenant_rows[3][CROWD] == 0 && waiting.tenant_rows[3][QUIET] == 0);
}

/* Else a tenant of little weight could never ask for so many rows while others fill the queue. */
Test(hold, a_share_has_room_for_one_job_of_any_size)
{
    static const hold_limits limits = {10, 2};
    hold crowd = {0}, more = {0};
    int64_t before;
    cr_assert(hold_acquire(&waiting, &crowd, &m, (tenant_class){0, 0}, 10, 1, limits, &before));
    cr_expect(hold_acquire(&waiting, &h, &m, (tenant_class){1, 0}, 9, 1, limits, &before));
    cr_expect_not(hold_acquire(&waiting, &more, &m, (tenant_class){1, 0}, 1, 1, limits, &before));
}

Test(hold, is_never_released_twice, .signal = SIGABRT)
{
    cr_assert(acquire(2, 10, 10));
    hold_release(&waiting, &h, 2);
    hold_release(&waiting, &h, 1);
}

Test(hold, is_never_acquired_twice, .signal = SIGABRT)
{
    cr_assert(acquire(2, 10, 10));
    acquire(1, 10, 10);
}

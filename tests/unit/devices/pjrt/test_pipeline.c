#include <criterion/criterion.h>

#include "devices/pjrt/pipeline.h"

/* A device that takes `compute` for each batch and `copy` each way, given `depth` batches at a time
 * by slots that need `turn` between two of them. Runs a window, and returns what it wants. */
typedef struct simulation {
    pjrt_pipeline p;
    uint64_t compute, copy, turn;
    uint64_t free_ns;    /* when the device is free */
    uint64_t slot_ns[8]; /* when the slot takes its next batch */
} simulation;

static int run_window(simulation *s, bool is_full)
{
    int wanted = s->p.depth;
    for (int i = 0; i < PJRT_PIPELINE_WINDOW; i++) {
        int slot = 0;
        for (int k = 1; k < s->p.depth; k++)
            if (s->slot_ns[k] < s->slot_ns[slot])
                slot = k;
        pjrt_times t = {.submitted_ns = s->slot_ns[slot]};
        t.uploaded_ns = t.submitted_ns + s->copy;
        uint64_t begin = t.uploaded_ns > s->free_ns ? t.uploaded_ns : s->free_ns;
        t.executed_ns = s->free_ns = begin + s->compute;
        t.downloaded_ns = t.executed_ns + s->copy;
        s->slot_ns[slot] = t.downloaded_ns + s->turn;
        wanted = pjrt_pipeline_observe(&s->p, &t, is_full);
    }
    return wanted;
}

/* As the device does it, with memory for all. Returns the depth after so many windows. */
static int settle(simulation *s, int windows)
{
    for (int i = 0; i < windows; i++) {
        int wanted = run_window(s, true);
        if (wanted != s->p.depth)
            pjrt_pipeline_move(&s->p, wanted);
        for (int k = 0; k < 8; k++) /* a new slot begins now */
            if (s->slot_ns[k] < s->free_ns)
                s->slot_ns[k] = s->free_ns;
    }
    return s->p.depth;
}

static simulation make(uint64_t compute, uint64_t copy, uint64_t turn)
{
    simulation s = {.compute = compute, .copy = copy, .turn = turn};
    pjrt_pipeline_init(&s.p, 2, 4);
    return s;
}

Test(pipeline, two_are_enough_for_short_copies)
{
    simulation s = make(1000, 200, 100);
    cr_expect_eq(settle(&s, 20), 2);
    cr_expect_lt(s.p.idle_fraction, 0.02);
}

Test(pipeline, copies_of_half_an_execution_take_a_third_batch)
{
    simulation s = make(1000, 500, 100); /* 2100 for each slot, 2000 for two executions */
    cr_expect_eq(settle(&s, 20), 3);
    cr_expect_lt(s.p.idle_fraction, 0.02);
}

Test(pipeline, long_copies_take_as_many_as_there_are)
{
    simulation s = make(1000, 1500, 100);
    cr_expect_eq(settle(&s, 20), 4);
}

Test(pipeline, fewer_when_copies_become_short)
{
    simulation s = make(1000, 1000, 100);
    cr_expect_eq(settle(&s, 10), 4);
    s.copy = 100;
    cr_expect_eq(settle(&s, 40), 2);
    s.copy = 1000;
    cr_expect_eq(settle(&s, 10), 4);
}

Test(pipeline, a_step_that_does_not_help_is_taken_back_for_a_while)
{
    simulation s = make(1000, 500, 100);
    cr_assert_eq(run_window(&s, true), 3);
    pjrt_pipeline_move(&s.p, 3);
    s.compute = 10; /* the idle time stays, whatever the depth */
    s.copy = 1000;
    cr_assert_eq(run_window(&s, true), 2);
    pjrt_pipeline_move(&s.p, 2);
    for (int i = 0; i < 32; i++)
        cr_assert_eq(run_window(&s, true), 2, "window %d", i);
    cr_expect_eq(run_window(&s, true), 3);
}

Test(pipeline, without_memory_it_asks_later)
{
    simulation s = make(1000, 500, 200);
    cr_assert_eq(run_window(&s, true), 3);
    pjrt_pipeline_refuse(&s.p);
    for (int i = 0; i < 32; i++)
        cr_assert_eq(run_window(&s, true), 2, "window %d", i);
    cr_expect_eq(run_window(&s, true), 3);
}

Test(pipeline, a_light_load_decides_nothing_and_is_counted)
{
    simulation s = make(1000, 5000, 100);
    for (int i = 0; i < 10; i++)
        cr_expect_eq(run_window(&s, false), 2);
    cr_expect_eq(s.p.computing_ns, 10u * PJRT_PIPELINE_WINDOW * 1000);
    cr_expect_eq(s.p.transfer_ns, 10u * PJRT_PIPELINE_WINDOW * 10000);
    cr_expect_eq(s.p.idle_fraction, 0);
}

Test(pipeline, executions_that_end_in_another_order_count_once)
{
    simulation s = make(0, 0, 0);
    pjrt_times first = {0, 10, 100, 110}, second = {0, 20, 60, 120};
    cr_expect_eq(pjrt_pipeline_observe(&s.p, &first, true), 2);
    cr_expect_eq(pjrt_pipeline_observe(&s.p, &second, true), 2);
    cr_expect_eq(s.p.computing_ns, 90);
}

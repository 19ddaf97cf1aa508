#include <criterion/criterion.h>
#include <signal.h>

#include "server/request/life.h"

#define WORK LIFE_USED_BY_WORK
#define STREAM LIFE_USED_BY_STREAM
enum { NO = -1, ENDS = LIFE_ANSWERED };

/* What each event does in each state while both the work and the stream use the request: the state
 * after it, or NO. Columns: answer, refuse, deadline, client gone, shutdown, parse, admit, submit,
 * work done, stream closed. */
static const int expected[LIFE_STATE_COUNT][LIFE_EVENT_COUNT] = {
    [LIFE_RECEIVED] = {ENDS, ENDS, ENDS, ENDS, ENDS, LIFE_PARSED, NO, NO, NO, NO},
    [LIFE_PARSED] = {NO, ENDS, ENDS, NO, NO, NO, LIFE_ADMITTED, NO, NO, NO},
    [LIFE_ADMITTED] = {NO, NO, NO, NO, NO, NO, NO, LIFE_QUEUED, NO, NO},
    [LIFE_QUEUED] = {ENDS, ENDS, ENDS, ENDS, ENDS, NO, NO, NO, NO, NO},
    [LIFE_ANSWERED] = {NO, NO, NO, NO, NO, NO, NO, NO, LIFE_ANSWERED, LIFE_ANSWERED},
    [LIFE_RELEASED] = {NO, NO, NO, NO, NO, NO, NO, NO, NO, NO},
};

Test(life, every_event_in_every_state)
{
    for (int state = 0; state < LIFE_STATE_COUNT; state++) {
        for (int event = 0; event < LIFE_EVENT_COUNT; event++) {
            life l = {.state = (life_state)state, .users = WORK | STREAM};
            const char *of = life_state_name(l.state), *what = life_event_name((life_event)event);
            bool is_allowed = life_allows(&l, (life_event)event);
            int want = expected[state][event];
            cr_expect_eq(is_allowed, want != NO, "%s, %s", of, what);
            if (!is_allowed || want == NO)
                continue;
            life_state next = life_advance(&l, (life_event)event, 1);
            cr_expect_eq((int)next, want, "%s, %s", of, what);
            unsigned kept = event == LIFE_WORK_DONE       ? STREAM
                            : event == LIFE_STREAM_CLOSED ? WORK
                                                          : WORK | STREAM;
            cr_expect_eq(l.users, kept);
        }
    }
}

/* A request that has ended is released when its last user has gone, in either order; nobody goes
 * twice. */
Test(life, the_last_user_releases_it)
{
    static const struct {
        unsigned users;
        life_event event;
        int next;
    } cases[] = {
        {WORK | STREAM, LIFE_WORK_DONE, LIFE_ANSWERED},
        {WORK | STREAM, LIFE_STREAM_CLOSED, LIFE_ANSWERED},
        {WORK, LIFE_WORK_DONE, LIFE_RELEASED},
        {WORK, LIFE_STREAM_CLOSED, NO},
        {STREAM, LIFE_WORK_DONE, NO},
        {STREAM, LIFE_STREAM_CLOSED, LIFE_RELEASED},
        {0, LIFE_WORK_DONE, NO},
        {0, LIFE_STREAM_CLOSED, NO},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        life l = {.state = LIFE_ANSWERED, .users = cases[i].users};
        bool is_allowed = life_allows(&l, cases[i].event);
        cr_expect_eq(is_allowed, cases[i].next != NO, "case %zu", i);
        if (is_allowed)
            cr_expect_eq((int)life_advance(&l, cases[i].event, 1), cases[i].next, "case %zu", i);
    }
}

Test(life, an_inference_request_from_arrival_to_release)
{
    static const struct {
        life_event event;
        life_state next;
    } steps[] = {{LIFE_PARSE, LIFE_PARSED},       {LIFE_ADMIT, LIFE_ADMITTED},
                 {LIFE_SUBMIT, LIFE_QUEUED},      {LIFE_ANSWER, LIFE_ANSWERED},
                 {LIFE_WORK_DONE, LIFE_ANSWERED}, {LIFE_STREAM_CLOSED, LIFE_RELEASED}};
    life l;
    life_begin(&l, 10);
    cr_assert(l.state == LIFE_RECEIVED && l.since_ns[LIFE_RECEIVED] == 10);
    for (uint64_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        cr_assert_eq(life_advance(&l, steps[i].event, 20 + i), steps[i].next);
    cr_assert_eq(l.reason, LIFE_ANSWER);
    cr_assert_eq(l.since_ns[LIFE_QUEUED], 22);
    cr_assert_eq(l.since_ns[LIFE_ANSWERED], 23, "the time of its end, not of what came later");
    cr_assert_eq(l.since_ns[LIFE_RELEASED], 25);
}

Test(life, an_event_that_is_not_allowed_asserts, .signal = SIGABRT)
{
    life l;
    life_begin(&l, 1);
    life_advance(&l, LIFE_ANSWER, 2);
    life_advance(&l, LIFE_DEADLINE, 3); /* it has its response */
}

#include <criterion/criterion.h>

#include "server/watchdog/stack.h"
#include "server/watchdog/watchdog.h"

#define MS 1000000ull

static watched loop;
static int woken;
static uint64_t now_ns;

static void wake(void *context)
{
    cr_assert_eq(context, &woken);
    woken++;
}

static void begin(void)
{
    stack_install();
    loop = (watched){.name = "loop 0", .thread = pthread_self(), .wake = wake, .context = &woken};
    now_ns = 1000 * MS;
}

TestSuite(watchdog, .init = begin);

static void check_after(uint64_t ms)
{
    now_ns += ms * MS;
    watchdog_check(&loop, now_ns);
}

Test(watchdog, a_loop_that_turns_is_left_alone)
{
    for (int i = 0; i < 20; i++) {
        atomic_fetch_add(&loop.turns, 1 + i % 3);
        check_after(500);
    }
    cr_assert(woken == 0 && atomic_load(&loop.stuck_ns) == 0);
}

Test(watchdog, a_loop_that_sleeps_is_asked_and_turns)
{
    check_after(500);
    for (int i = 0; i < 20; i++) {
        cr_assert_eq(woken, 1 + i);
        atomic_fetch_add(&loop.turns, 1);
        check_after(500);
        cr_assert_eq(woken, 1 + i, "it has turned");
        check_after(500);
    }
    cr_assert(atomic_load(&loop.stuck_ns) == 0 && atomic_load(&loop.stalls) == 0);
}

Test(watchdog, a_loop_that_does_not_turn_is_stuck_after_a_second)
{
    check_after(500);
    check_after(999);
    cr_assert(atomic_load(&loop.stuck_ns) == 0 && atomic_load(&loop.stalls) == 0);
    check_after(1);
    cr_assert(atomic_load(&loop.stuck_ns) == 1000 * MS && atomic_load(&loop.stalls) == 1);
    check_after(5000);
    cr_assert(atomic_load(&loop.stuck_ns) == 6000 * MS && atomic_load(&loop.stalls) == 1);
    cr_assert_eq(woken, 1);
    atomic_fetch_add(&loop.turns, 1);
    check_after(500);
    cr_assert_eq(atomic_load(&loop.stuck_ns), 0);
    check_after(500);
    check_after(1000);
    cr_assert_eq(atomic_load(&loop.stalls), 2);
}

Test(watchdog, it_says_so_after_one_two_four_seconds)
{
    uint64_t said[4] = {0};
    check_after(500);
    for (int i = 0, count = 0; i < 16 && count < 4; i++) {
        check_after(500);
        if (count == 0 || loop.report_ns > 2 * said[count - 1])
            if (loop.is_stuck)
                said[count++] = loop.report_ns / 2;
    }
    cr_assert(said[0] == 1000 * MS && said[1] == 2000 * MS && said[2] == 4000 * MS &&
              said[3] == 8000 * MS);
}

/* The thread of a loop, as the watchdog's own thread sees it. */
static void *turn_until_told(void *context)
{
    watched *w = context;
    while (atomic_load(&w->stalls) == 0)
        ;
    while (atomic_load(&w->stuck_ns) > 0)
        atomic_fetch_add(&w->turns, 1);
    return NULL;
}

Test(watchdog, its_thread_sees_a_loop_that_spins, .timeout = 300)
{
    watched *loops[] = {&loop};
    watchdog *w;
    cr_assert_eq(pthread_create(&loop.thread, NULL, turn_until_told, &loop), 0);
    cr_assert_eq(watchdog_create(loops, 1, &w), STATUS_OK);
    cr_assert_eq(pthread_join(loop.thread, NULL), 0);
    watchdog_destroy(w);
    cr_assert(atomic_load(&loop.stalls) >= 1 && woken >= 1);
}

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "devices/cpu/run_memory.h"

static _Atomic size_t taken;

static bool take(void *context, size_t bytes)
{
    (void)context;
    if (taken + bytes > 100)
        return false;
    taken += bytes;
    return true;
}

static void give(void *context, size_t bytes)
{
    (void)context;
    taken -= bytes;
}

static const device_memory hundred = {.bytes_max = 100, .take = take, .give = give};

typedef struct waiter {
    run_counter *counter;
    _Atomic bool is_done;
} waiter;

static void *wait_for_room(void *argument)
{
    waiter *w = argument;
    run_memory m = {0};
    cr_assert_eq(run_memory_count(&m, w->counter, 60, NULL), STATUS_OK);
    w->is_done = true;
    run_memory_free(&m, w->counter);
    return NULL;
}

Test(run_memory, waits_for_other_executions)
{
    run_counter c;
    run_memory first = {0};
    pthread_t thread;
    run_counter_init(&c, &hundred);
    waiter w = {.counter = &c};
    cr_assert_eq(run_memory_count(&first, &c, 60, NULL), STATUS_OK);
    cr_assert_eq(pthread_create(&thread, NULL, wait_for_room, &w), 0);
    usleep(20000);
    cr_assert(!w.is_done);
    run_memory_free(&first, &c);
    pthread_join(thread, NULL);
    cr_assert(w.is_done);
    cr_assert_eq(taken, 0);
    run_counter_dispose(&c);
}

Test(run_memory, refuses_where_others_hold_the_room)
{
    run_counter c;
    run_memory m = {0};
    run_counter_init(&c, &hundred);
    taken = 50; /* no execution's: nobody says when it is given back */
    cr_assert_eq(run_memory_count(&m, &c, 60, NULL), STATUS_OUT_OF_MEMORY);
    cr_assert(strstr(status_message(), "room"));
    cr_assert_eq(run_memory_count(&m, &c, 50, NULL), STATUS_OK);
    run_memory_free(&m, &c);
    cr_assert_eq(taken, 50);
    cr_assert_eq(run_counter_bytes_max(&c, 1000), 100);
    cr_assert_eq(run_counter_bytes_max(&c, 10), 10);
    run_counter_dispose(&c);
}

Test(run_memory, nobody_counts)
{
    run_counter c;
    run_memory m = {0};
    run_counter_init(&c, NULL);
    cr_assert_eq(run_memory_count(&m, &c, SIZE_MAX / 2, NULL), STATUS_OK);
    cr_assert_eq(run_memory_allocate(&m, (size_t)4 << 20), STATUS_OK);
    memset(m.workspace, 1, m.bytes);
    run_memory_free(&m, &c);
    cr_assert_eq(run_counter_bytes_max(&c, 1000), 1000);
    run_counter_dispose(&c);
}

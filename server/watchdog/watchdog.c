#include "server/watchdog/watchdog.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/watchdog/stack.h"

#define CHECK_NS 500000000ull
#define STACK_BYTES 1600 /* of a log line */

struct watchdog {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_ending;
    int count;
    watched *loops[];
};

static void report(watched *w, uint64_t age_ns)
{
    char stack[STACK_BYTES];
    bool has_stack = stack_describe(w->thread, stack, sizeof stack);
    log_error("server", "%s has been stuck for %.1f s; it is in %s", w->name, (double)age_ns / 1e9,
              has_stack ? stack : "a place where signals do not reach it");
}

void watchdog_check(watched *w, uint64_t now_ns)
{
    uint64_t turns = atomic_load_explicit(&w->turns, memory_order_relaxed);
    if (turns != w->turns_seen) {
        if (w->is_stuck)
            log_warning("server", "%s turns again after %.1f s", w->name,
                        (double)(now_ns - w->asked_ns) / 1e9);
        w->turns_seen = turns;
        w->asked_ns = 0;
        w->is_stuck = false;
        atomic_store_explicit(&w->stuck_ns, 0, memory_order_relaxed);
        return;
    }
    if (w->asked_ns == 0) {
        w->asked_ns = now_ns;
        w->wake(w->context);
        return;
    }
    uint64_t age_ns = now_ns - w->asked_ns;
    if (age_ns < WATCHDOG_STUCK_NS)
        return;
    atomic_store_explicit(&w->stuck_ns, age_ns, memory_order_relaxed);
    if (!w->is_stuck) {
        w->is_stuck = true;
        w->report_ns = WATCHDOG_STUCK_NS;
        atomic_fetch_add_explicit(&w->stalls, 1, memory_order_relaxed);
    }
    if (age_ns >= w->report_ns) {
        w->report_ns = 2 * age_ns;
        report(w, age_ns);
    }
}

static void *run(void *context)
{
    watchdog *w = context;
    uint64_t before_ns = clock_now_ns();
    pthread_mutex_lock(&w->lock);
    while (!w->is_ending) {
        uint64_t at_ns = clock_wall_ns() + CHECK_NS;
        struct timespec at = {.tv_sec = (time_t)(at_ns / 1000000000),
                              .tv_nsec = (long)(at_ns % 1000000000)};
        pthread_cond_timedwait(&w->changed, &w->lock, &at);
        uint64_t now_ns = clock_now_ns();
        /* This thread did not run, either: the process was stopped. It says nothing of the loops.
         */
        bool was_stopped = now_ns - before_ns > 4 * CHECK_NS;
        before_ns = now_ns;
        for (int i = 0; i < w->count && !w->is_ending; i++) {
            if (was_stopped)
                w->loops[i]->asked_ns = 0;
            watchdog_check(w->loops[i], now_ns);
        }
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

status watchdog_create(watched *const *loops, int count, watchdog **out)
{
    watchdog *w = calloc(1, sizeof *w + (size_t)count * sizeof(watched *));
    if (w == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the watchdog");
    memcpy(w->loops, loops, (size_t)count * sizeof(watched *));
    w->count = count;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    stack_install();
    if (pthread_create(&w->thread, NULL, run, w) != 0) {
        free(w);
        return status_fail(STATUS_IO, "no thread for the watchdog");
    }
    *out = w;
    return STATUS_OK;
}

void watchdog_destroy(watchdog *w)
{
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->lock);
    w->is_ending = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

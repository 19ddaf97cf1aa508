#ifndef SERVER_WATCHDOG_WATCHDOG_H
#define SERVER_WATCHDOG_WATCHDOG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* A thread that knows whether each event loop still turns. A loop that has not begun a turn since
 * the last check is asked to (it may only sleep); one that does not within a second is stuck: that
 * is logged, with its call stack, and told to whoever asks. */

#define WATCHDOG_STUCK_NS 1000000000ull

/* A loop, as the watchdog sees it. The first four are its owner's, set before it is watched. */
typedef struct watched {
    const char *name; /* "loop 0" */
    pthread_t thread;
    void (*wake)(void *context); /* makes it begin a turn if it sleeps; any thread */
    void *context;
    _Atomic uint64_t turns; /* begun so far: the loop counts */

    /* Written by the watchdog, read by anybody. */
    _Atomic uint64_t stuck_ns; /* for how long it has not begun a turn that it was asked for */
    _Atomic uint64_t stalls;   /* times that it was stuck */

    /* The watchdog's own. */
    uint64_t turns_seen;
    uint64_t asked_ns;  /* 0: it has not been asked */
    uint64_t report_ns; /* when to say next that it is stuck: after 1 s, 2 s, 4 s, ... */
    bool is_stuck;
} watched;

/* One check of it. The watchdog's thread does this every half a second; tests do it themselves. */
void watchdog_check(watched *w, uint64_t now_ns);

typedef struct watchdog watchdog;

/* Watches `count` loops, borrowed until watchdog_destroy(). STATUS_OUT_OF_MEMORY, STATUS_IO: no
 * thread. Signals must be blocked in the calling thread. */
status watchdog_create(watched *const *loops, int count, watchdog **out) MUST_CHECK;
/* NULL is allowed. */
void watchdog_destroy(watchdog *w);

#endif

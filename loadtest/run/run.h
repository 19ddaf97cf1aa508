#ifndef LOADTEST_RUN_RUN_H
#define LOADTEST_RUN_RUN_H

#include "loadtest/run/worker.h"

#include <signal.h>

/* One run: threads started, watched, joined, their results merged. */
typedef struct run_plan {
    worker_plan worker; /* of all threads together; index and count are filled in */
    unsigned threads;
    bool realtime;      /* realtime scheduling of the threads, if allowed */
    result_setup setup; /* copied into the result, with the negotiated protocol */
    const result_slo *slo;
    size_t slo_count;
    const volatile sig_atomic_t *stop; /* a signal handler sets it to stop the run; or NULL */
    bool stop_when_lost;               /* stop as soon as the SLO cannot be met any more */
    int live;                          /* -1: no live view; 0: a line each second; 1: a terminal */
    const char *label;                 /* of the live view; may be NULL */
} run_plan;

/* Blocks until the run is over. `out` must be zeroed; free it with result_dispose. A run that was
 * stopped keeps what was measured: `aborted` of the result. */
status run_execute(const run_plan *plan, result *out) MUST_CHECK;

#endif

#ifndef LOADTEST_RUN_LIVE_H
#define LOADTEST_RUN_LIVE_H

#include "loadtest/run/worker.h"

/* The live view on standard error: a panel on a terminal, else one line a second. */
typedef struct live {
    bool terminal, drawn;
    const char *label;
    uint64_t start_ns, warm_up_ns, duration_ns, last_ns;
    uint64_t sent, succeeded, failed; /* at the last tick */
    histogram seen;                   /* of all workers at the last tick */
    double history[60];               /* p99 of the last seconds, ms */
    unsigned history_count;
} live;

void live_begin(live *l, bool terminal, const char *label, uint64_t start_ns, uint64_t warm_up_ns,
                uint64_t duration_ns);
void live_tick(live *l, worker *const *workers, unsigned count, uint64_t now_ns);
void live_end(live *l);

#endif

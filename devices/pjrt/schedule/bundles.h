#ifndef DEVICES_PJRT_SCHEDULE_BUNDLES_H
#define DEVICES_PJRT_SCHEDULE_BUNDLES_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* The bundles of one function (most often a fusion) as libtpu writes them after scheduling. A core
 * issues one bundle a cycle; how often each is issued is found by running the scalar part:
 * counters, comparisons and branches. What a core knows only while it runs, such as an id that a
 * gather has read, is unknown: a branch that depends on it is not taken.
 *
 * bench/tpu/llo.py counts the same in Python, with the use of each unit. */

typedef struct bundles bundles;

/* Reads a *-final_bundles.txt. The caller destroys it. STATUS_CORRUPT, STATUS_OUT_OF_MEMORY. */
status bundles_parse(const char *text, size_t bytes, bundles **out) MUST_CHECK;
void bundles_destroy(bundles *b); /* accepts NULL */

/* Adds to `counts[n]` the branches that are n bundles before the end of a region behind them, n up
 * to BUNDLES_DELAY_MAX; 0: before none. Most branches of a program stand as far from it as bundles
 * still run behind a taken branch: its delay slots. */
#define BUNDLES_DELAY_MAX 63
void bundles_count_delays(const bundles *b, int counts[BUNDLES_DELAY_MAX + 1]);

typedef struct bundles_issued {
    int64_t bundles;          /* cycles, unless the core waits */
    int64_t products;         /* instructions among them that feed a matrix unit */
    int64_t unknown_branches; /* not taken, because nothing tells */
} bundles_issued;

/* One run with so many delay slots. STATUS_CORRUPT: it does not end, or branches twice at once. */
status bundles_run(bundles *b, int delay, bundles_issued *out) MUST_CHECK;

#endif

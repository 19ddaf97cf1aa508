#ifndef DEVICES_PJRT_SCHEDULE_DUMP_H
#define DEVICES_PJRT_SCHEDULE_DUMP_H

#include <stdint.h>

#include "base/status.h"

/* What libtpu writes while it compiles, and what stands in it: the cycles that a program's bundles
 * take. An estimate of the compiler's has a fixed cost for each fusion; this has none. Waiting for
 * memory, launch and transfers are in neither. */

typedef struct schedule_facts {
    int64_t cycles;    /* bundles issued, or what the matrix units need to take rows in, if more */
    int64_t hbm_bytes; /* that operands, results and asynchronous copies move */
    int64_t unknown_branches;
} schedule_facts;

/* Makes an empty folder and lets plugins that are loaded after this write there, by
 * LIBTPU_INIT_ARGS. Called once in a process, before threads. STATUS_IO. */
status schedule_dump_start(char folder[256]) MUST_CHECK;
/* Deletes what was written so far. */
void schedule_dump_discard(const char *folder);
/* Of the one program that has been compiled since, whose files this deletes.
 * STATUS_NOT_FOUND: the plugin has written nothing; STATUS_CORRUPT. */
status schedule_dump_read(const char *folder, schedule_facts *out) MUST_CHECK;
void schedule_dump_end(const char *folder);

#endif

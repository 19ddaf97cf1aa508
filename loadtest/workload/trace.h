#ifndef LOADTEST_WORKLOAD_TRACE_H
#define LOADTEST_WORKLOAD_TRACE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* A recorded load, to be replayed at its own times. Each line of the file is one request:
 *   - a number: seconds since any origin, optionally followed by a length (tokens);
 *   - a JSON object (an access log of Penstock, or of anything else): its time is the first of
 *     "offset_ms", "time_ms", "time", "timestamp", "ts", "@timestamp" (a number of seconds unless
 *     its name says ms, or ISO 8601), its length "tokens" or "length", its body "body";
 *   - a line of the common or combined log format; requests of the same second are spread over it.
 * Lines may be out of order; the last request comes at most DURATION_S_MAX after the first. GET
 * requests to an inference server's own pages are left out. */
typedef struct trace_entry {
    uint64_t offset_ns;
    uint32_t length; /* 0: not told */
    char *body;      /* owned; NULL: not told */
} trace_entry;

typedef struct trace {
    trace_entry *entries; /* by offset, the first at 0 */
    size_t count;
} trace;

/* `speed` 2 replays twice as fast. STATUS_INVALID_ARGUMENT names file and line. */
status trace_read(trace *t, const char *path, double speed) MUST_CHECK;
/* The same from text in memory, which is changed; `path` is for messages. */
status trace_parse(trace *t, char *text, const char *path, double speed) MUST_CHECK;
void trace_dispose(trace *t);

#endif

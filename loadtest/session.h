#ifndef LOADTEST_SESSION_H
#define LOADTEST_SESSION_H

#include <signal.h>

#include "loadtest/discover.h"
#include "loadtest/options.h"
#include "loadtest/report/report.h"
#include "loadtest/run/run.h"

/* One invocation of penstock-load: what the runs share and what they measured. A zeroed one with
 * parsed options begins it. Main thread only. */
typedef struct session {
    options options;
    target target;
    discovery discovery;
    trace trace;
    uint64_t *trace_ns;
    request_source source;
    request_head head;
    expect *expect;
    run_plan plan;
    result result; /* of the last run, or of the best run of a search */
    report report;
    bool is_url_invalid;
    const volatile sig_atomic_t *stop; /* set by a signal handler: no further run begins */
} session;

/* Resolves the URL, asks the server for metadata, generates the requests and plans connections and
 * threads. is_url_invalid tells wrong usage from a server that cannot be reached. */
status session_prepare(session *p) MUST_CHECK;
void session_dispose(session *p);

#endif

#ifndef LOADTEST_MEASURE_H
#define LOADTEST_MEASURE_H

#include "loadtest/session.h"

/* The runs of a prepared session. Each leaves the result to report in p->result, and those of a
 * search their points in p->report. Errors: those of run_execute(). */

/* One run as planned; replaces `*out`. */
status measure_once(session *p, result *out) MUST_CHECK;
/* --find-max: the highest rate that meets the SLO. STATUS_UNAVAILABLE: no request succeeds. */
status measure_find_max(session *p) MUST_CHECK;
/* --sweep: one run for each rate. */
status measure_sweep(session *p) MUST_CHECK;

#endif

#ifndef LOADTEST_COMBINE_H
#define LOADTEST_COMBINE_H

#include "loadtest/session.h"

/* Reports of earlier runs, read from the session's files. */

/* --merge: adds them up into p->result. STATUS_INVALID_ARGUMENT: they do not match; else the errors
 * of report_read(). */
status combine_merge(session *p) MUST_CHECK;
/* --compare: prints two side by side, and writes --html. */
status combine_compare(session *p) MUST_CHECK;

#endif

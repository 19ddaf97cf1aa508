#ifndef TESTS_PJRT_FAULT_H
#define TESTS_PJRT_FAULT_H

#include "devices/pjrt/plugin/abi.h"

/* Shared by the files of the fault plugin. Nobody else includes this. */

extern const pjrt_api *fault_inner; /* the plugin that does the work */

/* The environment's PENSTOCK_FAULT_`name`; NULL: not set, or empty. */
const char *fault_order(const char *name);
unsigned long long fault_number(const char *name); /* 0: not set */
pjrt_error *fault_error_make(pjrt_code code, const char *text);
/* Appends a line to the file that PENSTOCK_FAULT_`name` names, if it does. */
void fault_tell(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* simulated.c: a device whose copies and executions take the time that they are told to, without
 * keeping the caller. Changes the table if it is ordered to. */
void fault_simulate(pjrt_api *outer);

/* profiler.c: has a profiler, if it is ordered to. */
void fault_profile(pjrt_api *outer);

/* timed.c: notes how long calls last, if it is ordered to. */
void fault_time(pjrt_api *outer);

/* schedules.c: writes what libtpu would of a program's schedule, if it is ordered to. */
void fault_schedule(pjrt_api *outer);

/* extensions.c: what else it offers, if it is ordered to. */
void fault_extend(pjrt_api *outer);

#endif

#ifndef DEVICES_CPU_SUPPORT_THREAD_POOL_H
#define DEVICES_CPU_SUPPORT_THREAD_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Idle cores that help a busy one. Leaders are the lanes of the device, each with the thread that
 * executes on it; helpers are threads of the crew. While a leader is between begin and end, cores
 * that no leader uses take units of its loops: chunks of a batch, or parts of one product.
 * At most `cores` threads work at once: helpers step back when leaders need their cores.
 *
 * A loop costs about a microsecond when helpers are awake; they spin for CPU_CREW_SPIN_NS after
 * their last unit, then sleep on a futex. */

typedef struct cpu_crew cpu_crew;

#define CPU_CREW_LEADERS_MAX 64 /* more lanes than that get no help */
#define CPU_CREW_UNITS_MAX 65535
#define CPU_CREW_SPIN_NS 50000

/* `worker` is the number of whoever runs it: leaders first, then helpers; for scratch memory. */
typedef void (*cpu_crew_work)(void *context, int worker, size_t unit);

/* One helper less than there are cores. Errors: STATUS_OUT_OF_MEMORY, STATUS_RESOURCE_EXHAUSTED (no
 * threads). */
status cpu_crew_create(int leaders, int cores, cpu_crew **out) MUST_CHECK;
/* Joins the helpers; no leader may be working. Accepts NULL. */
void cpu_crew_destroy(cpu_crew *c);

/* Leaders and helpers: numbers of workers are below that. */
int cpu_crew_workers(const cpu_crew *c);

/* The calling thread works as `leader` until the end; nobody else may meanwhile. Every execution on
 * a lane is between these two, also one that wants no help. Returns the cores that were idle. */
int cpu_crew_begin(cpu_crew *c, int leader);
void cpu_crew_end(cpu_crew *c, int leader);

/* Wakes sleeping helpers, at most `wanted`, and lets them join this leader until its end. */
void cpu_crew_call(cpu_crew *c, int leader, int wanted);

/* work(context, worker, unit) for each unit below `units`, in no order, by this thread and whatever
 * helpers have joined; returns when all are done. */
void cpu_crew_run(cpu_crew *c, int leader, cpu_crew_work work, void *context, size_t units);

/* Has a helper kept this leader waiting since its begin, as happens when another program takes the
 * helper's core? Then short loops are better run alone. The leader's thread. */
bool cpu_crew_was_late(const cpu_crew *c, int leader);

/* While `worker` is in here no unit runs under its number: for whoever changes its memory. */
void cpu_crew_lock_worker(cpu_crew *c, int worker);
void cpu_crew_unlock_worker(cpu_crew *c, int worker);

/* Time that helpers spent joined to leaders. Any thread. */
uint64_t cpu_crew_helper_ns(const cpu_crew *c);

#endif

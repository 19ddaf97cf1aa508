#ifndef BATCHER_SLEEPERS_H
#define BATCHER_SLEEPERS_H

#include "devices/device.h"

/* Which workers sleep, and waking them one at a time.
 *
 * A worker that finds nothing to do announces that it sleeps, looks once more for work, and waits.
 * Whoever brings work makes it visible and then wakes a sleeper. Announcing and waking are atomic
 * exchanges, so one of the two sees the other and no wake-up is lost. Any thread wakes. */

typedef struct sleeper {
    _Atomic uint32_t is_asleep; /* futex */
    const device *device;
    int device_index, number; /* the device, and which of its workers */
    int first_peer;
    _Atomic int peers; /* workers of devices of this kind that are there; 0: the CPU's */
} sleeper;

typedef struct sleepers {
    sleeper *of; /* by worker */
    int count;
    _Atomic uint32_t turn; /* whose turn it is to be woken first, among equals */
} sleepers;

/* A worker for each slot of each device, by device, then slot; the last device is the CPU.
 * STATUS_OUT_OF_MEMORY. */
status sleepers_init(sleepers *s, device *const *devices, int device_count) MUST_CHECK;
void sleepers_dispose(sleepers *s);

/* Devices [first, first + count), absent so far, are there: of their peers only they take turns.
 * Any thread. */
void sleepers_join(sleepers *s, int first, int count);

/* Wakes the first sleeping worker at or after `from`, unless it serves device `except`. Devices of
 * one kind take turns, so that equal ones get equal work; kinds keep their order, and so do the
 * CPU's workers, whose caches are warm. */
void sleepers_wake_one(sleepers *s, int from, int except);

/* Every sleeping worker, also those beyond their device's depth, which nobody else wakes: they have
 * no work until it grows. */
void sleepers_wake_all(sleepers *s);

/* Is the worker beyond its device's depth? */
bool sleepers_is_parked(const sleepers *s, int worker);

/* Does a worker of another device than `except` sleep, that would take work? */
bool sleepers_has_other(const sleepers *s, int except);

/* The worker's own thread: announce, then look for work, then wait until woken or `until_ns`
 * (UINT64_MAX: no limit), if there is none; and end in any case. */
void sleepers_announce(sleepers *s, int worker);
void sleepers_wait(sleepers *s, int worker, uint64_t until_ns);
void sleepers_end(sleepers *s, int worker);

#endif

#ifndef BATCHER_EXECUTE_HEALTH_H
#define BATCHER_EXECUTE_HEALTH_H

#include "devices/device.h"

/* Which devices are in use. A device whose execution failed with STATUS_UNAVAILABLE rests for
 * HEALTH_REST_NS and is then asked for its state: at once, and again whenever a device says that
 * its state changed. Any thread, without a lock; devices may be asked by several threads. */

#define HEALTH_REST_NS UINT64_C(50000000)

typedef struct health_state {
    _Atomic bool has_failed;
    _Atomic bool is_asked;          /* since its rest; then only a change makes us ask again */
    _Atomic uint32_t asked_changes; /* device_health_changes() when it was asked */
    _Atomic uint64_t rests_until_ns;
    /* By a maintenance notice: it computes on, and takes work only where nobody else can. */
    _Atomic bool is_draining;
} health_state;

typedef struct health {
    device *const *devices; /* borrowed */
    int device_count;
    health_state *of; /* by device */
} health;

/* All devices but the last, which is the CPU, are asked before they get their first batch.
 * STATUS_OUT_OF_MEMORY. */
status health_init(health *h, device *const *devices, int device_count) MUST_CHECK;
void health_dispose(health *h);

/* Asks each failed device that has rested, unless nothing has changed since it was asked. */
void health_refresh(health *h, uint64_t now_ns);

/* What is remembered of the device. */
static inline bool health_is_good(const health *h, int device_index)
{
    return !atomic_load_explicit(&h->of[device_index].has_failed, memory_order_relaxed);
}

static inline bool health_is_draining(const health *h, int device_index)
{
    return atomic_load_explicit(&h->of[device_index].is_draining, memory_order_relaxed);
}

/* Asks a device that is thought to be good; one that says that it is not has failed. */
bool health_confirm(health *h, int device_index);

/* An execution on the device ended with STATUS_UNAVAILABLE. */
void health_report_failure(health *h, int device_index, uint64_t now_ns);

/* When the next rest of a failed device ends; UINT64_MAX: none rests. */
uint64_t health_rests_until_ns(const health *h, uint64_t now_ns);

#endif

#ifndef BATCHER_POLICY_PLACEMENT_H
#define BATCHER_POLICY_PLACEMENT_H

#include "batcher/policy/bucket.h"
#include "models/latency.h"

/* Which devices may take work of a model now: a pure function of the devices' health, the model's
 * buckets and what waits. Devices pull; this says whether the one that asks may have this work. */

/* When the CPU takes work of a model that another device could run. */
typedef enum placement_fallback {
    FALLBACK_NEVER,
    FALLBACK_ON_FAILURE,  /* while no such device is healthy */
    FALLBACK_WHEN_SOONER, /* also while all are busy and the CPU would be done first */
} placement_fallback;

/* The devices, now. */
typedef struct placement_devices {
    int count;
    int cpu;                /* index of the CPU; -1: there is none */
    const bool *is_healthy; /* by device; the CPU always is */
    /* By device, or NULL: none is. It takes work that no other device may take, and no other. */
    const bool *is_draining;
    int other_workers;    /* of devices other than the CPU */
    bool has_idle_worker; /* among them; needed for FALLBACK_WHEN_SOONER only */
    placement_fallback fallback;
    bool is_stopping; /* the scheduler empties its queues: failed devices are tried too */
} placement_devices;

/* A model and its waiting rows. */
typedef struct placement_model {
    const bucket_table *tables; /* by device */
    const latency *latency;
    const int64_t *rows; /* that wait, by position on the sequence axis */
    int sequence_count;
    bool is_exact;       /* runs at exact shapes, on the CPU only */
    bool is_device_only; /* its programs are given: no CPU can run it */
} placement_model;

/* May a worker of that device take work of this model? */
bool placement_is_eligible(const placement_devices *d, const placement_model *m, int device_index);

#endif

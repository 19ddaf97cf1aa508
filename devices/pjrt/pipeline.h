#ifndef DEVICES_PJRT_PIPELINE_H
#define DEVICES_PJRT_PIPELINE_H

#include "devices/pjrt/protocol/protocol.h"

/* How many batches a device has in flight: while one executes, the others are copied there and
 * back. Pure: no clock, no device. The caller locks.
 *
 * A batch in flight beyond those that keep the device busy has left the queue early, where it would
 * have grown. So the depth begins small, and grows while the device idles although the pipeline is
 * full; a step that does not help is taken back. */

typedef struct pjrt_pipeline {
    int depth, depth_min, depth_max;
    uint64_t last_executed_ns;
    /* Since start: how long the device computed; how long batches were copied, summed. */
    uint64_t computing_ns, transfer_ns;
    double idle_fraction; /* of the last full window: of the device's time, with a full pipeline */
    /* The current window: full pipelines only. */
    int batches;
    uint64_t window_computing_ns, window_transfer_ns, window_idle_ns;
    double idle_before; /* at the depth before this one; negative: no step is being judged */
    int held;           /* windows until the next step up */
    int easy;           /* windows in a row for which a smaller depth would have been enough */
} pjrt_pipeline;

/* Batches with a full pipeline that decide together. */
#define PJRT_PIPELINE_WINDOW 64

void pjrt_pipeline_init(pjrt_pipeline *p, int depth_min, int depth_max);

/* A batch has ended. `is_full`: when it was submitted, `depth` batches were in flight with it.
 * Returns the depth to use from now on; the caller calls pjrt_pipeline_move() or, where there is no
 * memory for one more batch, pjrt_pipeline_refuse(). */
int pjrt_pipeline_observe(pjrt_pipeline *p, const pjrt_times *t, bool is_full);
void pjrt_pipeline_move(pjrt_pipeline *p, int depth);
void pjrt_pipeline_refuse(pjrt_pipeline *p);

#endif

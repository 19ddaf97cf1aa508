#ifndef DEVICES_PJRT_GROUP_H
#define DEVICES_PJRT_GROUP_H

#include <pthread.h>

#include "devices/compile_cache.h"
#include "devices/pjrt/calibration.h"
#include "devices/pjrt/device.h"
#include "devices/pjrt/footprint.h"
#include "devices/pjrt/pipeline.h"
#include "devices/pjrt/ranges.h"
#include "devices/pjrt/supervisor/supervisor.h"
#include "devices/pjrt/weights.h"

/* Shared by device.c and load.c. Nobody else includes this. */

/* A program is loaded once for all devices of a host; each device's device_program refers to it. */
typedef struct shared_program {
    struct shared_program *next;
    const graph *graph;
    const struct encoder *packed_encoder; /* or NULL */
    device_precision precision;
    device_bucket bucket;
    int input_count; /* of the program, with those of a packed bucket */
    int references;
    bool is_ready; /* false while its first user compiles it */
    bool is_cached;
    int64_t operations; /* of an execution; 0: not known */
    status result;
    char error[STATUS_MESSAGE_BYTES_MAX];
    uint32_t number;
    uint32_t *weights;
    int weight_count;
    pjrt_claim claim;   /* in the group's footprint, if `result` is STATUS_OK */
    pjrt_range *ranges; /* in `memory` */
    int range_count;
    arena memory;
    char how[600];               /* it computes, and why so; begins with the arithmetic */
    _Atomic uint64_t longest_ns; /* of its executions */
} shared_program;

typedef struct pjrt_program_of_device {
    device_program base;
    shared_program *shared;
} pjrt_program_of_device;

/* The devices of one host, and what they share. */
typedef struct pjrt_group {
    device_pjrt_options options;
    /* Until then its devices are absent, and nothing below but `devices` is set. */
    pjrt_supervisor *supervisor;
    compile_cache *cache; /* NULL: none */
    char version[400];
    char cache_kind[160]; /* device kind as cache keys have it */
    char compiler[330];   /* plugin version and fingerprint, as cache keys have them */
    pjrt_host_facts facts;
    struct pjrt_device *devices[DEVICE_PJRT_DEVICES_MAX];
    int device_count; /* with those that are absent */
    int references;   /* devices alive */

    pthread_mutex_t lock; /* guards the lists; not held while the host works, but for releases */
    pthread_cond_t changed;
    shared_program *programs;
    pjrt_footprint footprint;
    int loading; /* programs whose weights are claimed and may not be uploaded yet */
    pjrt_weights *weights;
    pjrt_calibrations *calibrations;
    _Atomic uint64_t compiles, cache_hits;
} pjrt_group;

typedef struct pjrt_device {
    device base;
    pjrt_group *group;
    int number; /* within the host */
    char name[32];
    _Atomic uint64_t executions, failures, busy_ns;
    pthread_mutex_t pipeline_lock; /* may be taken under the group's lock */
    pjrt_pipeline pipeline;
    uint64_t pinned_bytes[PJRT_SLOTS_MAX]; /* by slot */
} pjrt_device;

/* How long a compilation waits for a healthy host. */
#define PJRT_HEALTHY_WAIT_NS UINT64_C(60000000000)

/* load.c: makes the program, out of the cache or by compiling, and gives it to the host with its
 * weights. STATUS_RESOURCE_EXHAUSTED: the devices have no memory for it, and nothing was loaded. */
status pjrt_group_load(pjrt_group *g, const device_model *model, shared_program *p) MUST_CHECK;
/* device.c: what was loaded may leave no memory for as many batches in flight as before. */
void pjrt_group_fit_depth(pjrt_group *g);
/* The last reference of a program that was loaded is gone. */
void pjrt_group_unload(pjrt_group *g, shared_program *p);

#endif

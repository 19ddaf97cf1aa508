#ifndef DEVICES_DEVICE_H
#define DEVICES_DEVICE_H

#include <stdatomic.h>

#include "base/status.h"
#include "base/tensor.h"
#include "graph/cost/cost.h"
#include "graph/graph.h"

/* Where batches run. A device compiles a model at one bucket into a program and executes it,
 * blocking the caller; up to `slots` callers at once. One slot = one thread = one batch in flight,
 * so there are no completion callbacks. */

typedef struct device device;
typedef struct device_program device_program;

/* (batch, sequence); sequence is 0 for models without a sequence axis. */
typedef struct device_bucket {
    int64_t batch, sequence;
} device_bucket;

typedef enum device_layout {
    DEVICE_PADDED, /* inputs and outputs are whole tensors of the bucket's shape */
    DEVICE_PACKED, /* several sequences in a row: whole tensors as graph/encoder/packed.h has them
                    */
    DEVICE_WHOLE,  /* one request as it is: the device sets the outputs' shapes and data */
    DEVICE_RAGGED, /* no padding: the device reads and writes each segment's own tensors; any number
                      of rows and lengths up to the bucket */
} device_layout;

typedef enum device_precision {
    DEVICE_FP32,
    DEVICE_BF16,
    DEVICE_INT8,
    DEVICE_PRECISION_COUNT
} device_precision;
/* "fp32", "bf16", "int8", in that order, then NULL. */
extern const char *const device_precision_names[DEVICE_PRECISION_COUNT + 1];
/* False, and `*out` untouched, when there is no precision of that name. */
bool device_precision_from_name(const char *name, device_precision *out) MUST_CHECK;

/* Some rows of one job: `rows` sequences of `length` tokens. Tensors are [rows, length, ...] or
 * [rows, ...], one per graph input and output. */
typedef struct device_segment {
    int64_t rows, length;
    const tensor *inputs;
    tensor *outputs;
} device_segment;

typedef struct device_batch {
    /* DEVICE_PADDED: one per graph input, [batch, sequence, ...], and output, data set by the
     * caller. DEVICE_PACKED: one per input and output of the packed graph. */
    const tensor *inputs;
    tensor *outputs;
    arena *results;                 /* DEVICE_WHOLE: where the data of the outputs is allocated */
    const device_segment *segments; /* always; the only data when DEVICE_RAGGED */
    int segment_count;
    const cancel_token *cancel; /* of the load that runs it; NULL: it is never cancelled */
} device_batch;

/* Token ids that the model gets in practice, for the accuracy check. */
#define DEVICE_SAMPLES_MAX 32
typedef struct device_sample {
    const int64_t *ids; /* [length], not negative */
    int64_t length;
    int line; /* of the file it was read from, for messages */
} device_sample;
typedef struct device_samples {
    device_sample samples[DEVICE_SAMPLES_MAX];
    int count;
    uint64_t hash;
} device_samples;

/* A model as a device gets it. `graph` is symbolic and outlives every program made of it.
 * `model_key` is a hash of the model files, stable over restarts, for caches. Input roles are what
 * batching needs to know (models/model.h says how they are found). */
typedef struct device_model {
    const graph *graph;
    const char *name;
    uint64_t model_key;
    device_precision precision;
    const device_samples *samples; /* or NULL; lives as long as the model */
    /* Text through the model's own tokenizer, for what is calibrated where there are no samples; or
     * NULL; lives as long as the model. */
    const device_samples *text_samples;
    int mask_input; /* graph input that says which tokens are real, or -1 */
    /* Its programs take each request as it is, at any shape (DEVICE_WHOLE); the bucket is not read.
     * Only the CPU has such programs. Always where graph->is_dynamic. */
    bool is_whole;
    /* The programs of a model that was exported as StableHLO (devices/exported.h): they decide the
     * buckets, and the CPU cannot run them. Else NULL. */
    const struct device_exported *exported;
    /* The graph as it was recognised (graph/encoder/encoder.h), for devices with static shapes;
     * NULL: it is no encoder, or only the CPU runs it. */
    const struct encoder *encoder;
    /* Programs hold several sequences in each row (graph/encoder/packed.h): `graph` as it was
     * recognised. NULL: one sequence a row. */
    const struct encoder *packed_encoder;
    /* Where to count a compilation that happens after the model was declared ready, which is an
     * error for a device with static shapes; NULL until ready. */
    _Atomic uint64_t *serving_compiles;
    /* What a program of it may cost, and while it is loaded, the load's `cancel`; NULL:
     * graph_budget_default. Lives as long as the model. */
    const graph_budget *budget;
} device_model;

typedef enum device_state { DEVICE_STARTING, DEVICE_HEALTHY, DEVICE_FAILED } device_state;

typedef struct device_status {
    device_state state;
    char detail[200]; /* why it is not healthy, or what it is */
    uint64_t compiles, cache_hits, executions, failures, restarts;
    uint64_t busy_ns; /* summed over slots */
    /* Compile cache of the device's process, counted over all devices that share it. */
    uint64_t cache_misses, cache_corrupt, cache_refused, cache_store_failures;
    const char *version; /* of the plugin: "api 0.81, ..."; NULL: the device is our own. Lives as
                            long as the device */
    /* Of the device, 0: not known; and what weights, programs and the batches in flight need. */
    int64_t memory_bytes, claimed_bytes;
    /* Of accelerators: batches in flight at most, now (0: it has no such thing), and the share of
     * its time that the device idled when so many were in flight, measured last; time in which it
     * computed, time in which batches were copied there and back (summed), and memory that is
     * pinned for that. */
    int pipeline_depth;
    double pipeline_idle_fraction;
    uint64_t computing_ns, transfer_ns, pinned_bytes;
    double peak_seconds; /* of one core at its measured peak, for what has been computed so far */
    double utilisation_of_peak; /* achieved fraction of the peak measured at start, or 0 when
                                   unknown */
} device_status;

typedef struct device_interface {
    /* Makes the program of `model` at `bucket` ready to execute; may take seconds, any thread. The
     * caller releases it. STATUS_TOO_LARGE: it costs more than the budget. */
    status (*compile)(device *d, const device_model *model, device_bucket bucket,
                      device_program **out);
    void (*release)(device *d, device_program *program);
    /* Runs one batch to its end. `slot` (0 .. slots-1) is the caller's own. STATUS_UNAVAILABLE: the
     * device is gone or hung, try another; other codes: the batch is at fault. Outputs are
     * undefined after a failure. */
    status (*execute)(device *d, device_program *program, int slot, const device_batch *batch);
    /* Any thread. A device whose state becomes another calls device_health_changed()
     * (devices/health.h). */
    void (*describe)(device *d, device_status *out);
    /* Optional, or NULL: writes one line on how the program runs: in which precision, with or
     * without padding, and why. At most `bytes` - 1 bytes. Any thread. */
    void (*explain)(device *d, const device_program *program, char *text, size_t bytes);
    /* Optional, or NULL: writes to the cache folder what a later start can use of what was prepared
     * for the program's model, if there is anything new. One thread at a time, after ready. */
    void (*keep)(device *d, const device_program *program);
    /* Optional, or NULL. Records a profile of the device and of all that share its process, for
     * `duration_ns`; returns when it has begun. STATUS_UNSUPPORTED: its plugin has no profiler;
     * STATUS_RESOURCE_EXHAUSTED: one is recorded now. Any thread. */
    status (*profile)(device *d, uint64_t duration_ns);
    /* The same. Waits for the end of the profile: `*data`, malloc'd, is an XSpace, as TensorBoard
     * reads it. STATUS_NOT_FOUND: none was recorded, or it was taken. */
    status (*take_profile)(device *d, void **data, size_t *bytes);
    void (*destroy)(device *d); /* no call may be in progress */
} device_interface;

struct device {
    const device_interface *interface;
    const char *name; /* unique, for labels: "cpu", "pjrt:0" */
    /* "cpu", "TPU v5e": devices of one kind have one speed. Changes once, when an absent device
     * comes. */
    const char *_Atomic kind;
    double cost_per_hour; /* dollars; 0: not known */
    _Atomic double
        peak_per_s; /* operations in bf16, as published; 0: not known. Changes with kind */
    int slots;
    /* Of these slots the first so many are used now: batches in flight at most. 0: all of them. The
     * device changes it while it learns (devices/pjrt/pipeline.h). */
    _Atomic int depth;
    /* It may come later (devices/pjrt/device.h): compile() and execute() are STATUS_UNAVAILABLE.
     * Once false, it stays so. */
    _Atomic bool is_absent;
    /* Of devices/slot.h: a bit for each slot in use, releases so far (a futex), and waiters. */
    _Atomic uint64_t slots_in_use;
    _Atomic uint32_t slot_releases, slot_waiters;
};

static inline int device_depth(const device *d)
{
    int depth = atomic_load_explicit(&d->depth, memory_order_relaxed);
    return depth > 0 ? depth : d->slots;
}

static inline bool device_is_absent(const device *d)
{
    return atomic_load_explicit(&d->is_absent, memory_order_acquire);
}

/* Programs begin with this; devices add to it. */
/* Where a program came from. */
typedef enum device_origin {
    DEVICE_MADE,
    DEVICE_FROM_CACHE, /* what takes the time, with its weights or compiled */
    DEVICE_SHARED,     /* another device of the same process has it already */
} device_origin;

struct device_program {
    device_layout layout;
    device_origin origin;
    device_bucket bucket;
    graph_spent cost; /* of one execution, estimated; zero where it is not known */
};

/* Who counts the memory of executions whose sizes requests choose. Any thread. */
typedef struct device_memory {
    void *context;
    size_t bytes_max; /* at one time */
    /* False: there is no room for so many bytes more now. */
    bool (*take)(void *context, size_t bytes);
    void (*give)(void *context, size_t bytes); /* what was taken */
} device_memory;

/* The CPU, devices/cpu. */
typedef struct device_cpu_options {
    int threads;              /* slots, and cores used at once; 0: one per core */
    const char *level;        /* caps the instruction set ("scalar", "avx2", ...); NULL: the best */
    const char *cache_folder; /* keeps packed weights between runs; NULL: nowhere. Copied */
    const device_memory *memory; /* copied; NULL: nobody counts it */
} device_cpu_options;

status device_cpu_create_with(const device_cpu_options *options, device **out) MUST_CHECK;
/* The same without a cache. */
status device_cpu_create(int threads, const char *level, device **out) MUST_CHECK;

#endif

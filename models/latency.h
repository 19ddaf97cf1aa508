#ifndef MODELS_LATENCY_H
#define MODELS_LATENCY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "devices/device.h"

/* How long a model's batches take: per kind of device and bucket, measured. Warm-up seeds it, every
 * execution refreshes it. The scheduler chooses batches with it; admission control
 * estimates waiting times with it.
 *
 * A bucket's time is a moving average that no single stall can move by more than 1/8 of itself.
 * For ragged batches and buckets that never ran, a cost
 *     fixed + token * tokens + square * sum(length^2)
 * is fitted to all executions (least squares of relative errors; older ones count less). Writers:
 * warm-up and workers. Readers: any thread, without a lock. */

#define LATENCY_BUCKETS_MAX 256

typedef struct latency_work {
    int64_t rows, tokens, squares; /* squares: the sum over rows of length^2, both as computed */
} latency_work;

typedef struct latency_fit {
    double fixed_ns, token_ns, square_ns; /* all 0: not known */
} latency_fit;

/* Of one kind of device. */
typedef struct latency_kind {
    const char *name;                                     /* device->kind, borrowed */
    _Atomic uint64_t bucket_ns[LATENCY_BUCKETS_MAX];      /* 0: not measured */
    _Atomic uint64_t fixed_bits, token_bits, square_bits; /* doubles */
    _Atomic uint64_t observations, observed_ns;           /* how many, and when the latest */
    pthread_mutex_t mutex;                                /* guards the sums */
    double sums[3][3], targets[3];
} latency_kind;

typedef struct latency {
    int kind_count, device_count;
    int *kind_of_device;
    latency_kind *kinds;
} latency;

/* NULL when memory is out. `devices` are borrowed for their kinds' names. */
latency *latency_create(device *const *devices, int device_count);
void latency_destroy(latency *l);

/* One execution took `took_ns`; `bucket` is the index in model->buckets, or -1. Never waits: the
 * fit skips a measurement while another thread updates it. */
void latency_observe(latency *l, int device_index, int bucket, latency_work work, uint64_t took_ns,
                     uint64_t now_ns);

/* 0: not known. */
uint64_t latency_bucket_ns(const latency *l, int device_index, int bucket);
latency_fit latency_fit_of(const latency *l, int device_index);
/* Executions so far; one or two are too few for an estimate. */
uint64_t latency_observations(const latency *l, int device_index);
/* When that kind was last measured; 0: never. */
uint64_t latency_observed_ns(const latency *l, int device_index);

static inline double latency_cost_ns(latency_fit f, double tokens, double squares)
{
    return f.fixed_ns + f.token_ns * tokens + f.square_ns * squares;
}

static inline bool latency_is_known(latency_fit f)
{
    return f.token_ns > 0 || f.square_ns > 0 || f.fixed_ns > 0;
}

#endif

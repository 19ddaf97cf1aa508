#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include "base/histogram.h"
#include "batcher/admission/admission.h"
#include "batcher/queue/dispatch.h"

/* Discrete-event simulation of the scheduler: the real admission, queues and policy
 * (batcher/admission, batcher/queue, batcher/policy) under a simulated clock, with devices whose
 * times are known. The same configuration and seed give the same run. Simple schedulers run the
 * same requests for comparison. */

#define SIM_STREAMS_MAX 16
#define SIM_MODELS_MAX 4
#define SIM_DEVICES_MAX 8

typedef enum sim_scheduler {
    SIM_PENSTOCK,
    SIM_WINDOW,    /* first come first served; a batch closes when full or `delay_ns` old */
    SIM_PREFERRED, /* first come first served; preferred sizes at once, others after `delay_ns` */
    SIM_EDF,       /* earliest deadline first, whatever the lengths */
    SIM_ORACLE,    /* looks at every run of requests in the order of length, with true times */
    SIM_SCHEDULERS
} sim_scheduler;
const char *sim_scheduler_name(sim_scheduler s);

typedef enum sim_arrivals { SIM_POISSON, SIM_BURSTS, SIM_DIURNAL } sim_arrivals;
typedef enum sim_lengths {
    SIM_HEAVY_TAIL, /* log-normal, mean 38, median 22, cut at 256: sentences */
    SIM_UNIFORM,    /* 1 to 128 */
    SIM_FIXED,      /* 32 */
    SIM_LONG        /* 200 to 256 */
} sim_lengths;

/* Requests of one kind. */
typedef struct sim_stream {
    double share; /* of the rate */
    int model, tenant, priority;
    uint64_t slo_ns; /* deadline after arrival; 0: none */
    sim_lengths lengths;
} sim_stream;

/* True time of a batch of `rows` x `length`: fixed + token * rows * length + square * rows *
 * length^2. */
typedef struct sim_model {
    double fixed_ns, token_ns, square_ns;
    bool is_ragged;
    int weight;
} sim_model;

typedef struct sim_config {
    sim_scheduler scheduler;
    uint64_t seed;
    sim_arrivals arrivals;
    double rate; /* requests per second, of all streams */
    int64_t requests;
    sim_stream streams[SIM_STREAMS_MAX];
    int stream_count;
    sim_model models[SIM_MODELS_MAX];
    int model_count;
    uint32_t tenant_weights[FAIR_TENANTS_MAX];
    int tenant_count;
    int64_t queue_rows_max; /* rows of a model that may wait; 0: any number */
    int device_count;
    double noise;    /* relative standard deviation of execution times */
    int lost_device; /* gone from a third to two thirds of the run; -1: none */
    /* Of the baselines. */
    uint64_t delay_ns;
    int64_t batch_max;
    double probe_share; /* so many of the rejected are admitted anyway: would they be in time? */
} sim_config;

typedef struct sim_stream_result {
    int64_t offered, met, late, refused,
        dropped;                   /* rejected on admission; dropped from the queue */
    int64_t full;                  /* of the rejected: the queue was full */
    int64_t probes, probes_met;    /* of the rejected: admitted; and in time */
    double told_ns, took_ns;       /* sums of the probes that were answered: expected, and true */
    int64_t sure_probes, sure_met; /* of these: told that they would be late; and in time */
    double device_ns;              /* time received, by tokens */
    uint64_t wait_max_ns;          /* until its batch began */
    histogram latency;             /* of the answered */
} sim_stream_result;

typedef struct sim_result {
    sim_stream_result streams[SIM_STREAMS_MAX];
    int64_t offered, met, admitted, batches, rows;
    double seconds, goodput, attainment, waste, busy; /* busy: part of device time used */
    double decide_ns; /* host time per request inside the scheduler; informative */
    histogram latency;
    int64_t offered_by_length[16], met_by_length[16]; /* by sim_sequences */
    double estimate_error; /* mean |estimate - true| / SLO of admitted requests */
} sim_result;

/* A single stream of sentences on two devices, 60 ms to answer: the plain case to vary. */
void sim_default(sim_config *c);
/* `out` is large: not for a stack. */
void sim_run(const sim_config *c, sim_result *out);
/* The highest rate at which `attainment` of all requests meet their deadline, by bisection between
 * `low` and `high`; `*at` (or NULL) is the run at that rate. Returns goodput, requests/s. */
double sim_goodput_at(sim_config *c, double attainment, double low, double high, sim_result *at);

/* Requests per second that the devices could at best do if the whole trace were known beforehand
 * and run in the order of length in batches of 32, without deadlines: no goodput is above it.
 */
double sim_sorted_bound(const sim_config *c);

/* --- inside --- */

typedef struct sim_request {
    uint64_t arrival_ns, deadline_ns;
    int32_t stream, length;
    bool is_probe, is_sure;
    uint64_t told_ns; /* a probe: how long it was told to expect */
} sim_request;

typedef struct sim_trace {
    const sim_config *config;
    uint64_t random, now_ns;
    double phase_left_s; /* of the burst state */
    bool is_burst;
    int64_t left;
} sim_trace;
void sim_trace_init(sim_trace *t, const sim_config *c);
bool sim_trace_next(sim_trace *t, sim_request *out);
double sim_uniform(uint64_t *random); /* in (0, 1) */
double sim_normal(uint64_t *random);

extern const int64_t sim_batches[], sim_sequences[];
#define SIM_BATCHES 6
#define SIM_SEQUENCES 9
#define SIM_BATCH_MAX 32

/* Time of the smallest bucket that holds rows x length. */
double sim_time_ns(const sim_model *m, int64_t rows, int64_t length, int64_t *tokens);

/* What a baseline gives a free device. `pending` is sorted by arrival; it writes the indexes it
 * takes, in any order, or 0 and when to ask again. */
int sim_baseline_next(const sim_config *c, const sim_request *pending, int pending_count,
                      uint64_t now_ns, int *taken, uint64_t *until_ns);

#endif

#ifndef LOADTEST_REPORT_RESULT_H
#define LOADTEST_REPORT_RESULT_H

#include "base/histogram.h"
#include "base/status.h"
#include "loadtest/wire/request.h"
#include "loadtest/wire/response.h"

#include <jansson.h>

/* The measurements of a run. Results of several threads, processes or machines can be merged. */
#define RESULT_STAGES_MAX 16
#define RESULT_SLICES_MAX 200
#define RESULT_REASON_BYTES 200
#define RESULT_CODES 600

/* How the run was set up, for reports. */
typedef struct result_setup {
    char url[512], model[128], protocol[16], format[24], loop[8], arrivals[256], io[16],
        machine[256];
    double rate_target;                                /* 0 in a closed loop */
    unsigned concurrency, threads, connections, parts; /* parts: merged results */
    uint64_t seed, duration_ns, warm_up_ns, timeout_ns, started_wall_ns;
} result_setup;

typedef struct result_stage {
    char name[SERVER_TIMING_NAME_BYTES_MAX];
    histogram duration;
} result_stage;

/* A slice of the window. A request counts in the slice of its intended time. */
typedef struct result_slice {
    uint64_t sent, succeeded, failed;
    histogram latency;
} result_slice;

typedef struct result {
    result_setup setup;
    /* Requests of the window. After the run: sent = succeeded + errors + unfinished. */
    _Atomic uint64_t sent, succeeded;
    uint64_t unfinished, unfinished_oldest_ns; /* no response when the run was stopped */
    _Atomic uint64_t completed_in_window;      /* successes that arrived inside the window */
    _Atomic uint64_t within_slo;               /* successes within the SLO's limit */
    _Atomic uint64_t errors[REQUEST_ERROR_COUNT];
    uint64_t codes[RESULT_CODES];
    char reasons[REQUEST_ERROR_COUNT][RESULT_REASON_BYTES]; /* the first of each kind */
    uint64_t tokens, bytes_sent, bytes_received, verified;
    uint64_t connections_opened, connections_lost, retries;
    double loop_busy;   /* the busiest thread's share of a core */
    double cpu_s;       /* of all threads */
    double steal_share; /* CPU time that a hypervisor gave to others */
    bool aborted;       /* stopped early: by a signal, or the SLO could not be met any more */
    /* In ns. `latency` counts a failure as --timeout, or as its real time if that was longer. */
    histogram latency, latency_ok, service, lag, connection_wait, server;
    histogram refused; /* time to a 429, 503 or 504 */
    result_stage stages[RESULT_STAGES_MAX];
    unsigned stage_count;
    uint64_t slice_ns;
    unsigned slice_count;
    result_slice *slices; /* owned */
} result;

/* Zeroed memory becomes an empty result with slices for `duration_ns`. */
void result_init(result *r, uint64_t duration_ns);
void result_dispose(result *r);
/* The stage's histogram, created if new; NULL if there are RESULT_STAGES_MAX others. */
histogram *result_stage_of(result *r, const char *name);
void result_merge(result *into, const result *from);

uint64_t result_failed(const result *r);
double result_rate(const result *r);               /* successes per second of the window */
double result_rate_sent(const result *r);          /* requests per second of the window */
double result_goodput(const result *r);            /* successes within the SLO per second */
const char *result_error_name(request_error kind); /* as in JSON; static */
const char *result_error_text(request_error kind); /* for people; static */
/* A warning in `text` if the client itself limited the measurement, else NULL. */
const char *result_bottleneck(const result *r, char *text, size_t text_bytes);

/* A quantile with its 95% confidence bounds (order statistics of a binomial), ns. */
typedef struct result_bounds {
    double low, value, high;
} result_bounds;
result_bounds result_quantile_bounds(const histogram *h, double q);

/* {"unit": "ns", "cell_bits", "octave_max", "count", "sum", "max", "cells": [[cell, count], ...]}
 */
json_t *result_histogram_to_json(const histogram *h);
/* STATUS_CORRUPT says which part is invalid; `h` is then undefined. */
status result_histogram_from_json(histogram *h, const json_t *json) MUST_CHECK;

/* A service level objective: a quantile of latency, or a share of errors. */
#define RESULT_SLO_MAX 8
typedef struct result_slo {
    enum { SLO_QUANTILE, SLO_ERRORS } kind;
    double quantile; /* 0 to 1 */
    double limit;    /* ns, or a share 0 to 1 */
    char text[64];   /* as given */
} result_slo;
/* "p99=50ms", "p99.9=0.2s", "errors=0.1%"; several joined by ','. Appends to `list`. */
status result_slo_parse(result_slo *list, size_t *count, const char *text) MUST_CHECK;
bool result_slo_held(const result *r, const result_slo *slo, double *measured);
bool result_slo_all_held(const result *r, const result_slo *list, size_t count);
/* The latency, ns, that goodput counts to: the largest limit of a quantile, 0 if there is none. */
uint64_t result_slo_limit_ns(const result_slo *list, size_t count);

#endif

#ifndef LOADTEST_WORKLOAD_ARRIVAL_H
#define LOADTEST_WORKLOAD_ARRIVAL_H

#include "base/status.h"
#include "loadtest/workload/random.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The intended send times, a pure function of a specification and a seed. They do not depend on the
 * server's responses; that makes the loop open.
 *
 * The number of arrivals in the measured window is not left to chance: it is the expected one,
 * rounded. Given that number, arrivals of a Poisson process are distributed like sorted uniform
 * draws, and are drawn that way, so gaps stay exponential while the offered rate is exact. */
typedef enum arrival_kind {
    ARRIVAL_POISSON,
    ARRIVAL_CONSTANT, /* evenly spaced */
    ARRIVAL_BURST,    /* `burst_requests` at the same instant; the bursts are Poisson or periodic */
    ARRIVAL_RAMP,     /* Poisson whose rate goes linearly from `rate` to `rate_end` */
    ARRIVAL_STEPS,    /* Poisson whose rate changes at given times */
    ARRIVAL_TRACE     /* given times */
} arrival_kind;

#define ARRIVAL_STEPS_MAX 64

typedef struct arrival_step {
    double rate; /* per second */
    uint64_t duration_ns;
} arrival_step;

typedef struct arrival_spec {
    arrival_kind kind;
    double rate, rate_end;
    uint32_t burst_requests;
    uint64_t burst_period_ns; /* 0: Poisson */
    arrival_step steps[ARRIVAL_STEPS_MAX];
    unsigned step_count;
    const uint64_t *trace_ns; /* borrowed, ascending, from 0 */
    size_t trace_count;
    /* Before the window: the same process at the rate that the window starts with. */
    uint64_t warm_up_ns, duration_ns;
} arrival_spec;

/* Reads "poisson", "constant", "burst:SIZE", "burst:SIZE:PERIOD", "ramp:FROM:TO",
 * "steps:RATExTIME,..." into kind and its own fields; others are untouched, except that steps set
 * duration_ns and a burst with a period sets rate. STATUS_INVALID_ARGUMENT names what is wrong. */
status arrival_parse(arrival_spec *spec, const char *text) MUST_CHECK;

/* The kind's name as arrival_parse takes it. Static. */
const char *arrival_name(arrival_kind kind);

/* Requests per second over the window, and the number of arrivals in it. */
double arrival_mean_rate(const arrival_spec *spec);
uint64_t arrival_count(const arrival_spec *spec);

typedef struct arrival {
    const arrival_spec *spec; /* borrowed */
    random_state random;
    uint64_t left;   /* arrivals (or bursts) still to come in this phase */
    uint64_t done;   /* in this phase */
    double position; /* of the last one, in expected arrivals since the phase began */
    double total;    /* of the phase */
    uint64_t repeat_ns;
    uint32_t repeat_left; /* the rest of a burst */
    uint64_t in_window_left;
    bool warming;
} arrival;

void arrival_init(arrival *a, const arrival_spec *spec, uint64_t seed);

/* The next arrival, in ns since the start of the warm-up, never less than the one before. Those
 * from warm_up_ns on are measured. False when there are no more. */
bool arrival_next(arrival *a, uint64_t *offset_ns);

#endif

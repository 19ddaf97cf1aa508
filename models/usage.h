#ifndef MODELS_USAGE_H
#define MODELS_USAGE_H

#include <stdatomic.h>
#include <stdint.h>

/* What a model has cost over the last minute: tokens, device time, arithmetic, dollars. Written at
 * the end of each execution and batch, by any thread; a reader may miss the second under way. */

#define USAGE_CELLS 64
#define USAGE_WINDOW_S 60

/* One second. */
typedef struct usage_cell {
    _Atomic uint64_t second;
    _Atomic uint64_t real_tokens, computed_tokens; /* rows where there is no sequence */
    _Atomic uint64_t computed_kflops, peak_kflops; /* done; what the devices could have done */
    _Atomic uint64_t picodollars;
} usage_cell;

typedef struct model_usage {
    _Atomic uint64_t first_second; /* with anything in it; 0: none */
    usage_cell cells[USAGE_CELLS];
} model_usage;

/* An execution: tokens computed with padding, operations in them (0: not known), the share of a
 * device that it had (`device_s` seconds), the peak of that device in operations per second (0: not
 * known) and its price in dollars per hour. */
typedef struct usage_execution {
    uint64_t computed_tokens;
    double operations, device_s, peak_per_s, dollars_per_hour;
} usage_execution;

void usage_add_execution(model_usage *u, uint64_t now_ns, const usage_execution *e);
void usage_add_tokens(model_usage *u, uint64_t now_ns, uint64_t real_tokens);

/* Over the last USAGE_WINDOW_S seconds, or since there is anything. */
typedef struct usage_summary {
    double tokens_per_s;               /* of requests */
    double waste;                      /* share of computed tokens that was padding */
    double mfu;                        /* operations on real tokens / peak; 0: not known */
    double dollars_per_million_tokens; /* of the device time used; 0: not known */
} usage_summary;
void usage_read(const model_usage *u, uint64_t now_ns, usage_summary *out);

#endif

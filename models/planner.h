#ifndef MODELS_PLANNER_H
#define MODELS_PLANNER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "models/latency.h"

/* Which sequence buckets suit observed lengths: the set with the least total cost, found by dynamic
 * programming over the lengths that occur. A row costs what the padded tokens of its bucket cost.
 */

#define PLANNER_LENGTH_MAX 65536
#define PLANNER_BUCKETS_MAX 64

/* How often each length was seen. One allocation; any thread adds and reads. */
typedef struct length_histogram {
    int64_t length_max;
    _Atomic uint64_t counts[]; /* [length_max + 1] */
} length_histogram;
/* NULL when memory is out. free() it. */
length_histogram *length_histogram_create(int64_t length_max);
/* Lengths over length_max are ignored. */
void length_histogram_add(length_histogram *h, int64_t length, uint64_t rows);
uint64_t length_histogram_total(const length_histogram *h);
/* The smallest length that a fraction `q` of the rows do not exceed. */
int64_t length_histogram_quantile(const length_histogram *h, double q);
double length_histogram_mean(const length_histogram *h);

/* Reads a file into a new histogram: each line is an integer, or a JSON array of token ids, which
 * counts as its length; '#' begins a comment. STATUS_INVALID_ARGUMENT names the line;
 * STATUS_NOT_FOUND, STATUS_IO: the file. */
status length_histogram_read(const char *path, length_histogram **out) MUST_CHECK;

typedef struct planner_bucket {
    int64_t sequence;
    uint64_t rows;
    double waste; /* fraction of its tokens that are padding */
} planner_bucket;

typedef struct planner_plan {
    planner_bucket buckets[PLANNER_BUCKETS_MAX]; /* ascending */
    int count;
    double waste; /* of all tokens */
    double cost;  /* of all rows, in the units of the cost given */
} planner_plan;

/* At most `buckets_max` (1 .. PLANNER_BUCKETS_MAX) buckets for the lengths in `h`, which must hold
 * some. `cost` is the measured cost of tokens (its fixed part is per batch and does not matter);
 * NULL: every token costs the same. `last` > 0: the last bucket is that long, whether that length
 * occurred or not. STATUS_OUT_OF_MEMORY. */
status planner_make(const length_histogram *h, int buckets_max, const latency_fit *cost,
                    int64_t last, planner_plan *out) MUST_CHECK;

/* What the given buckets (ascending) cost and waste; longer lengths are ignored. */
void planner_measure(const length_histogram *h, const int64_t *sequences, int count,
                     const latency_fit *cost, planner_plan *out);

/* 16, 32, ... up to the first that holds the longest: into `sequences`; returns how many. */
int planner_powers_of_two(const length_histogram *h, int64_t *sequences);

#endif

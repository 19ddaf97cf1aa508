#ifndef MODELS_START_START_BUDGET_H
#define MODELS_START_START_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* What a model may spend before it is ready on work that it can be ready without: experiments that
 * support a proof, executions that measure, buckets beyond the smallest. In operations, estimated
 * (graph/cost), not in time: a model starts the same way wherever it starts. Belongs to the loading
 * thread. */

/* A quarter of a second at 20 operations a nanosecond, which one core of a recent CPU does. */
#define START_OPERATIONS_DEFAULT INT64_C(5000000000)
/* Activations of the largest bucket made before ready, unless it is the smallest one. */
#define START_ACTIVATION_BYTES ((int64_t)32 << 20)

typedef struct start_budget {
    int64_t operations_max, spent;
    bool is_known; /* an earlier start has run the model and kept what it found (probe_cache.h) */
} start_budget;

/* Whether executions of so many operations in all fit into what is left. `b` NULL: everything
 * does. */
bool start_budget_allows(const start_budget *b, int64_t operations);
/* The same for the execution of a bucket. Of a known model it only measures, and touches memory:
 * it may take a tenth of what is left. */
bool start_budget_allows_execution(const start_budget *b, int64_t operations);
/* `b` NULL: nothing happens. */
void start_budget_spend(start_budget *b, int64_t operations);

#endif

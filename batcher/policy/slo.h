#ifndef BATCHER_POLICY_SLO_H
#define BATCHER_POLICY_SLO_H

#include <stdatomic.h>
#include <stdint.h>

/* Keeps a model's p99 within its objective by bounding how long a batch may take. When over 1% of
 * the responses of a window were late, the bound comes down; while few are, it goes up again and
 * finally away. It never goes below a quarter of the objective: below that, waiting is what makes
 * responses late, and smaller batches would only lengthen it. */
#define SLO_WINDOW 256

/* Of one model; zeroed: no bound yet. Any worker writes, any thread reads, without a lock. */
typedef struct slo_controller {
    _Atomic uint64_t bound_ns;     /* no batch takes longer; 0: no bound */
    _Atomic uint64_t seen, missed; /* responses: since start; of this window, late */
} slo_controller;

/* The next bound after a window. `bound_ns` 0: none so far; `longest_ns`: of any bucket. */
uint64_t slo_next_bound(uint64_t bound_ns, uint64_t slo_ns, uint64_t longest_ns, uint64_t missed,
                        uint64_t seen);

/* A response took `took_ns` from admission to its outputs; the objective is `slo_ns`, over 0. */
void slo_observe(slo_controller *c, uint64_t slo_ns, uint64_t took_ns, uint64_t longest_ns);

#endif

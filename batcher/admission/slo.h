#ifndef BATCHER_ADMISSION_SLO_H
#define BATCHER_ADMISSION_SLO_H

#include "models/model.h"

/* Keeps a model's p99 within its objective by bounding how long a batch may take: when over 1% of a
 * window's answers were late, the bound comes down; while few are, it goes up again, and away.
 * Never below a quarter of the objective: below that, waiting is what makes answers late, and
 * smaller batches would only lengthen it. */
#define SLO_WINDOW 256

/* The next bound after a window. `bound_ns` 0: none so far; `longest_ns`: of any bucket. */
uint64_t slo_next_bound(uint64_t bound_ns, uint64_t slo_ns, uint64_t longest_ns, uint64_t missed,
                        uint64_t seen);

/* An answer of `m` took `took_ns` from admission on. Any worker. */
void slo_observe(const model *m, uint64_t took_ns, uint64_t longest_ns);

#endif

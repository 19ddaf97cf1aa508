#ifndef LOADTEST_WORKLOAD_RANDOM_H
#define LOADTEST_WORKLOAD_RANDOM_H

#include <stdint.h>

/* Seeded pseudo-random numbers: xoshiro256** (Blackman and Vigna), state filled by splitmix64. The
 * same seed gives the same load on every machine. Owned by one thread. */
typedef struct random_state {
    uint64_t word[4];
} random_state;

void random_seed(random_state *r, uint64_t seed);
uint64_t random_u64(random_state *r);
/* Uniform, 0 < u <= 1: its logarithm is finite. */
double random_unit(random_state *r);
/* Uniform integer in [0, bound), bound > 0. */
uint64_t random_below(random_state *r, uint64_t bound);
/* Mean 0, variance 1. */
double random_normal(random_state *r);

#endif

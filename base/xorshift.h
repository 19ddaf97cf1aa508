#ifndef BASE_XORSHIFT_H
#define BASE_XORSHIFT_H

#include <stdint.h>

/* Pseudo-random numbers that are the same at each start, for experiments and tests; not for
 * secrets. One thread uses a state at a time; it is never 0. */

/* The next number of xorshift64* (Vigna, arXiv 1402.6246). */
static inline uint64_t xorshift_next(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * UINT64_C(2685821657736338717);
}

/* The next number of xorshift64 (Marsaglia 2003, "Xorshift RNGs"): plain, with weak low bits. */
static inline uint64_t xorshift64_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

#endif

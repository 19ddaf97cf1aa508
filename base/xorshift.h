#ifndef BASE_XORSHIFT_H
#define BASE_XORSHIFT_H

#include <stdint.h>

/* The next number of xorshift64* (Vigna 2016): for experiments that must be the same at each start.
 * Not for secrets. `*state` must not be 0; the caller's alone. */
static inline uint64_t xorshift_next(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * UINT64_C(2685821657736338717);
}

#endif

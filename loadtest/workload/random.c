#include "loadtest/workload/random.h"

#include <assert.h>
#include <math.h>

void random_seed(random_state *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        uint64_t z = seed += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        r->word[i] = z ^ (z >> 31);
    }
}

static uint64_t rotate_left(uint64_t x, int by)
{
    return (x << by) | (x >> (64 - by));
}

uint64_t random_u64(random_state *r)
{
    uint64_t *s = r->word, result = rotate_left(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

double random_unit(random_state *r)
{
    return (double)((random_u64(r) >> 11) + 1) * 0x1p-53;
}

uint64_t random_below(random_state *r, uint64_t bound)
{
    assert(bound > 0);
    /* Multiplication instead of a remainder; the bias is under bound / 2^64. */
    return (uint64_t)(((unsigned __int128)random_u64(r) * bound) >> 64);
}

double random_normal(random_state *r)
{
    /* Box and Muller; the second of the pair is not kept, so that one call is one draw. */
    double radius = sqrt(-2 * log(random_unit(r)));
    return radius * cos(2 * M_PI * random_unit(r));
}

#include "kernels/kernels_list.h"

/* Independent sums, in as many vectors of the base architecture as it has registers, but a few: at
 * 32 the latency of a multiplication and an addition, not the units, was measured on Golden Cove.
 */
#define CHAINS 48

double peak_f32_scalar(size_t rounds)
{
    static volatile float seed = 0.5f;
    float sums[CHAINS] = {0}, a = seed, b = seed;
    for (size_t r = 0; r < rounds; r++) {
        for (int i = 0; i < CHAINS; i++)
            sums[i] = sums[i] * a + b;
    }
    for (int i = 0; i < CHAINS; i++)
        seed = sums[i];
    return (double)rounds * CHAINS * 2;
}

double peak_u8s8_scalar(size_t rounds)
{
    static volatile uint32_t seed = 3;
    uint32_t sums[CHAINS] = {0}, a = seed, b = seed;
    for (size_t r = 0; r < rounds; r++) {
        for (int i = 0; i < CHAINS; i++)
            sums[i] = sums[i] * a + b;
    }
    for (int i = 0; i < CHAINS; i++)
        seed = sums[i];
    return (double)rounds * CHAINS * 2;
}

double peak_s16_scalar(size_t rounds)
{
    return peak_u8s8_scalar(rounds);
}

/* There is no such instruction: 0. */
double peak_bf16_scalar(size_t rounds)
{
    (void)rounds;
    return 0;
}

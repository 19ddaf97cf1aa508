#include "graph/quantise/smooth.h"

#include <criterion/criterion.h>
#include <math.h>

Test(quantise_smooth, alpha_says_who_bears_the_difference)
{
    enum { K = 3 };
    const float tops[K] = {1, 100, 10}, weights[K] = {1, 1, 1};
    float factors[K];
    quantise_smooth(tops, weights, K, 1, factors);
    cr_assert_float_eq(factors[0] * tops[0], factors[1] * tops[1], 1e-3);
    quantise_smooth(tops, weights, K, 0, factors);
    for (int k = 0; k < K; k++)
        cr_assert_float_eq(factors[k], 1, 1e-6);
    quantise_smooth(tops, weights, K, 0.5f, factors);
    cr_assert_float_eq(factors[0] / factors[1], 10, 1e-4);
}

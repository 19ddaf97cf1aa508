/* What int8 weights have beside them: factors of channels, and outliers in FP32. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "devices/cpu/encoder/internal.h"

Test(cpu_encoder_corrections, the_larger_a_channel_the_smaller_its_factor)
{
    enum { K = 4, N = 2 };
    const float w[N * K] = {1, -1, 0.5f, 0, 0.25f, 1, 1, 0}, tops[K] = {1, 100, 4, 5};
    float factors[K], product = 1;
    cpu_encoder_choose_factors(w, K, N, tops, factors);
    cr_assert_float_eq(factors[0] / factors[1], 10, 1e-4);
    cr_assert_float_eq(factors[0] / factors[2], 2, 1e-5);
    cr_assert_eq(factors[3], 1, "a channel without weights: %g", (double)factors[3]);
    for (int i = 0; i < 3; i++)
        product *= factors[i];
    cr_assert_float_eq(product, 1, 1e-5);
}

Test(cpu_encoder_corrections, factors_are_limited_and_1_where_nothing_is_known)
{
    const float w[] = {1, 1, 1}, tops[] = {1e-30f, 1, 1e30f};
    float factors[3];
    cpu_encoder_choose_factors(w, 3, 1, tops, factors);
    cr_assert_eq(factors[0], 64);
    cr_assert_eq(factors[2], 1.0f / 64);
    cpu_encoder_choose_factors(w, 3, 1, NULL, factors);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(factors[i], 1);
}

Test(cpu_encoder_corrections, outliers_leave_their_column_and_nothing_is_lost)
{
    enum { K = 64, N = 5 };
    float w[K * N], before[K * N];
    cpu_encoder_outlier out[CPU_ENCODER_OUTLIERS] = {{0, 0, 0}};
    for (int i = 0; i < K * N; i++)
        w[i] = (float)((i * 37) % 11 - 5) / 5;
    w[2 * K + 7] = 40;
    w[2 * K + 9] = -40; /* twins: only both together help */
    w[4 * K + 63] = -9;
    memcpy(before, w, sizeof w);
    cr_assert_eq(cpu_encoder_take_outliers(w, K, N, out), STATUS_OK);
    cr_assert(w[2 * K + 7] == 0 && w[2 * K + 9] == 0 && w[4 * K + 63] == 0);
    for (int i = 0; i < CPU_ENCODER_OUTLIERS; i++)
        w[out[i].n * K + out[i].k] += out[i].weight;
    cr_assert_eq(memcmp(before, w, sizeof w), 0);
}

Test(cpu_encoder_corrections, columns_without_outliers_and_zeros_keep_their_weights)
{
    float w[12] = {1, 1, 1, 1, 1, 1};
    cpu_encoder_outlier out[CPU_ENCODER_OUTLIERS] = {{0, 0, 0}};
    cr_assert_eq(cpu_encoder_take_outliers(w, 3, 4, out), STATUS_OK);
    float sum = 0;
    for (int i = 0; i < 12; i++)
        sum += w[i];
    for (int i = 0; i < CPU_ENCODER_OUTLIERS; i++)
        sum += out[i].weight;
    cr_assert_eq(sum, 6);
}

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu_features.h"
#include "kernels/gemm_f32.h"
#include "kernels/gemm_scaled.h"
#include "kernels/kernels_list.h"
#include "kernels/peak.h"

Test(select, unknown_level_is_named)
{
    const kernels *k = NULL;
    cr_assert_eq(kernels_select("avx9", &k), STATUS_INVALID_ARGUMENT);
    cr_assert_null(k);
    cr_assert_not_null(strstr(status_message(), "avx9"));
    cr_assert_not_null(strstr(status_message(), "avx512vnni"));
}

Test(select, scalar_cap_takes_scalar_only)
{
    const kernels *k = NULL;
    cr_assert_eq(kernels_select("scalar", &k), STATUS_OK);
    cr_assert_eq(k->level, KERNELS_SCALAR);
    cr_assert_eq((void *)k->gemm_f32, (void *)gemm_f32_scalar);
    cr_assert_eq((void *)k->softmax_f32, (void *)softmax_f32_scalar);
}

Test(select, every_level_fills_every_entry)
{
    for (int level = 0; level < KERNELS_LEVEL_COUNT; level++) {
        const kernels *k = NULL, *again = NULL;
        cr_assert_eq(kernels_select(kernels_level_name((kernels_level)level), &k), STATUS_OK);
        cr_assert_eq(kernels_select(kernels_level_name((kernels_level)level), &again), STATUS_OK);
        cr_assert_eq(k, again);
        cr_assert_leq(k->level, level);
#define KERNEL(entry, function, at, features) cr_assert_not_null((void *)k->entry);
#include "kernels/kernels.inc"
#undef KERNEL
    }
}

Test(select, best_is_what_the_cpu_has)
{
    const kernels *k = NULL;
    cr_assert_eq(kernels_select(NULL, &k), STATUS_OK);
    uint32_t features = cpu_features_detect();
    kernels_level want = features & CPU_AMX          ? KERNELS_AMX
                         : features & CPU_AVX512VNNI ? KERNELS_AVX512VNNI
                         : features & CPU_AVX512     ? KERNELS_AVX512
                         : features & CPU_AVXVNNI    ? KERNELS_AVXVNNI
                         : features & CPU_AVX2       ? KERNELS_AVX2
                                                     : KERNELS_SCALAR;
    cr_assert_eq(k->level, want);
}

Test(peak, bf16_only_when_a_tenth_faster)
{
    kernels_peaks even = {.s16 = 100, .bf16 = 109}, fast = {.s16 = 100, .bf16 = 111};
    cr_assert_eq(kernels_choose_bf16_format(&even), KERNELS_BF16_AS_S16);
    cr_assert_eq(kernels_choose_bf16_format(&fast), KERNELS_BF16_AS_BF16);
}

Test(peak, is_measured)
{
    const kernels *k = NULL;
    kernels_peaks peaks = {0};
    cr_assert_eq(kernels_select(NULL, &k), STATUS_OK);
    kernels_measure_peak(k, &peaks);
    cr_assert_gt(peaks.f32, 1e8);
    cr_assert_gt(peaks.u8s8, 1e8);
    cr_assert_gt(peaks.s16, 1e8);
}

/* Two measurements differ in their last digits; whoever asks twice gets one. */
Test(peak, is_the_same_for_the_whole_process)
{
    const kernels *k = NULL;
    cr_assert_eq(kernels_select(NULL, &k), STATUS_OK);
    kernels_peaks first = *kernels_peaks_of(k), again = *kernels_peaks_of(k);
    cr_assert_eq(memcmp(&first, &again, sizeof first), 0);
    cr_assert_gt(first.u8s8, 1e8);
}

Test(scalar, known_values)
{
    float x[6] = {0, 1, -1, 2, -3, 0.5f}, y[6];
    gelu_f32_scalar(x, y, 6);
    cr_assert_float_eq(y[1], 0.8413447f, 1e-6);
    cr_assert_float_eq(y[4], -0.0040497f, 1e-6);
    gelu_tanh_f32_scalar(x, y, 6);
    cr_assert_float_eq(y[1], 0.8411920f, 1e-6);
    sigmoid_f32_scalar(x, y, 6);
    cr_assert_float_eq(y[3], 0.8807971f, 1e-6);
    silu_f32_scalar(x, y, 6);
    cr_assert_float_eq(y[2], -0.2689414f, 1e-6);
    erf_f32_scalar(x, y, 6);
    cr_assert_float_eq(y[5], 0.5204999f, 1e-6);
}

/* A GEMM small enough to do by hand. */
Test(scalar, u8s8_by_hand)
{
    const int8_t w[2][3] = {{1, -2, 127}, {3, 4, -128}}; /* [k][n] */
    const uint8_t a[2] = {130, 126};                     /* +2, -2 */
    uint8_t packed[512] __attribute__((aligned(64)));
    cr_assert_leq(gemm_u8s8_packed_bytes(2, 3), sizeof packed);
    gemm_pack_u8s8_scalar(&w[0][0], 3, 1, 2, 3, packed);
    int32_t c[3];
    gemm_u8s8 g = {.m = 1, .n = 3, .k = 2, .a = a, .a_stride = 2, .b = packed, .c = c};
    g.c_stride = 3;
    gemm_u8s8_scalar(&g);
    cr_assert_eq(c[0], -4);
    cr_assert_eq(c[1], -12);
    cr_assert_eq(c[2], 510);
}

Test(scalar, gemm_f32_by_hand)
{
    const float a[2][2] = {{1, 2}, {3, 4}}, b[2][2] = {{5, 6}, {7, 8}}, bias[2] = {1, -100};
    float packed[64], c[2][2];
    cr_assert_eq(gemm_f32_packed_count(2, 2), 64);
    gemm_pack_f32_scalar(&b[0][0], 2, 1, 2, 2, packed);
    gemm_f32 g = {.m = 2,
                  .n = 2,
                  .k = 2,
                  .a = &a[0][0],
                  .a_stride = 2,
                  .b = packed,
                  .c = &c[0][0],
                  .c_stride = 2,
                  .epilogue = {.bias = bias}};
    g.epilogue.activation = KERNELS_RELU;
    gemm_f32_scalar(&g);
    cr_assert_eq(c[0][0], 20);
    cr_assert_eq(c[0][1], 0);
    cr_assert_eq(c[1][0], 44);
    cr_assert_eq(c[1][1], 0);
}

/* DFT and STFT against the sum of their definition, in double. */
#include <criterion/criterion.h>
#include <math.h>

#include "tests/unit/devices/cpu/case.h"

/* Sum over t of x(t) * turn(2 pi t bin / length); real and imaginary part. */
static void expect_bin(const double *re, const double *im, int64_t count, int64_t length,
                       int64_t bin, bool is_inverse, double out[2])
{
    out[0] = out[1] = 0;
    for (int64_t t = 0; t < count && t < length; t++) {
        double angle = 2 * M_PI * (double)(t * bin % length) / (double)length;
        double c = cos(angle), s = is_inverse ? sin(angle) : -sin(angle);
        out[0] += re[t] * c - im[t] * s;
        out[1] += re[t] * s + im[t] * c;
    }
    for (int i = 0; is_inverse && i < 2; i++)
        out[i] /= (double)length;
}

enum { SAMPLES = 2049 }; /* 3 * 683: beyond the lengths that a matrix is made for */

static void check_dft(int64_t samples, int64_t length, bool is_inverse)
{
    static double re[SAMPLES], im[SAMPLES];
    cpu_case c = {.attributes = {graph_make_int("inverse", is_inverse)}, .attribute_count = 1};
    tensor *x = cpu_case_random(&c, DTYPE_F32, DIMS(1, samples, 2, 2));
    cpu_case_input(&c, DTYPE_I64, DIMS(), (double[]){(double)length});
    cpu_case_input(&c, DTYPE_I64, DIMS(), (double[]){1});
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_DFT, 1), STATUS_OK, "%s", status_message());
    for (int64_t line = 0; line < 2; line++) {
        for (int64_t t = 0; t < samples; t++) {
            re[t] = cpu_case_get(x, (t * 2 + line) * 2);
            im[t] = cpu_case_get(x, (t * 2 + line) * 2 + 1);
        }
        for (int64_t bin = 0; bin < length; bin += 1 + length / 50) {
            double expected[2];
            expect_bin(re, im, samples, length, bin, is_inverse, expected);
            for (int part = 0; part < 2; part++) {
                int64_t at = (bin * 2 + line) * 2 + part;
                cpu_case_expect_near(cpu_case_get(&c.outputs[0], at), expected[part],
                                     1e-4 + 1e-7 * (double)length, at);
            }
        }
    }
    cpu_case_dispose(&c);
}

Test(cpu_fourier, dft_of_short_and_long_lines_cut_and_padded)
{
    const int64_t cases[][2] = {{12, 12},     {12, 7},    {12, 30},   {SAMPLES, SAMPLES},
                                {5, SAMPLES}, {128, 128}, {100, 256}, {300, 256}};
    for (int i = 0; i < 8; i++)
        for (int inverse = 0; inverse < 2; inverse++)
            check_dft(cases[i][0], cases[i][1], inverse != 0);
}

Test(cpu_fourier, a_onesided_spectrum_transforms_back)
{
    static const int64_t lengths[] = {8, 9, 128, 256, SAMPLES, SAMPLES + 1};
    for (int turn = 0; turn < 6; turn++) {
        int64_t n = lengths[turn];
        cpu_case c = {.attributes = {graph_make_int("onesided", 1)}, .attribute_count = 1};
        tensor *x = cpu_case_random(&c, DTYPE_F32, DIMS(n, 1));
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_DFT, 1), STATUS_OK, "%s", status_message());
        cpu_case back = {
            .attributes = {graph_make_int("onesided", 1), graph_make_int("inverse", 1)},
            .attribute_count = 2};
        tensor *y = cpu_case_input(&back, DTYPE_F32, DIMS(n / 2 + 1, 2), NULL);
        for (int64_t i = 0; i < tensor_count(y); i++)
            tensor_set_number(y, i, cpu_case_get(&c.outputs[0], i));
        cpu_case_input(&back, DTYPE_I64, DIMS(), (double[]){(double)n});
        cr_assert_eq(cpu_case_run(&back, GRAPH_OP_DFT, 1), STATUS_OK);
        for (int64_t i = 0; i < n; i++)
            cpu_case_expect_near(cpu_case_get(&back.outputs[0], i), cpu_case_get(x, i), 1e-5, i);
        cpu_case_dispose(&c);
        cpu_case_dispose(&back);
    }
}

Test(cpu_fourier, stft_weighs_overlapping_frames)
{
    enum { LENGTH = 50, FRAME = 16, STEP = 5, FRAMES = (LENGTH - FRAME) / STEP + 1 };
    cpu_case c = {0};
    tensor *x = cpu_case_random(&c, DTYPE_F32, DIMS(2, LENGTH));
    cpu_case_input(&c, DTYPE_I64, DIMS(), (double[]){STEP});
    tensor *window = cpu_case_random(&c, DTYPE_F32, DIMS(FRAME));
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_STFT, 1), STATUS_OK);
    for (int64_t row = 0; row < 2; row++)
        for (int64_t frame = 0; frame < FRAMES; frame++) {
            double re[FRAME], im[FRAME] = {0}, expected[2];
            for (int64_t t = 0; t < FRAME; t++)
                re[t] = cpu_case_get(x, row * LENGTH + frame * STEP + t) * cpu_case_get(window, t);
            for (int64_t bin = 0; bin <= FRAME / 2; bin++) {
                expect_bin(re, im, FRAME, FRAME, bin, false, expected);
                int64_t at = ((row * FRAMES + frame) * (FRAME / 2 + 1) + bin) * 2;
                cpu_case_expect_near(cpu_case_get(&c.outputs[0], at), expected[0], 1e-5, at);
                cpu_case_expect_near(cpu_case_get(&c.outputs[0], at + 1), expected[1], 1e-5, at);
            }
        }
    cpu_case_dispose(&c);
}

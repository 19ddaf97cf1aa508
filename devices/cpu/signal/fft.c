#include "devices/cpu/signal/fft.h"

#include <math.h>

status fft_create(arena *memory, int64_t length, bool is_inverse, fft *out)
{
    double *turns = arena_allocate(memory, (size_t)length * 2 * sizeof *turns);
    if (!turns)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a transform of length %lld",
                           (long long)length);
    for (int64_t k = 0; k < length; k++) {
        double angle = 2 * M_PI * (double)k / (double)length;
        turns[2 * k] = cos(angle);
        turns[2 * k + 1] = is_inverse ? sin(angle) : -sin(angle);
    }
    *out = (fft){length, turns};
    return STATUS_OK;
}

static int64_t smallest_factor(int64_t n)
{
    for (int64_t p = 2; p * p <= n; p++)
        if (n % p == 0)
            return p;
    return n;
}

/* out[0 .. n) = transform of in[0], in[stride], ...; turns advance by `step` = length / n. */
static void transform(const fft *f, const double *in, int64_t stride, int64_t n, double *out,
                      double *spare)
{
    if (n == 1) {
        out[0] = in[0];
        out[1] = in[1];
        return;
    }
    int64_t p = smallest_factor(n), m = n / p, step = f->length / n;
    for (int64_t j = 0; j < p; j++)
        transform(f, in + 2 * j * stride, stride * p, m, out + 2 * j * m, spare);
    for (int64_t k = 0; k < m; k++) {
        for (int64_t j = 0; j < p; j++) {
            const double *w = f->turns + 2 * (j * k * step), *x = out + 2 * (j * m + k);
            spare[2 * j] = x[0] * w[0] - x[1] * w[1];
            spare[2 * j + 1] = x[0] * w[1] + x[1] * w[0];
        }
        for (int64_t r = 0; r < p; r++) {
            double re = 0, im = 0;
            for (int64_t j = 0; j < p; j++) {
                const double *w = f->turns + 2 * (j * r % p * m * step);
                re += spare[2 * j] * w[0] - spare[2 * j + 1] * w[1];
                im += spare[2 * j] * w[1] + spare[2 * j + 1] * w[0];
            }
            out[2 * (r * m + k)] = re;
            out[2 * (r * m + k) + 1] = im;
        }
    }
}

/* One stage for a power of two: `step` transforms beside each other, of n / step numbers each,
 * become twice as many of half the length. */
static void halve(const fft *f, int64_t step, const double *restrict in, double *restrict out)
{
    int64_t half = f->length / step / 2;
    for (int64_t p = 0; p < half; p++) {
        double c = f->turns[2 * p * step], s = f->turns[2 * p * step + 1];
        const double *a = in + 2 * step * p, *b = a + 2 * step * half;
        double *sum = out + 4 * step * p, *difference = sum + 2 * step;
        for (int64_t i = 0; i < 2 * step; i += 2) {
            double re = a[i] - b[i], im = a[i + 1] - b[i + 1];
            sum[i] = a[i] + b[i];
            sum[i + 1] = a[i + 1] + b[i + 1];
            difference[i] = re * c - im * s;
            difference[i + 1] = re * s + im * c;
        }
    }
}

bool fft_is_power_of_two(int64_t length)
{
    return length > 0 && (length & (length - 1)) == 0;
}

void fft_run(const fft *f, const double *in, double *out, double *spare)
{
    if (!fft_is_power_of_two(f->length) || f->length < 2) {
        transform(f, in, 1, f->length, out, spare);
        return;
    }
    /* The order of the results sorts itself (Stockham); the last stage writes to `out`. */
    bool is_to_out = __builtin_ctzll((unsigned long long)f->length) % 2 == 1;
    for (int64_t step = 1; step < f->length; step *= 2, is_to_out = !is_to_out) {
        double *to = is_to_out ? out : spare;
        halve(f, step, in, to);
        in = to;
    }
}

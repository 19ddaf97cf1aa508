#ifndef TESTS_KERNELS_HARNESS_H
#define TESTS_KERNELS_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

/* A small harness that compares every variant of every kernel with its definition, in the spirit of
 * dav1d's checkasm: guarded buffers, seeded random data, one line a variant. One thread. */

typedef void (*kernel_function)(void);

typedef struct variant {
    const char *entry, *name; /* "gemm_f32", "gemm_f32_avx2" */
    kernels_level level;
    uint32_t features;
    kernel_function function;
} variant;

/* One per table entry: runs `v->function` on many inputs and calls check_fail() on a difference. */
typedef void (*check_fn)(const variant *v);
/* Prints one or more lines of speed. */
typedef void (*bench_fn)(const variant *v);

typedef struct check {
    const char *entry;
    check_fn run;
    bench_fn bench; /* or NULL */
} check;

/* Each check_*.c exports its list, ended by a NULL entry. */
extern const check checks_gemm_f32[], checks_rows[], checks_elementwise[], checks_gemm_scaled[],
    checks_quantise[], checks_attention[], checks_image[], checks_bytes[], checks_conv[],
    checks_activation[], checks_lines[], checks_line_moves[], checks_plain[];

/* The current variant is wrong; the message says on what input. Only the first is printed. */
void check_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool check_has_failed(void);
/* True while the variant is emulated, an instruction at a time and about 10 us each: do less. */
bool check_is_slow(void);

/* `bytes` bytes that end just before an unreadable page, or begin just after one (by turns); filled
 * with 0xa5, as is the slack on the other side, whose change counts as a failure. Freed when the
 * variant is done, or at check_reset(). Aligned to `alignment` (a power of two up to 4096) if the
 * size is a multiple of it. */
void *check_buffer(size_t bytes, size_t alignment);
float *check_floats(size_t count);
/* Frees all buffers after looking at their slack. */
void check_reset(void);

/* Deterministic random numbers; the seed is that of the variant's name. */
uint32_t check_random(void);
size_t check_random_below(size_t n);
/* Uniform in [low, high). */
float check_random_float(float low, float high);
void check_fill_floats(float *x, size_t count, float low, float high);
void check_fill_bytes(void *x, size_t bytes);

/* Fails unless |got - want| <= bound, or both NaN, or equal infinities. False on failure. */
bool check_close(const char *what, size_t index, double got, double want, double bound);

/* --bench: seconds of the fastest of several runs of body(context). */
double bench_seconds(void (*body)(void *context), void *context);
/* Gop/s that the units can do at the current variant's level; `type`: "f32", "u8s8", "s16", "bf16".
 */
double bench_peak(const char *type);
/* `unit` such as "GFLOP/s"; `peak` (same unit) prints the fraction when it is not 0. */
void bench_line(const char *what, double value, const char *unit, double peak);

#endif

#include "tests/kernels/harness.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/xorshift.h"
#include "kernels/cpu_features.h"
#include "kernels/kernels_list.h"
#include "kernels/peak.h"
#include "tests/kernels/emulate.h"

#define BUFFERS_MAX 64
#define PAGE 4096

static const variant variants[] = {
#define KERNEL(entry, function, level, features)                                                   \
    {#entry, #function, KERNELS_##level, features, (kernel_function)function},
#include "kernels/kernels.inc"
#undef KERNEL
};

static const check *const check_lists[] = {
    checks_gemm_f32,  checks_rows,       checks_elementwise, checks_gemm_scaled, checks_quantise,
    checks_attention, checks_image,      checks_bytes,       checks_conv,        checks_activation,
    checks_lines,     checks_line_moves, checks_plain};

static struct guarded {
    uint8_t *map, *data;
    size_t map_bytes, data_bytes;
} buffers[BUFFERS_MAX];
static int buffer_count;
static uint64_t random_state;
static bool failed, is_emulated;
static const variant *current;
static sigjmp_buf escape;

bool check_is_slow(void)
{
    return is_emulated && strstr(current->name, "amx") == NULL;
}

bool check_has_failed(void)
{
    return failed;
}

void check_fail(const char *format, ...)
{
    if (failed)
        return;
    failed = true;
    va_list arguments;
    va_start(arguments, format);
    printf("FAILED %s: ", current->name);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
}

void *check_buffer(size_t bytes, size_t alignment)
{
    if (buffer_count == BUFFERS_MAX)
        abort();
    size_t inner = (bytes + PAGE - 1) / PAGE * PAGE + PAGE;
    struct guarded *b = &buffers[buffer_count];
    b->map_bytes = inner + 2 * PAGE;
    b->map = mmap(NULL, b->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b->map == MAP_FAILED)
        abort();
    memset(b->map, 0xa5, b->map_bytes);
    bool at_end = buffer_count++ % 4 != 3;
    size_t offset = at_end ? inner - bytes : 0;
    b->data = b->map + PAGE + offset / alignment * alignment;
    b->data_bytes = bytes;
    mprotect(b->map, PAGE, PROT_NONE);
    mprotect(b->map + PAGE + inner, PAGE, PROT_NONE);
    return b->data;
}

float *check_floats(size_t count)
{
    return check_buffer(count * sizeof(float), sizeof(float));
}

void check_reset(void)
{
    for (int i = 0; i < buffer_count; i++) {
        struct guarded *b = &buffers[i];
        const uint8_t *end = b->map + b->map_bytes - PAGE;
        for (const uint8_t *p = b->map + PAGE; p < end; p++) {
            bool is_slack = p < b->data || p >= b->data + b->data_bytes;
            if (is_slack && *p != 0xa5)
                check_fail("wrote outside buffer %d, at byte %td of %zu", i, p - b->data,
                           b->data_bytes);
        }
        munmap(b->map, b->map_bytes);
    }
    buffer_count = 0;
}

uint32_t check_random(void)
{
    return (uint32_t)(xorshift_next(&random_state) >> 32);
}

size_t check_random_below(size_t n)
{
    return (size_t)((uint64_t)check_random() * n >> 32);
}

float check_random_float(float low, float high)
{
    return low + (high - low) * (float)(check_random() >> 8) * 0x1p-24f;
}

void check_fill_floats(float *x, size_t count, float low, float high)
{
    for (size_t i = 0; i < count; i++)
        x[i] = check_random_float(low, high);
}

void check_fill_bytes(void *x, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)x)[i] = (uint8_t)check_random();
}

bool check_close(const char *what, size_t index, double got, double want, double bound)
{
    if (isnan(want) ? isnan(got) : got == want || fabs(got - want) <= bound)
        return true;
    check_fail("%s: element %zu is %.9g, not %.9g (+- %.3g)", what, index, got, want, bound);
    return false;
}

double bench_seconds(void (*body)(void *context), void *context)
{
    uint64_t best = UINT64_MAX, start = clock_now_ns();
    for (int runs = 0; runs < 5 || clock_now_ns() - start < 150000000; runs++) {
        uint64_t before = clock_now_ns();
        body(context);
        uint64_t spent = clock_now_ns() - before;
        best = spent < best ? spent : best;
    }
    return (double)best * 1e-9;
}

void bench_line(const char *what, double value, const char *unit, double peak)
{
    printf("  %-28s %-34s %9.2f %s", current->name, what, value, unit);
    if (peak > 0)
        printf("  %5.1f%% of peak", 100 * value / peak);
    printf("\n");
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    if (signal == SIGILL && is_emulated && emulate_instruction(context))
        return;
    check_fail("%s at address %p", signal == SIGILL ? "illegal instruction" : "access outside",
               info->si_addr);
    siglongjmp(escape, 1);
}

static const check *find_check(const char *entry)
{
    for (size_t l = 0; l < sizeof check_lists / sizeof *check_lists; l++) {
        for (const check *c = check_lists[l]; c->entry; c++) {
            if (strcmp(c->entry, entry) == 0)
                return c;
        }
    }
    return NULL;
}

static uint64_t seed_of(const char *name, uint64_t seed)
{
    for (; *name; name++)
        seed = (seed ^ (uint8_t)*name) * 1099511628211u;
    return seed | 1;
}

double bench_peak(const char *entry)
{
    kernels_peaks peaks;
    const kernels *k;
    status s = kernels_select(kernels_level_name(current->level), &k);
    if (s)
        abort();
    kernels_measure_peak(k, &peaks);
    return 1e-9 * (strcmp(entry, "f32") == 0    ? peaks.f32
                   : strcmp(entry, "u8s8") == 0 ? peaks.u8s8
                   : strcmp(entry, "s16") == 0  ? peaks.s16
                                                : peaks.bf16);
}

static void run_variant(const check *c)
{
    if (sigsetjmp(escape, 1) == 0) {
        for (int round = 0; round < (check_is_slow() ? 1 : 2) && !failed;
             round++) { /* the second with FTZ and DAZ */
            if (round)
                kernels_prepare_thread();
            c->run(current);
            check_reset();
        }
    }
    check_reset();
}

int main(int argc, char **argv)
{
    bool is_bench = false;
    const char *pattern = "";
    uint64_t seed = 14695981039346656037u;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--bench") == 0)
            is_bench = true;
        else if (strncmp(argv[i], "--seed=", 7) == 0)
            seed = strtoull(argv[i] + 7, NULL, 0);
        else
            pattern = argv[i];
    }
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGILL, &action, NULL);
    uint32_t features = cpu_features_detect();
    int passed = 0, failures = 0, skipped = 0;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        current = &variants[i];
        if (!strstr(current->name, pattern))
            continue;
        uint32_t missing = current->features & ~features;
        is_emulated = missing && emulate_can(missing);
        if (strncmp(current->entry, "peak_", 5) == 0)
            continue; /* measures, does not compute */
        const check *c = find_check(current->entry);
        if (missing && (!is_emulated || is_bench)) {
            printf("skipped %s: this CPU lacks it\n", current->name);
            skipped++;
            continue;
        }
        failed = false;
        random_state = seed_of(current->name, seed);
        if (!c)
            check_fail("no check is written for %s", current->entry);
        else if (!is_bench)
            run_variant(c);
        else if (c->bench)
            c->bench(current);
        if (!failed && is_emulated)
            printf("emulated %s: %llu instructions trapped\n", current->name,
                   (unsigned long long)emulate_take_count());
        failures += failed;
        passed += !failed;
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failures, skipped);
    return failures != 0;
}

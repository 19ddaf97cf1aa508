#include "devices/pjrt/footprint.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIB ((int64_t)1 << 30)

void pjrt_footprint_dispose(pjrt_footprint *f)
{
    free(f->claims);
    f->claims = NULL;
    f->count = f->capacity = 0;
}

const pjrt_claim *pjrt_footprint_largest(const pjrt_footprint *f)
{
    const pjrt_claim *largest = NULL;
    for (int i = 0; i < f->count; i++)
        if (largest == NULL || f->claims[i].batch_bytes > largest->batch_bytes)
            largest = &f->claims[i];
    return largest;
}

static int64_t code_bytes(const pjrt_footprint *f)
{
    int64_t bytes = 0;
    for (int i = 0; i < f->count; i++)
        bytes += f->claims[i].code_bytes;
    return bytes;
}

int64_t pjrt_footprint_bytes_at(const pjrt_footprint *f, int slots)
{
    const pjrt_claim *largest = pjrt_footprint_largest(f);
    return f->weight_bytes + code_bytes(f) + (largest ? slots * largest->batch_bytes : 0);
}

int64_t pjrt_footprint_bytes(const pjrt_footprint *f)
{
    return pjrt_footprint_bytes_at(f, f->slots);
}

int pjrt_footprint_depth(const pjrt_footprint *f, int slots)
{
    while (slots > f->slots && f->memory_bytes > 0 &&
           pjrt_footprint_bytes_at(f, slots) > f->memory_bytes)
        slots--;
    return slots;
}

/* "1.50 GiB", "12.00 MiB", "240.1 KiB". */
static const char *put_bytes(char text[24], int64_t bytes)
{
    if (bytes >= GIB)
        snprintf(text, 24, "%.2f GiB", (double)bytes / (double)GIB);
    else if (bytes >= 10 * 1048576)
        snprintf(text, 24, "%.2f MiB", (double)bytes / 1048576);
    else
        snprintf(text, 24, "%.1f KiB", (double)bytes / 1024);
    return text;
}

static status refuse(const pjrt_footprint *f)
{
    char sum[24], memory[24], weights[24], code[24], batch[24];
    const pjrt_claim *largest = pjrt_footprint_largest(f);
    return status_fail(
        STATUS_RESOURCE_EXHAUSTED,
        "the device has %s and would need %s: weights %s, code of %d programs %s, %d batches of "
        "%lldx%lld in flight with %s each",
        put_bytes(memory, f->memory_bytes), put_bytes(sum, pjrt_footprint_bytes(f)),
        put_bytes(weights, f->weight_bytes), f->count, put_bytes(code, code_bytes(f)), f->slots,
        (long long)largest->bucket.batch, (long long)largest->bucket.sequence,
        put_bytes(batch, largest->batch_bytes));
}

status pjrt_footprint_add(pjrt_footprint *f, const pjrt_claim *claim, int64_t weight_bytes)
{
    if (f->count == f->capacity) {
        f->capacity = f->capacity ? 2 * f->capacity : 64;
        f->claims = realloc(f->claims, (size_t)f->capacity * sizeof *f->claims);
        assert(f->claims != NULL);
    }
    int64_t before = f->weight_bytes;
    f->claims[f->count++] = *claim;
    f->weight_bytes = weight_bytes;
    if (f->memory_bytes == 0 || pjrt_footprint_bytes(f) <= f->memory_bytes)
        return STATUS_OK;
    status s = refuse(f);
    f->count--;
    f->weight_bytes = before;
    return s;
}

void pjrt_footprint_remove(pjrt_footprint *f, const pjrt_claim *claim)
{
    int i = 0;
    while (i < f->count && (f->claims[i].code_bytes != claim->code_bytes ||
                            f->claims[i].batch_bytes != claim->batch_bytes))
        i++;
    assert(i < f->count);
    f->claims[i] = f->claims[--f->count];
}

int64_t pjrt_argument_bytes(const stablehlo_argument *a)
{
    tensor t = {.dtype = a->dtype, .rank = a->rank};
    memcpy(t.dims, a->dims, sizeof t.dims);
    return (int64_t)tensor_bytes(&t);
}

/* Of its inputs, or of its weights. */
static int64_t sum_arguments(const stablehlo_program *program, bool is_input)
{
    int64_t bytes = 0;
    for (int i = 0; i < program->argument_count; i++)
        if ((program->arguments[i].input >= 0) == is_input)
            bytes += pjrt_argument_bytes(&program->arguments[i]);
    return bytes;
}

int64_t pjrt_footprint_weights(const stablehlo_program *program)
{
    return sum_arguments(program, false);
}

static int64_t or_none(int64_t bytes)
{
    return bytes > 0 ? bytes : 0;
}

pjrt_claim pjrt_footprint_claim(const stablehlo_program *program, const pjrt_compiled *facts,
                                device_bucket bucket)
{
    return (pjrt_claim){.code_bytes = or_none(facts->code_bytes),
                        .batch_bytes = sum_arguments(program, true) + or_none(facts->output_bytes) +
                                       or_none(facts->temporary_bytes),
                        .bucket = bucket};
}

/* Google Cloud, "TPU system architecture": per chip; a chip of tpu7x is two devices. */
static const struct known_kind {
    const char *kind;
    int64_t bytes;
    double peak_per_s;
} known_kinds[] = {{"TPU v4", 32 * GIB, 275e12},
                   {"TPU v5 lite", 16 * GIB, 197e12},
                   {"TPU v5", 95 * GIB, 459e12},
                   {"TPU v6 lite", 32 * GIB, 918e12},
                   {"TPU7x", 96 * GIB, 1153.5e12}};

static const struct known_kind *find_kind(const char *device_kind)
{
    for (size_t i = 0; i < sizeof known_kinds / sizeof *known_kinds; i++)
        if (strcmp(known_kinds[i].kind, device_kind) == 0)
            return &known_kinds[i];
    return NULL;
}

int64_t pjrt_footprint_memory_of(const char *device_kind)
{
    const struct known_kind *k = find_kind(device_kind);
    return k != NULL ? k->bytes : 0;
}

double pjrt_footprint_peak_of(const char *device_kind)
{
    const struct known_kind *k = find_kind(device_kind);
    return k != NULL ? k->peak_per_s : 0;
}

/* Loads of a model in which the n-th allocation of our own code fails, from the heap or from an
 * arena, or all from the n-th on.
 *
 *   torture_load PATH [TRIALS]     a model's folder or an .onnx file; about TRIALS of the
 * allocations (default: each)
 *
 * The linker puts the functions below in front of the allocator's, for our objects and none of the
 * libraries'. Each load ends with STATUS_OUT_OF_MEMORY and a message, or with a model; what a
 * failed one leaves behind, the sanitizer of the build reports. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "models/loading/load.h"
#include "tests/torture/failing.h"

#define FIRST 16 /* allocations that fail in any case: what every load begins with */

void *__real_arena_allocate(arena *a, size_t bytes);
void *__real_arena_allocate_aligned(arena *a, size_t bytes, size_t alignment);
void *__real_arena_allocate_zeroed(arena *a, size_t count, size_t bytes);
char *__real_arena_copy_string(arena *a, const char *text, size_t bytes);

void *__wrap_arena_allocate(arena *a, size_t bytes);
void *__wrap_arena_allocate_aligned(arena *a, size_t bytes, size_t alignment);
void *__wrap_arena_allocate_zeroed(arena *a, size_t count, size_t bytes);
char *__wrap_arena_copy_string(arena *a, const char *text, size_t bytes);
char *__wrap_arena_format(arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

void *__wrap_arena_allocate(arena *a, size_t bytes)
{
    return failing_next() ? NULL : __real_arena_allocate(a, bytes);
}

void *__wrap_arena_allocate_aligned(arena *a, size_t bytes, size_t alignment)
{
    return failing_next() ? NULL : __real_arena_allocate_aligned(a, bytes, alignment);
}

void *__wrap_arena_allocate_zeroed(arena *a, size_t count, size_t bytes)
{
    return failing_next() ? NULL : __real_arena_allocate_zeroed(a, count, bytes);
}

char *__wrap_arena_copy_string(arena *a, const char *text, size_t bytes)
{
    return failing_next() ? NULL : __real_arena_copy_string(a, text, bytes);
}

char *__wrap_arena_format(arena *a, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int bytes = vasprintf(&text, format, arguments);
    va_end(arguments);
    char *kept =
        failing_next() || bytes < 0 ? NULL : __real_arena_copy_string(a, text, (size_t)bytes);
    free(text);
    return kept;
}

static void ignore(void *context, const char *text)
{
    (void)context;
    (void)text;
}

/* One load in which the allocations from `from` to `to` fail. Adds their number to *total, where it
 * is not NULL. */
static status load(const char *path, device *cpu, int64_t from, int64_t to, int64_t *total)
{
    model *m;
    load_options options = {.batch_max = 2, .sequence_max = 16, .precision = DEVICE_INT8};
    load_request request = {.name = "m",
                            .version = 1,
                            .folder = path,
                            .manifest = "none",
                            .options = &options,
                            .devices = &cpu,
                            .device_count = 1,
                            .report = ignore};
    failing_begin(from, to);
    status s = load_model(&request, &m);
    int64_t count = failing_end();
    if (total)
        *total = count;
    if (s)
        return s;
    bool is_whole = m->name != NULL && m->folder != NULL && m->batching_note != NULL;
    load_destroy(m);
    return is_whole ? STATUS_OK : status_fail(STATUS_INTERNAL, "a model without its names");
}

/* Adds to the counts what the loads of one model make of it. */
static void torture(const char *path, device *cpu, int64_t trials, int64_t *passed, int64_t *failed)
{
    int64_t total;
    if (load(path, cpu, INT64_MAX, INT64_MAX, &total)) {
        printf("%s: %s\n", path, status_message());
        *failed += 1;
        return;
    }
    int64_t step = trials > 0 && trials < total ? total / trials : 1;
    for (int64_t n = 0; n < total; n += n < FIRST ? 1 : step)
        for (int kind = 0; kind < 2; kind++) {
            status s = load(path, cpu, n, kind ? INT64_MAX : n + 1, NULL);
            bool is_right =
                s == STATUS_OK || (s == STATUS_OUT_OF_MEMORY && strstr(status_message(), "memory"));
            if (!is_right)
                printf("%s: allocation %lld of %lld%s: %s: %s\n", path, (long long)n,
                       (long long)total, kind ? " and all after it" : "", status_name(s),
                       status_message());
            *(is_right ? passed : failed) += 1;
        }
    if (load(path, cpu, INT64_MAX, INT64_MAX, NULL)) {
        printf("%s: not afterwards: %s\n", path, status_message());
        *failed += 1;
    }
}

int main(int count, char **arguments)
{
    int64_t failed = 0, passed = 0;
    device *cpu;
    log_configure(LOG_ERROR, LOG_FORMAT_TEXT);
    if (count < 3 || device_cpu_create(1, NULL, &cpu)) {
        fprintf(stderr, "usage: torture_load TRIALS PATH...\n");
        return 2;
    }
    for (int i = 2; i < count; i++)
        torture(arguments[i], cpu, atoll(arguments[1]), &passed, &failed);
    cpu->interface->destroy(cpu);
    printf("%lld passed, %lld failed\n", (long long)passed, (long long)failed);
    return failed > 0;
}

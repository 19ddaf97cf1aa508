#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/repository/repository.h"
#include "tests/support/temporary.h"

static char root[TEMPORARY_FOLDER_BYTES];

static void run(const char *format, ...)
{
    char command[9000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    cr_assert_eq(system(command), 0, "%s", command);
}

static void begin(void)
{
    temporary_make(root);
}

static void end(void)
{
    temporary_remove(root);
}

static uint64_t executions(device *d)
{
    device_status s = {0};
    d->interface->describe(d, &s);
    return s.executions;
}

/* Executions that it takes to load the model, and what was found. */
static uint64_t load_once(device *cpu, const char *onnx, model_batching *out)
{
    char cache[200];
    snprintf(cache, sizeof cache, "%s/cache", root);
    repository_model_options one = {.name = "digits", .path = onnx};
    repository_options options = {
        .models = &one, .model_count = 1, .load = {.cache_folder = cache}};
    repository *r;
    const model *m;
    uint64_t before = executions(cpu);
    cr_assert_eq(repository_create(&options, &cpu, 1, &r), STATUS_OK);
    cr_assert_eq(repository_wait(r), STATUS_OK, "%s", status_message());
    cr_assert_eq(repository_find(r, "digits", 6, 0, &m), STATUS_OK);
    *out = m->batching;
    cr_assert(strstr(m->batching_note, "rows are independent"), "%s", m->batching_note);
    model_release(m);
    repository_destroy(r);
    return executions(cpu) - before;
}

Test(probe_cache, a_model_is_probed_once)
{
    char onnx[4096];
    const char *shared = getenv("PENSTOCK_SHARED");
    snprintf(onnx, sizeof onnx, "%s/models/models/digits_mlp.onnx", shared ? shared : "../shared");
    if (access(onnx, R_OK) != 0)
        cr_skip_test("%s is absent", onnx);
    begin();
    device *cpu;
    model_batching first, later;
    cr_assert_eq(device_cpu_create(1, NULL, &cpu), STATUS_OK);
    uint64_t with_probe = load_once(cpu, onnx, &first);
    uint64_t cached = load_once(cpu, onnx, &later);
    cr_assert_lt(cached, with_probe);
    cr_assert_eq(later.can_batch, first.can_batch);
    cr_assert_eq(later.can_pad, first.can_pad);
    cr_assert_eq(later.batch_max, first.batch_max);
    cr_assert_eq(later.sequence_max, first.sequence_max);
    run("sed -i 's/ 1 / 0 /' %s/cache/*.batching", root);
    cr_assert_eq(load_once(cpu, onnx, &later), with_probe, "a damaged file is not believed");
    cr_assert(later.can_batch);
    cpu->interface->destroy(cpu);
    end();
}

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "models/loading/fingerprint.h"
#include "models/repository/repository.h"
#include "tests/support/temporary.h"

/* What later starts need not do again: models/loading/fingerprint.h, models/batching/probe_cache.h.
 */

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

/* Later than the two seconds for which a changed file is not trusted. */
#define LATER_NS UINT64_C(4000000000)

static uint64_t print_after(uint64_t after_ns, const char *folder, const char *cache)
{
    char path[200], cache_path[200];
    snprintf(path, sizeof path, "%s/%s", root, folder);
    snprintf(cache_path, sizeof cache_path, "%s/%s", root, cache ? cache : "");
    return fingerprint_model(path, cache ? cache_path : NULL, clock_wall_ns() + after_ns);
}

static uint64_t print_of(const char *folder, const char *cache)
{
    return print_after(0, folder, cache);
}

Test(fingerprint, names_contents_and_not_places)
{
    begin();
    run("mkdir %s/a && echo one > %s/a/x && echo two > %s/a/y && cp -r %s/a %s/b && echo '{}' > "
        "%s/b/model.json",
        root, root, root, root, root, root);
    uint64_t a = print_of("a", NULL);
    cr_assert_neq(a, 0);
    cr_assert_eq(print_of("b", NULL), a);
    run("mv %s/b/x %s/b/z", root, root);
    cr_assert_neq(print_of("b", NULL), a, "another name");
    run("echo onE > %s/a/x", root);
    cr_assert_neq(print_of("a", NULL), a, "another content of the same size");
    end();
}

Test(fingerprint, is_kept_until_a_file_changes)
{
    begin();
    run("mkdir %s/a && echo one > %s/a/x", root, root);
    uint64_t a = print_of("a", "cache");
    char has_record[200];
    snprintf(has_record, sizeof has_record, "ls %s/cache/*.files > /dev/null 2>&1", root);
    cr_assert_neq(system(has_record), 0, "files that changed just now are not trusted");
    cr_assert_eq(print_after(LATER_NS, "a", "cache"), a);
    cr_assert_eq(system(has_record), 0);
    run("sed -i s/^................/00000000deadbeef/ %s/cache/*.files", root);
    cr_assert_eq(print_after(LATER_NS, "a", "cache"), 0xdeadbeef,
                 "the record is believed, no file is read");
    run("echo junk > $(ls %s/cache/*.files)", root);
    cr_assert_eq(print_after(LATER_NS, "a", "cache"), a, "a damaged record is not");
    run("touch -r %s/a/x %s/t && echo onE > %s/a/x && touch -r %s/t %s/a/x", root, root, root, root,
        root);
    cr_assert_neq(print_after(LATER_NS, "a", "cache"), a, "the time of change cannot be set back");
    end();
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

Test(probe_cache, experiments_are_done_once)
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
    uint64_t with_experiments = load_once(cpu, onnx, &first);
    uint64_t without = load_once(cpu, onnx, &later);
    cr_assert_lt(without, with_experiments);
    cr_assert_eq(later.can_batch, first.can_batch);
    cr_assert_eq(later.can_pad, first.can_pad);
    cr_assert_eq(later.batch_max, first.batch_max);
    cr_assert_eq(later.sequence_max, first.sequence_max);
    run("sed -i 's/ 1 / 0 /' %s/cache/*.batching", root);
    cr_assert_eq(load_once(cpu, onnx, &later), with_experiments, "a damaged file is not believed");
    cr_assert(later.can_batch);
    cpu->interface->destroy(cpu);
    end();
}

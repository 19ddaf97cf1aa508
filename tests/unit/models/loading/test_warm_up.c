#include "models/loading/warm_up.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include "models/loading/load.h"
#include "models/start/deferred_buckets.h"
#include "tests/support/temporary.h"

static char folder[TEMPORARY_FOLDER_BYTES];
static device *cpu;

static void report(void *context, const char *text)
{
    (void)context, (void)text;
}

/* The bundled digits, with that model.json. */
static model *load(const char *model_json, int64_t start_operations_max)
{
    char path[4096];
    model *m = NULL;
    temporary_make(folder);
    snprintf(path, sizeof path, "%s/model.json", folder);
    FILE *f = fopen(path, "w");
    fputs(model_json, f);
    fclose(f);
    cr_assert_eq(device_cpu_create(1, NULL, &cpu), STATUS_OK);
    load_options options = {.batch_max = 4, .start_operations_max = start_operations_max};
    load_request request = {.name = "digits",
                            .version = 1,
                            .folder = PENSTOCK_SOURCE_DIR "/examples/models/digits/1",
                            .manifest = path,
                            .options = &options,
                            .devices = &cpu,
                            .device_count = 1,
                            .report = report};
    cr_assert_eq(load_model(&request, &m), STATUS_OK, "%s", status_message());
    return m;
}

static void end(model *m)
{
    load_destroy(m);
    cpu->interface->destroy(cpu);
    temporary_remove(folder);
}

static uint64_t compiles(const model *m, model_compile_phase phase)
{
    return atomic_load(&m->counters->compiles[phase]);
}

static uint64_t executions(void)
{
    device_status s = {0};
    cpu->interface->describe(cpu, &s);
    return s.executions;
}

Test(warm_up, without_a_limit_makes_every_bucket)
{
    model *m = load("{}", 0);
    cr_expect_eq(m->bucket_count, 3);
    cr_expect_null(m->deferred);
    cr_expect_eq(compiles(m, MODEL_COMPILE_WARM_UP), 3u);
    end(m);
}

Test(warm_up, beyond_its_limit_only_the_smallest_bucket_is_made_and_nothing_runs)
{
    model *m = load("{}", 1);
    cr_assert_not_null(m->deferred);
    cr_expect_eq(compiles(m, MODEL_COMPILE_WARM_UP), 1u);
    cr_expect_eq(executions(), 0u);
    cr_expect(m->batching.can_batch, "it is proved; the experiment would only agree");
    cr_expect_null(m->start, "it belongs to the load");
    for (int i = 0; i < m->bucket_count; i++)
        cr_expect_eq(deferred_buckets_state(m, i), i == 0 ? DEFERRED_NOT : DEFERRED_PENDING);
    cr_expect_not(warm_up_make_wanted(m), "nobody wants any");
    end(m);
}

Test(warm_up, makes_what_traffic_wants_and_measures_it)
{
    model *m = load("{}", 1);
    deferred_buckets_want(m, 2);
    cr_expect(warm_up_make_wanted(m));
    cr_expect_not(warm_up_make_wanted(m));
    cr_expect_not_null(deferred_buckets_program(m, 2, 0));
    cr_expect_null(deferred_buckets_program(m, 1, 0));
    cr_expect_eq(compiles(m, MODEL_COMPILE_DEFERRED), 1u);
    cr_expect_eq(executions(), 2u);
    end(m);
}

Test(warm_up, makes_what_model_json_asks_for)
{
    model *m = load("{\"buckets\": {\"batch\": [1, 4]}}", 1);
    cr_expect_null(m->deferred);
    cr_expect_eq(compiles(m, MODEL_COMPILE_WARM_UP), 2u);
    end(m);
}

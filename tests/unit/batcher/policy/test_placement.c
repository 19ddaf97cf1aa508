#include <criterion/criterion.h>

#include "batcher/policy/placement.h"

/* Two accelerators and the CPU; buckets of up to 8 rows of up to 16 tokens. */
enum { ACCELERATORS = 2, CPU = 2, DEVICES = 3 };
#define MS UINT64_C(1000000)

static device first = {.name = "a0", .kind = "a", .slots = 1},
              second = {.name = "a1", .kind = "a", .slots = 1},
              cpu = {.name = "cpu", .kind = "cpu", .slots = 1};
static device *const all[DEVICES] = {&first, &second, &cpu};
static bucket_table tables[DEVICES];
static bool is_healthy[DEVICES];
static int64_t rows[1];
static latency *measured;
static placement_devices devices;
static placement_model m;

static void make_table(bucket_table *t)
{
    t->sequence_count = t->batch_count = 1;
    t->sequences[0] = 16;
    t->batches[0] = 8;
    memset(t->index, -1, sizeof t->index);
    t->index[0] = 0;
    t->has_any = true;
}

static void start(placement_fallback fallback)
{
    for (int i = 0; i < DEVICES; i++) {
        make_table(&tables[i]);
        is_healthy[i] = true;
    }
    rows[0] = 8;
    measured = latency_create(all, DEVICES);
    m = (placement_model){.tables = tables, .latency = measured, .rows = rows, .sequence_count = 1};
    devices = (placement_devices){.count = DEVICES,
                                  .cpu = CPU,
                                  .is_healthy = is_healthy,
                                  .other_workers = ACCELERATORS,
                                  .fallback = fallback};
}

static void measure(int device_index, uint64_t batch_ns)
{
    for (int i = 0; i < 200; i++)
        latency_observe(measured, device_index, 0, (latency_work){8, 128, 2048}, batch_ns, 1);
}

static void expect(bool has_first, bool has_second, bool has_cpu)
{
    cr_expect_eq(placement_is_eligible(&devices, &m, 0), has_first);
    cr_expect_eq(placement_is_eligible(&devices, &m, 1), has_second);
    cr_expect_eq(placement_is_eligible(&devices, &m, CPU), has_cpu);
}

Test(placement, the_cpu_takes_over_when_no_device_is_healthy)
{
    start(FALLBACK_ON_FAILURE);
    expect(true, true, false);
    is_healthy[0] = false;
    expect(false, true, false);
    is_healthy[1] = false;
    expect(false, false, true);
    latency_destroy(measured);
}

Test(placement, without_fallback_a_failed_device_keeps_its_work)
{
    start(FALLBACK_NEVER);
    is_healthy[0] = is_healthy[1] = false;
    expect(true, true, false);
    latency_destroy(measured);
}

Test(placement, a_device_without_a_program_takes_nothing)
{
    start(FALLBACK_ON_FAILURE);
    tables[0].has_any = false;
    expect(false, true, false);
    tables[1].has_any = false;
    expect(false, false, true);
    latency_destroy(measured);
}

Test(placement, exact_models_are_the_cpus)
{
    start(FALLBACK_ON_FAILURE);
    m.is_exact = true;
    expect(false, false, true);
    latency_destroy(measured);
}

/* Its workers wait with the work: there is nobody else to run it. */
Test(placement, exported_programs_never_run_on_the_cpu)
{
    start(FALLBACK_WHEN_SOONER);
    m.is_device_only = true;
    tables[CPU].has_any = false;
    expect(true, true, false);
    is_healthy[0] = false;
    expect(false, true, false);
    is_healthy[1] = false;
    expect(true, true, false);
    latency_destroy(measured);
}

Test(placement, a_stopping_scheduler_tries_failed_devices)
{
    start(FALLBACK_ON_FAILURE);
    is_healthy[0] = false;
    devices.is_stopping = true;
    expect(true, true, false);
    latency_destroy(measured);
}

/* 8 rows are one batch. A device that is busy with another one is done after two of its batches:
 * the CPU is sooner while its batch takes no longer than that. */
Test(placement, the_cpu_helps_only_while_it_is_sooner)
{
    start(FALLBACK_WHEN_SOONER);
    expect(true, true, true); /* not measured: any free worker is better than waiting */
    measure(0, 10 * MS);
    measure(CPU, 19 * MS);
    expect(true, true, true);
    devices.has_idle_worker = true;
    expect(true, true, false);
    devices.has_idle_worker = false;
    measure(CPU, 21 * MS);
    expect(true, true, false);
    rows[0] = 64; /* eight batches of two devices: the last one is done after six */
    measure(CPU, 59 * MS);
    expect(true, true, true);
    measure(CPU, 61 * MS);
    expect(true, true, false);
    measure(CPU, 59 * MS);
    devices.fallback = FALLBACK_ON_FAILURE;
    expect(true, true, false);
    latency_destroy(measured);
}

/* A notice announces their end: the others take the work, then the CPU. */
Test(placement, a_device_that_drains_leaves_its_work_to_others)
{
    static bool is_draining[DEVICES];
    start(FALLBACK_ON_FAILURE);
    devices.is_draining = is_draining;
    is_draining[0] = true;
    expect(false, true, false);
    is_draining[1] = true;
    expect(false, false, true);
    is_draining[0] = false;
    is_healthy[0] = false;
    expect(false, false, true);
    is_healthy[0] = is_draining[0] = true;
    devices.fallback = FALLBACK_NEVER; /* nobody else may */
    expect(true, true, false);
    is_draining[0] = false;
    expect(true, false, false);
    is_draining[0] = is_draining[1] = false;
    latency_destroy(measured);
}

Test(placement, exported_programs_run_on_devices_that_drain_where_all_do)
{
    static bool is_draining[DEVICES];
    start(FALLBACK_WHEN_SOONER);
    devices.is_draining = is_draining;
    m.is_device_only = true;
    tables[CPU].has_any = false;
    is_draining[0] = true;
    expect(false, true, false);
    is_draining[1] = true;
    expect(true, true, false);
    is_draining[0] = is_draining[1] = false;
    latency_destroy(measured);
}

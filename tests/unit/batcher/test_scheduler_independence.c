#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "batcher/job/pool.h"
#include "devices/slot.h"
#include "models/batching/probe.h"
#include "models/latency.h"
#include "models/repository/repository.h"
#include "tests/unit/batcher/submit.h"

/* Other requests in the batch and padding do not change a result: real models, alone and in
 * batches. */

static _Atomic int back;

static void on_back(job *j)
{
    (void)j;
    atomic_fetch_add(&back, 1);
}

static job *make(const model *m, job_pool *pool, int64_t rows, int64_t length, uint64_t seed)
{
    job *j = job_pool_acquire(pool);
    model_retain(m);
    j->model = m;
    j->rows = rows;
    j->length = length;
    j->on_done = on_back;
    cr_assert_eq(probe_make_inputs(m, (device_bucket){rows, length}, seed, &j->memory, j->inputs),
                 0);
    cr_assert_eq(job_allocate_outputs(j), 0);
    return j;
}

static void await(int count)
{
    while (atomic_load(&back) < count)
        usleep(500);
}

enum { JOBS = 24 };

/* Makes every bucket take the same time by measurement, so that full batches are worth most. */
static void measure_equal_times(const model *m)
{
    for (int i = 0; i < m->bucket_count; i++) {
        int64_t rows = m->buckets[i].shape.batch, length = m->buckets[i].shape.sequence;
        length = length > 0 ? length : 1;
        latency_work work = {rows, rows * length, rows * length * length};
        for (int k = 0; k < 100; k++)
            latency_observe(m->latency, 0, i, work, 1000000, clock_now_ns());
    }
}

/* The device's only slot is taken until all jobs are there. */
static void submit_together(scheduler *s, device *cpu, const model *m, job_pool *pool, job **jobs,
                            const int64_t *lengths)
{
    bool is_batched = false;
    atomic_store(&back, 0);
    for (int i = 0; i < JOBS; i++)
        jobs[i] = make(m, pool, 1 + i % 3, lengths[i], (uint64_t)i + 1);
    int slot = device_slot_acquire(cpu, 0);
    measure_equal_times(m);
    for (int i = 0; i < JOBS; i++)
        submit_admitted(s, jobs[i]);
    device_slot_release(cpu, slot);
    await(JOBS);
    for (int i = 0; i < JOBS; i++)
        is_batched |= jobs[i]->batch_rows > jobs[i]->rows;
    cr_assert(is_batched, "%s: no batch was formed", m->name);
}

static void compare_results(const char *name, const model *m, const job *alone, const job *among)
{
    cr_assert_eq(alone->result, 0, "%s: %s", name, alone->error);
    cr_assert_eq(among->result, 0, "%s: %s", name, among->error);
    bool same_bucket = alone->bucket.batch == among->bucket.batch &&
                       alone->bucket.sequence == among->bucket.sequence;
    for (int o = 0; o < m->output_count; o++) {
        double low = INFINITY, high = -INFINITY, apart = 0;
        for (int64_t k = 0; k < tensor_count(&alone->outputs[o]); k++) {
            double x = tensor_get_number(&alone->outputs[o], k);
            double y = tensor_get_number(&among->outputs[o], k);
            low = fmin(low, x);
            high = fmax(high, x);
            apart = fmax(apart, isfinite(y) ? fabs(x - y) : INFINITY);
        }
        cr_assert_leq(apart, same_bucket ? 0 : 1e-5 * (high - low), "%s: %ld rows", name,
                      (long)alone->rows);
    }
}

static void compare(const char *name)
{
    char path[4096];
    const char *shared = getenv("PENSTOCK_SHARED");
    snprintf(path, sizeof path, "%s/models/models/%s", shared ? shared : "../shared", name);
    if (access(path, R_OK) != 0)
        cr_skip_test("%s is absent", path);
    device *cpu;
    cr_assert_eq(device_cpu_create(1, NULL, &cpu), 0);
    device *devices[] = {cpu};
    repository_model_options own = {.name = "m", .path = path};
    repository_options options = {
        .models = &own, .model_count = 1, .load = {.batch_max = 8, .sequence_max = 32}};
    repository *r;
    scheduler *s;
    const model *m;
    job_pool pool;
    job_pool_init(&pool, 64, (size_t)64 << 20);
    cr_assert_eq(repository_create(&options, devices, 1, &r), 0);
    cr_assert_eq(repository_wait(r), 0, "%s", status_message());
    cr_assert_eq(repository_find(r, "m", 1, 0, &m), 0);
    cr_assert_eq(scheduler_create(&(scheduler_options){0}, devices, 1, &s), 0);
    job *alone[JOBS], *among[JOBS];
    int64_t lengths[JOBS];
    atomic_store(&back, 0);
    for (int i = 0; i < JOBS; i++) {
        lengths[i] = m->batching.sequence_max > 0 ? 1 + (i * 7) % 32 : 0;
        alone[i] = make(m, &pool, 1 + i % 3, lengths[i], (uint64_t)i + 1);
        submit_admitted(s, alone[i]);
        await(i + 1);
    }
    submit_together(s, cpu, m, &pool, among, lengths);
    for (int i = 0; i < JOBS; i++) {
        compare_results(name, m, alone[i], among[i]);
        job_pool_release(&pool, among[i]);
    }
    for (int i = 0; i < JOBS; i++)
        job_pool_release(&pool, alone[i]);
    cr_assert_eq(scheduler_queued_rows(s, m), 0);
    scheduler_destroy(s);
    model_release(m);
    job_pool_dispose(&pool);
    repository_destroy(r);
    cpu->interface->destroy(cpu);
}

Test(independence, encoder)
{
    compare("bert_tiny_legacy.onnx");
}
Test(independence, encoder_with_positions_from_the_mask)
{
    compare("roberta_tiny_legacy.onnx");
}
Test(independence, convolution)
{
    compare("cnn_3x32x32_bn.onnx");
}

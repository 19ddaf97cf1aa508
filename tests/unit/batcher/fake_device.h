#ifndef TESTS_UNIT_BATCHER_FAKE_DEVICE_H
#define TESTS_UNIT_BATCHER_FAKE_DEVICE_H

/* A device that doubles its input, and a model for it: what can go wrong is chosen by the test.
 * Output = 2 * ids at tokens with mask 1; an id of FAKE_BAD_ID is refused as a device would. */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "batcher/job/pool.h"
#include "batcher/scheduler.h"
#include "devices/health.h"
#include "models/batching/exact_programs.h"
#include "models/model.h"
#include "tests/unit/batcher/submit.h"

#define FAKE_BAD_ID 666

typedef struct fake_device {
    device base;
    _Atomic bool is_gone;             /* every execute: STATUS_UNAVAILABLE */
    _Atomic int64_t gone_every;       /* every n-th execute: STATUS_UNAVAILABLE; 0: none */
    _Atomic int64_t asked_while_gone; /* describe() */
    _Atomic int64_t executions, compiles, programs, rows;
    _Atomic bool is_held; /* executions wait until false */
    _Atomic int64_t inside;
    _Atomic bool slot_used[64], slot_clashed;
    device_layout layout;
} fake_device;

static status fake_compile(device *d, const device_model *m, device_bucket bucket,
                           device_program **out)
{
    fake_device *f = (fake_device *)d;
    (void)m;
    device_program *p = malloc(sizeof *p);
    *p = (device_program){.layout = f->layout, .bucket = bucket};
    atomic_fetch_add(&f->compiles, 1);
    atomic_fetch_add(&f->programs, 1);
    *out = p;
    return STATUS_OK;
}

static void fake_release(device *d, device_program *p)
{
    atomic_fetch_sub(&((fake_device *)d)->programs, 1);
    free(p);
}

static status fake_compute(const tensor *in, tensor *out)
{
    int64_t count = tensor_count(&in[0]);
    for (int64_t i = 0; i < count; i++) {
        int64_t id = ((int64_t *)in[0].data)[i];
        if (id == FAKE_BAD_ID)
            return status_fail(STATUS_INVALID_ARGUMENT, "id %lld is out of range", (long long)id);
        ((float *)out[0].data)[i] = ((int64_t *)in[1].data)[i] ? 2 * (float)id : -1;
    }
    return STATUS_OK;
}

static status fake_execute(device *d, device_program *p, int number, const device_batch *b)
{
    fake_device *f = (fake_device *)d;
    if (atomic_exchange(&f->slot_used[number], true))
        atomic_store(&f->slot_clashed, true);
    atomic_fetch_add(&f->inside, 1);
    while (atomic_load(&f->is_held))
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    int64_t n = atomic_fetch_add(&f->executions, 1) + 1;
    int64_t every = atomic_load(&f->gone_every);
    status failure = STATUS_OK;
    if (atomic_load(&f->is_gone) || (every > 0 && n % every == 0))
        failure = status_fail(STATUS_UNAVAILABLE, "the device is gone");
    else if (p->layout == DEVICE_PADDED)
        failure = fake_compute(b->inputs, b->outputs);
    else
        for (int i = 0; i < b->segment_count && !failure; i++)
            failure = fake_compute(b->segments[i].inputs, b->segments[i].outputs);
    for (int i = 0; i < b->segment_count; i++)
        atomic_fetch_add(&f->rows, b->segments[i].rows);
    atomic_fetch_sub(&f->inside, 1);
    atomic_store(&f->slot_used[number], false);
    return failure;
}

static void fake_describe(device *d, device_status *out)
{
    fake_device *f = (fake_device *)d;
    bool is_gone = atomic_load(&f->is_gone);
    *out = (device_status){.state = is_gone ? DEVICE_FAILED : DEVICE_HEALTHY};
    atomic_fetch_add(&f->asked_while_gone, is_gone);
}

static void fake_destroy(device *d)
{
    (void)d;
}

static const device_interface fake_interface = {.compile = fake_compile,
                                                .release = fake_release,
                                                .execute = fake_execute,
                                                .describe = fake_describe,
                                                .destroy = fake_destroy};

static inline void fake_device_init(fake_device *f, const char *name, int slots)
{
    memset(f, 0, sizeof *f);
    f->base = (device){.interface = &fake_interface, .name = name, .kind = name, .slots = slots};
}

static inline void fake_set_gone(fake_device *f, bool is_gone)
{
    atomic_store(&f->is_gone, is_gone);
    device_health_changed();
}

static inline void fake_axis(model_tensor *t, const char *name, dtype type)
{
    *t = (model_tensor){.name = name,
                        .dtype = type,
                        .rank = 2,
                        .dims = {-1, -1},
                        .batch_axis = 0,
                        .sequence_axis = 1};
}

/* Buckets {1,2,4,8} x {4,8,16}; compiled on every device. */
static inline model *fake_model_create(device *const *devices, int device_count, int index,
                                       bool can_batch, bool can_pad)
{
    static const int64_t batches[] = {1, 2, 4, 8}, sequences[] = {4, 8, 16};
    model *m = model_create();
    m->name = "fake";
    m->index = index;
    m->serial = (uint64_t)index + 1;
    m->devices = devices;
    m->device_count = device_count;
    m->input_count = 2;
    m->output_count = 1;
    fake_axis(&m->inputs[0], "ids", DTYPE_I64);
    fake_axis(&m->inputs[1], "attention_mask", DTYPE_I64);
    m->inputs[0].pad_value = 7;
    m->inputs[1].is_mask = true;
    fake_axis(&m->outputs[0], "out", DTYPE_F32);
    m->batching = (model_batching){.can_batch = can_batch,
                                   .can_pad = can_pad,
                                   .batch_max = 8,
                                   .sequence_max = 16,
                                   .queue_rows_max = 100000};
    memcpy(m->batch_buckets, batches, sizeof batches);
    memcpy(m->sequence_buckets, sequences, sizeof sequences);
    m->batch_bucket_count = 4;
    m->sequence_bucket_count = 3;
    if (model_is_exact(m)) {
        m->exact_programs = exact_programs_create(devices[device_count - 1]);
        return m;
    }
    for (int s = 0; s < 3; s++)
        for (int b = 0; b < 4; b++) {
            model_bucket *bucket = &m->buckets[m->bucket_count++];
            bucket->shape = (device_bucket){batches[b], sequences[s]};
            bucket->programs = calloc((size_t)device_count, sizeof *bucket->programs);
            for (int d = 0; d < device_count; d++)
                if (fake_compile(devices[d], NULL, bucket->shape, &bucket->programs[d]))
                    abort();
        }
    return m;
}

static inline void fake_model_destroy(model *m)
{
    assert(atomic_load(&m->references->count) == 1);
    for (int i = 0; i < m->bucket_count; i++) {
        for (int d = 0; d < m->device_count; d++)
            if (m->buckets[i].programs[d])
                fake_release(m->devices[d], m->buckets[i].programs[d]);
        free(m->buckets[i].programs);
    }
    exact_programs_destroy(m->exact_programs);
    model_destroy(m);
}

/* Ids first, first + 1, ...; deadline none. */
static inline job *fake_job(job_pool *pool, const model *m, int64_t rows, int64_t length,
                            int64_t first, void (*on_done)(job *), void *home)
{
    job *j = job_pool_acquire(pool);
    model_retain(m);
    j->model = m;
    j->rows = rows;
    j->length = length;
    j->on_done = on_done;
    j->home = home;
    for (int i = 0; i < 2; i++) {
        if (tensor_allocate(&j->inputs[i], &j->memory, DTYPE_I64, 2, (int64_t[]){rows, length}))
            abort();
        for (int64_t k = 0; k < rows * length; k++)
            ((int64_t *)j->inputs[i].data)[k] = i ? 1 : first + k;
    }
    if (job_allocate_outputs(j))
        abort();
    memset(j->outputs[0].data, 0, tensor_bytes(&j->outputs[0]));
    return j;
}

static inline bool fake_is_right(const job *j)
{
    for (int64_t k = 0; k < j->rows * j->length; k++)
        if (((float *)j->outputs[0].data)[k] != 2 * (float)((int64_t *)j->inputs[0].data)[k])
            return false;
    return true;
}

#endif

#include "batcher/execute/execute.h"

#include "base/clock.h"
#include "batcher/execute/pad.h"
#include "batcher/execute/place.h"
#include "batcher/execute/slice.h"

/* What the device computed: every token of a padded batch, the members' own of a ragged one. */
static latency_work work_of(const device_program *program, const batch_member *members, int count)
{
    int64_t length = program->bucket.sequence > 0 ? program->bucket.sequence : 1;
    int64_t rows = program->bucket.batch;
    latency_work work = {rows, rows * length, rows * length * length};
    if (program->layout != DEVICE_RAGGED)
        return work;
    work = (latency_work){0};
    for (int i = 0; i < count; i++) {
        length = members[i].job->length > 0 ? members[i].job->length : 1;
        work.rows += members[i].rows;
        work.tokens += members[i].rows * length;
        work.squares += members[i].rows * length * length;
    }
    return work;
}

/* Attributes the time of an execution to tenants, by the tokens of their members. */
static void count_tenants(executor *e, const batch_member *members, int count, uint64_t took_ns)
{
    double tokens = 0;
    for (int i = 0; i < count; i++)
        tokens += (double)member_tokens(&members[i]);
    for (int i = 0; i < count; i++) {
        double part = (double)member_tokens(&members[i]) / tokens;
        counter_add(&e->tenant_ns[members[i].job->tenant], (uint64_t)((double)took_ns * part));
    }
}

/* The device computes. Returns how long it took, also where it failed. */
static status compute(worker *w, place *p, const device_batch *work, uint64_t *took_ns)
{
    executor *e = w->executor;
    device *d = e->devices[p->device_index];
    uint64_t start_ns = place_acquire_slot(w, p);
    atomic_fetch_add_explicit(&e->admission->busy, 1, memory_order_relaxed);
    status failure = d->interface->execute(d, p->program, p->slot, work);
    atomic_fetch_sub_explicit(&e->admission->busy, 1, memory_order_relaxed);
    uint64_t end_ns = clock_now_ns();
    stage_stamp(w->batch.stage_ns, STAGE_EXECUTE, end_ns);
    place_release_slot(w, p);
    *took_ns = end_ns - start_ns;
    return failure;
}

/* Estimates of this model's batches and of the backlog follow what was measured. */
static void learn(worker *w, const place *p, int first, int count, uint64_t took_ns)
{
    batch *b = &w->batch;
    latency_observe(b->queue->latency, p->device_index, p->bucket,
                    work_of(p->program, &b->members[first], count), took_ns,
                    b->stage_ns[STAGE_EXECUTE]);
    if (count == b->count && p->device_index == w->device_index)
        admission_learn(w->executor->admission, b->cost_ns, took_ns);
}

/* A CPU's slot is a part of it; the slots of another device share the whole. */
static double device_seconds(const executor *e, int device_index, uint64_t took_ns)
{
    const device *d = e->devices[device_index];
    int shared_by = device_index == executor_cpu(e)
                        ? d->slots
                        : 1 + __builtin_popcountll(atomic_load(&d->slots_in_use));
    return (double)took_ns * 1e-9 / shared_by;
}

static void count_usage(const worker *w, const place *p, uint64_t computed, uint64_t took_ns)
{
    const executor *e = w->executor;
    const device *d = e->devices[p->device_index];
    usage_execution of = {.computed_tokens = computed,
                          .operations = (double)p->program->cost.operations,
                          .device_s = device_seconds(e, p->device_index, took_ns),
                          .peak_per_s = d->peak_per_s,
                          .dollars_per_hour = d->cost_per_hour};
    usage_add_execution(w->batch.model->usage, w->batch.stage_ns[STAGE_EXECUTE], &of);
}

/* Returns how many were computed. */
static uint64_t count_tokens(worker *w, const device_program *program)
{
    batch *b = &w->batch;
    uint64_t tokens = b->shape.sequence > 0 ? (uint64_t)b->shape.sequence : 1;
    /* A ragged program computes nothing but what it was given. */
    bool is_ragged = program->layout == DEVICE_RAGGED;
    uint64_t computed = is_ragged ? (uint64_t)b->tokens : (uint64_t)b->shape.batch * tokens;
    counter_add(&b->model->counters->computed_tokens, computed);
    if (program->layout == DEVICE_PACKED)
        counter_add(&b->model->counters->packed_batches, 1);
    return computed;
}

static status run_in(worker *w, place *p, int first, int count)
{
    batch *b = &w->batch;
    padded inputs;
    status failure = pad_members(w, p->program, first, count, &inputs);
    if (failure)
        return failure;
    b->shape = p->program->bucket;
    b->is_packed = p->program->layout == DEVICE_PACKED;
    b->device_index = p->device_index;
    uint64_t took_ns;
    failure = compute(w, p, &inputs.work, &took_ns);
    b->device_ns += took_ns;
    count_tenants(w->executor, &b->members[first], count, took_ns);
    if (failure)
        return failure;
    learn(w, p, first, count, took_ns);
    slice_members(w, p->program, first, count, &inputs);
    count_usage(w, p, count_tokens(w, p->program), took_ns);
    return STATUS_OK;
}

status execute_members(worker *w, int device_index, int first, int count)
{
    place p;
    status failure = place_find_program(w, device_index, &p);
    if (failure)
        return failure;
    failure = run_in(w, &p, first, count);
    place_release(w, &p);
    return failure;
}

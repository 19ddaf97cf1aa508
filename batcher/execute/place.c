#include <assert.h>
#include <time.h>

#include "base/clock.h"
#include "batcher/execute/packed.h"
#include "batcher/execute/pad.h"
#include "batcher/execute/slice.h"
#include "batcher/policy/slo.h"
#include "batcher/scheduler_internal.h"
#include "devices/slot.h"
#include "models/batching/exact_programs.h"
#include "models/repository/repository.h"

/* How long a device that failed is left alone before it is asked again. */
#define FAILED_DEVICE_PAUSE_NS UINT64_C(50000000)
/* A batch that only devices can run waits for one so long at most, and is given to so many. */
#define DEVICE_WAIT_NS UINT64_C(30000000000)
#define DEVICE_LOOK_NS 20000000
#define DEVICE_TRIES_MAX 4

bool place_is_healthy(scheduler *s, int device_index, uint64_t now_ns)
{
    device_health *h = &s->health[device_index];
    if (!atomic_load_explicit(&h->has_failed, memory_order_relaxed))
        return true;
    if (now_ns < atomic_load_explicit(&h->check_ns, memory_order_relaxed))
        return false;
    device_status state = {0};
    s->devices[device_index]->interface->describe(s->devices[device_index], &state);
    if (state.state == DEVICE_HEALTHY) {
        atomic_store_explicit(&h->has_failed, false, memory_order_relaxed);
        return true;
    }
    atomic_store_explicit(&h->check_ns, now_ns + FAILED_DEVICE_PAUSE_NS, memory_order_relaxed);
    return false;
}

void place_report_failure(scheduler *s, int device_index, uint64_t now_ns)
{
    device_health *h = &s->health[device_index];
    atomic_store_explicit(&h->check_ns, now_ns + FAILED_DEVICE_PAUSE_NS, memory_order_relaxed);
    atomic_store_explicit(&h->has_failed, true, memory_order_relaxed);
}

/* Is there a device other than the CPU that would run this model? */
static bool has_other_device(scheduler *s, const model_queue *q, uint64_t now_ns)
{
    if (model_is_exact(q->model))
        return false;
    for (int i = 0; i < scheduler_cpu(s); i++)
        if (q->tables[i].has_any &&
            (s->options.fallback == FALLBACK_NEVER || place_is_healthy(s, i, now_ns)))
            return true;
    return false;
}

static uint64_t latency_of(const model_queue *q, int device_index, int list, int64_t rows)
{
    const bucket_table *t = &q->tables[device_index];
    int bucket = bucket_choose(t, list, rows);
    if (bucket < 0)
        return 0;
    if (!t->is_ragged)
        return latency_bucket_ns(q->latency, device_index, bucket);
    double length = (double)t->sequences[list], n = (double)rows;
    return (uint64_t)latency_cost_ns(latency_fit_of(q->latency, device_index), n * length,
                                     n * length * length);
}

/* Every other device is busy: would the CPU be done before one of them gets to this work? */
static bool is_cpu_sooner(scheduler *s, const model_queue *q)
{
    int others = 0;
    for (int i = 0; i < s->worker_count; i++) {
        const worker *l = &s->workers[i];
        if (l->device_index == scheduler_cpu(s))
            continue;
        others++;
        if (atomic_load_explicit(&l->is_sleeping, memory_order_relaxed))
            return false;
    }
    for (int list = 0; list < q->list_count; list++) {
        if (q->list_rows[list] == 0)
            continue;
        int64_t rows = q->list_rows[list];
        uint64_t cpu_ns = latency_of(q, scheduler_cpu(s), list, rows);
        for (int d = 0; d < scheduler_cpu(s); d++) {
            int64_t rows_max = bucket_rows_max(&q->tables[d], list);
            uint64_t device_ns = latency_of(q, d, list, rows);
            if (rows_max == 0 || device_ns == 0 || cpu_ns == 0)
                continue; /* not measured: any free device is better than waiting */
            /* The batch in flight, then those that wait, then its own. */
            uint64_t ahead = (uint64_t)((rows + rows_max - 1) / rows_max) / (uint64_t)others + 1;
            if (cpu_ns > device_ns * (1 + ahead))
                return false;
        }
    }
    return true;
}

bool place_is_eligible(scheduler *s, int device_index, const model_queue *q, uint64_t now_ns)
{
    bool is_stopping = atomic_load_explicit(&s->is_stopping, memory_order_relaxed);
    /* Nobody stands in for its devices: when none is healthy, their workers wait with the work. */
    if (q->model->on_device.exported != NULL &&
        (device_index == scheduler_cpu(s) || !has_other_device(s, q, now_ns)))
        return q->tables[device_index].has_any;
    if (device_index != scheduler_cpu(s))
        return !model_is_exact(q->model) && q->tables[device_index].has_any &&
               (is_stopping || s->options.fallback == FALLBACK_NEVER ||
                place_is_healthy(s, device_index, now_ns));
    if (!has_other_device(s, q, now_ns))
        return true;
    return s->options.fallback == FALLBACK_WHEN_SOONER && is_cpu_sooner(s, q);
}

/* One job that fills the bucket exactly is computed where it lies. */
static bool fits_in_place(const batch *b, const batch_member *members, int count,
                          device_bucket shape)
{
    const job *j = members[0].job;
    const model *m = b->model;
    if (count != 1 || members[0].rows != j->rows || j->rows != shape.batch ||
        j->length != shape.sequence)
        return false;
    for (int i = 0; i < m->input_count; i++)
        if ((uintptr_t)j->inputs[i].data % 64 != 0)
            return false;
    for (int i = 0; i < m->output_count; i++)
        if ((uintptr_t)j->outputs[i].data % 64 != 0)
            return false;
    return true;
}

/* What the device computed: every position of a batch, or the members' own of a ragged one. */
static latency_work work_of(const device_program *program, const batch_member *members, int count)
{
    int64_t length = program->bucket.sequence > 0 ? program->bucket.sequence : 1;
    int64_t rows = program->bucket.batch;
    latency_work w = {rows, rows * length, rows * length * length};
    if (program->layout != DEVICE_RAGGED)
        return w;
    w = (latency_work){0};
    for (int i = 0; i < count; i++) {
        length = members[i].job->length > 0 ? members[i].job->length : 1;
        w.rows += members[i].rows;
        w.tokens += members[i].rows * length;
        w.squares += members[i].rows * length * length;
    }
    return w;
}

/* Shares the time of an execution out by the positions each member brought. */
static void count_tenants(scheduler *s, const batch_member *members, int count, uint64_t took_ns)
{
    double tokens = 0;
    for (int i = 0; i < count; i++)
        tokens += (double)member_positions(&members[i]);
    for (int i = 0; i < count; i++) {
        double part = (double)member_positions(&members[i]) / tokens;
        counter_add(&s->tenant_ns[members[i].job->tenant], (uint64_t)((double)took_ns * part));
    }
}

/* Copies the members into the worker's own tensors. */
static status stage_batch(worker *l, const device_program *program, const batch_member *members,
                          int count)
{
    batch *b = &l->batch;
    bool is_packed = program->layout == DEVICE_PACKED;
    model_bucket bucket = {.shape = program->bucket,
                           .sequences = is_packed ? b->packed->sequences : 0};
    status failure = staging_lay_out(&l->staging, b->model, &bucket, b->queue->staging_bytes);
    if (failure)
        return failure;
    if (is_packed) {
        assert(count == b->count); /* `places` is of all members */
        packed_fill(b->model, members, b->places, count, l->staging.inputs);
    } else {
        pad_batch(b->model, members, count, l->staging.inputs);
    }
    return STATUS_OK;
}

static status execute(worker *l, int device_index, int bucket, device_program *program, int first,
                      int count)
{
    scheduler *s = l->scheduler;
    batch *b = &l->batch;
    device *d = s->devices[device_index];
    const batch_member *members = &b->members[first];
    device_batch work = {.segments = &b->segments[first], .segment_count = count};
    bool is_padded = program->layout == DEVICE_PADDED;
    bool in_place = is_padded && fits_in_place(b, members, count, program->bucket);
    bool is_staged = program->layout != DEVICE_RAGGED && !in_place;
    if (in_place) {
        work.inputs = members[0].job->inputs;
        work.outputs = members[0].job->outputs;
    } else if (is_staged) {
        status failure = stage_batch(l, program, members, count);
        if (failure)
            return failure;
        work.inputs = l->staging.inputs;
        work.outputs = l->staging.outputs;
    }
    b->shape = program->bucket;
    b->is_packed = program->layout == DEVICE_PACKED;
    b->device_index = device_index;
    stage_stamp(b->stage_ns, STAGE_PAD, clock_now_ns());
    int number = device_slot_acquire(d, l->number);
    uint64_t start_ns = clock_now_ns();
    stage_stamp(b->stage_ns, STAGE_PLACE, start_ns);
    atomic_fetch_add_explicit(&s->admission.busy, 1, memory_order_relaxed);
    status failure = d->interface->execute(d, program, number, &work);
    atomic_fetch_sub_explicit(&s->admission.busy, 1, memory_order_relaxed);
    uint64_t end_ns = clock_now_ns();
    stage_stamp(b->stage_ns, STAGE_EXECUTE, end_ns);
    device_slot_release(d, number);
    counter_add(&l->busy_ns, end_ns - start_ns);
    b->device_ns += end_ns - start_ns;
    count_tenants(s, members, count, end_ns - start_ns);
    if (failure) {
        counter_add(&l->failures, 1);
        return failure;
    }
    latency_observe(b->queue->latency, device_index, bucket, work_of(program, members, count),
                    end_ns - start_ns, end_ns);
    if (count == b->count && device_index == l->device_index)
        admission_learn(&s->admission, b->cost_ns, end_ns - start_ns);
    if (program->layout == DEVICE_PACKED) {
        counter_add(&b->model->counters->packed_batches, 1);
        packed_slice(b->model, members, b->places, count, work.outputs);
    } else if (is_staged) {
        slice_batch(b->model, members, count, work.outputs);
    }
    stage_stamp(b->stage_ns, STAGE_SLICE, clock_now_ns());
    /* A ragged program computes nothing but what it was given. */
    uint64_t positions = b->shape.sequence > 0 ? (uint64_t)b->shape.sequence : 1;
    bool is_ragged = program->layout == DEVICE_RAGGED;
    uint64_t computed = is_ragged ? (uint64_t)b->tokens : (uint64_t)b->shape.batch * positions;
    counter_add(&l->computed_tokens, computed);
    counter_add(&b->model->counters->computed_tokens, computed);
    return STATUS_OK;
}

static device_bucket exact_shape(const batch *b)
{
    const model *m = b->model;
    device_bucket shape = {b->rows, b->length_max};
    if (!m->batching.can_batch)
        return shape;
    for (int i = m->batch_bucket_count - 1; i >= 0; i--)
        if (m->batch_buckets[i] >= b->rows)
            shape.batch = m->batch_buckets[i];
    return shape;
}

/* Members [first, first + count) on that device, in the program of the whole batch. */
static status run_on(worker *l, int device_index, int first, int count)
{
    batch *b = &l->batch;
    if (b->is_exact) {
        exact_program *entry;
        device_program *program;
        status failure = exact_programs_acquire(b->model, exact_shape(b), &entry, &program);
        if (failure)
            return failure;
        failure = execute(l, device_index, -1, program, first, count);
        exact_programs_release(b->model, entry);
        return failure;
    }
    int bucket = b->bucket;
    device_program *program = b->model->buckets[bucket].programs[device_index];
    if (program == NULL) {
        const bucket_table *t = &b->queue->tables[device_index];
        int sequence = bucket_find_sequence(t, b->length_max);
        bucket = sequence < 0 ? -1 : bucket_choose(t, sequence, b->rows);
        /* A ragged program takes any number of rows: those of packed rows too. */
        if (bucket < 0 || (!t->is_ragged && b->model->buckets[bucket].shape.batch < b->rows))
            return status_fail(STATUS_UNAVAILABLE,
                               "device \"%s\" has no program for this batch of model \"%s\"",
                               l->scheduler->devices[device_index]->name, b->model->name);
        program = b->model->buckets[bucket].programs[device_index];
    }
    return execute(l, device_index, bucket, program, first, count);
}

static void count_fallback(worker *l, model_fallback reason)
{
    l->batch.fell_back = true;
    counter_add(&l->fallbacks[reason], 1);
    counter_add(&l->batch.model->counters->fallbacks[reason], 1);
}

/* A device that has the model and says that it is healthy, or -1. Asked now: devices of one plugin
 * go together, and what is remembered of each is older. */
static int find_device(scheduler *s, const model_queue *q)
{
    for (int d = 0; d < scheduler_cpu(s); d++) {
        device_status state = {0};
        if (!q->tables[d].has_any)
            continue;
        s->devices[d]->interface->describe(s->devices[d], &state);
        if (state.state == DEVICE_HEALTHY)
            return d;
    }
    return -1;
}

/* For models that no CPU can run: the batch again, on the first device that is back, as often and
 * as long as somebody may still want the answers. */
static status run_again(worker *l, int first, int count, status failure)
{
    scheduler *s = l->scheduler;
    uint64_t until_ns = clock_now_ns() + DEVICE_WAIT_NS, latest_ns = 0;
    for (int i = first; i < first + count; i++)
        if (l->batch.members[i].job->deadline_ns > latest_ns)
            latest_ns = l->batch.members[i].job->deadline_ns;
    until_ns = latest_ns < until_ns ? latest_ns : until_ns;
    for (int tries = 1; failure == STATUS_UNAVAILABLE && tries < DEVICE_TRIES_MAX;) {
        if (clock_now_ns() >= until_ns || atomic_load(&s->is_stopping))
            break;
        nanosleep(&(struct timespec){.tv_nsec = DEVICE_LOOK_NS}, NULL);
        int device_index = find_device(s, l->batch.queue);
        if (device_index < 0)
            continue;
        failure = run_on(l, device_index, first, count);
        if (failure == STATUS_UNAVAILABLE)
            place_report_failure(s, device_index, clock_now_ns());
        tries++;
    }
    return failure;
}

static status run_with_fallback(worker *l, int first, int count)
{
    scheduler *s = l->scheduler;
    int cpu = scheduler_cpu(s);
    if (l->device_index == cpu || l->batch.is_exact)
        return run_on(l, cpu, first, count);
    status failure = run_on(l, l->device_index, first, count);
    if (failure != STATUS_UNAVAILABLE)
        return failure;
    place_report_failure(s, l->device_index, clock_now_ns());
    if (s->options.fallback == FALLBACK_NEVER)
        return failure;
    if (l->batch.model->on_device.exported != NULL)
        return run_again(l, first, count, failure);
    /* Others of the queue may now be the CPU's: its workers do not know yet. */
    scheduler_wake(s, 0, l->device_index);
    count_fallback(l, MODEL_FALLBACK_DEVICE_FAILED);
    return run_on(l, cpu, first, count);
}

/* The longest of the model's buckets on that device. */
static uint64_t longest_batch_ns(const model_queue *q, int device_index)
{
    uint64_t longest_ns = 0;
    for (int i = 0; i < q->model->bucket_count; i++) {
        uint64_t ns = latency_bucket_ns(q->latency, device_index, i);
        longest_ns = ns > longest_ns ? ns : longest_ns;
    }
    return longest_ns;
}

static void finish(worker *l, const batch_member *member, status result)
{
    batch *b = &l->batch;
    job *j = member->job;
    if (!job_finish_rows(j, member->rows, result))
        return;
    for (int i = STAGE_QUEUE; i <= STAGE_SLICE; i++)
        j->stage_ns[i] = b->stage_ns[i];
    uint64_t end_ns = j->stage_ns[STAGE_SLICE];
    if (j->result == STATUS_OK)
        admission_learn_end(&l->scheduler->admission, j, end_ns <= j->deadline_ns, end_ns);
    if (j->result == STATUS_OK && b->bucket >= 0 && b->model->slo_ns > 0)
        slo_observe(&b->queue->slo, b->model->slo_ns, end_ns - j->stage_ns[STAGE_ADMIT],
                    longest_batch_ns(b->queue, b->device_index));
    j->bucket = b->shape;
    j->is_packed = b->is_packed;
    j->device_index = b->device_index;
    j->batch_rows = b->rows;
    j->fell_back = b->fell_back;
    j->on_done(j);
}

/* One member again, alone: in the same program, or, since packed rows would cost each as much as
 * all, in a padded one; by the CPU where none holds its rows. */
static status run_member(worker *l, int i)
{
    batch *b = &l->batch;
    const batch_member *member = &b->members[i];
    if (b->packed != NULL) {
        const bucket_table *t = &b->queue->tables[l->device_index];
        b->bucket = bucket_choose(t, bucket_find_sequence(t, member->job->length), member->rows);
        if (b->bucket < 0 || b->model->buckets[b->bucket].shape.batch < member->rows) {
            b->bucket = b->packed->index;
            return run_on(l, scheduler_cpu(l->scheduler), i, 1);
        }
    }
    return run_with_fallback(l, i, 1);
}

/* The batch failed through one of its members: each again, alone, so that only the guilty ones
 * fail. */
static void isolate(worker *l)
{
    batch *b = &l->batch;
    counter_add(&b->model->counters->isolations, 1);
    for (int i = 0; i < b->count; i++)
        finish(l, &b->members[i], run_member(l, i));
}

/* A stage that a failed batch never reached took no time. */
static void close_stages(batch *b)
{
    for (int i = STAGE_FORM; i <= STAGE_SLICE; i++)
        if (b->stage_ns[i] < b->stage_ns[i - 1])
            b->stage_ns[i] = b->stage_ns[i - 1];
}

void place_run(worker *l)
{
    batch *b = &l->batch;
    scheduler *s = l->scheduler;
    assert(b->count > 0);
    const model *m = b->model;
    /* The last job to go may take the model with it. */
    model_retain(m);
    if (l->device_index == scheduler_cpu(s) && s->device_count > 1) {
        bool has_healthy = false;
        for (int i = 0; i < scheduler_cpu(s) && !b->is_exact; i++)
            has_healthy |= b->queue->tables[i].has_any &&
                           !atomic_load_explicit(&s->health[i].has_failed, memory_order_relaxed);
        count_fallback(l, has_healthy ? MODEL_FALLBACK_SOONER : MODEL_FALLBACK_NO_DEVICE);
    }
    status failure = form_segments(l);
    if (!failure)
        failure = run_with_fallback(l, 0, b->count);
    close_stages(b);
    counter_add(&l->batches, 1);
    counter_add(&l->rows, (uint64_t)b->rows);
    counter_add(&l->real_tokens, (uint64_t)b->tokens);
    counter_add(&m->counters->batches, 1);
    counter_add(&m->counters->batch_rows, (uint64_t)b->rows);
    counter_add(&m->counters->real_tokens, (uint64_t)b->tokens);
    bool is_members_fault =
        failure && failure != STATUS_UNAVAILABLE && failure != STATUS_OUT_OF_MEMORY;
    if (is_members_fault && b->count > 1)
        isolate(l);
    else
        for (int i = 0; i < b->count; i++)
            finish(l, &b->members[i], failure);
    model_release(m);
}

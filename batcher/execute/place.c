#include "batcher/execute/place.h"

#include <assert.h>

#include "base/clock.h"
#include "devices/slot.h"
#include "models/start/deferred_buckets.h"

/* Models that cannot be padded run in their own shape, rounded up to a batch size where rows may
 * share a batch. */
static device_bucket exact_shape(const batch *b)
{
    const model *m = b->model;
    device_bucket shape = {b->rows, b->length_max};
    if (model_is_whole(m))
        return (device_bucket){1, 0}; /* one program for all shapes */
    if (!m->batching.can_batch)
        return shape;
    for (int i = m->batch_bucket_count - 1; i >= 0; i--)
        if (m->batch_buckets[i] >= b->rows)
            shape.batch = m->batch_buckets[i];
    return shape;
}

status place_find_program(const worker *w, int device_index, place *out)
{
    const batch *b = &w->batch;
    const model *m = b->model;
    *out = (place){.device_index = device_index, .bucket = b->bucket, .slot = -1};
    if (b->is_exact) {
        out->bucket = -1;
        return exact_programs_acquire(m, exact_shape(b), &out->exact, &out->program);
    }
    out->program = deferred_buckets_program(m, b->bucket, device_index);
    if (out->program != NULL)
        return STATUS_OK;
    const bucket_table *t = &b->queue->tables[device_index];
    int sequence = bucket_find_sequence(t, b->length_max);
    out->bucket = sequence < 0 ? -1 : bucket_choose(t, sequence, b->rows);
    /* A ragged program takes any number of rows: those of packed rows too. */
    if (out->bucket < 0 || (!t->is_ragged && m->buckets[out->bucket].shape.batch < b->rows))
        return status_fail(STATUS_UNAVAILABLE,
                           "device \"%s\" has no program for this batch of model \"%s\"",
                           w->executor->devices[device_index]->name, m->name);
    out->program = deferred_buckets_program(m, out->bucket, device_index);
    return STATUS_OK;
}

uint64_t place_acquire_slot(worker *w, place *p)
{
    assert(p->slot < 0);
    p->slot = device_slot_acquire(w->executor->devices[p->device_index], w->number);
    uint64_t now_ns = clock_now_ns();
    stage_stamp(w->batch.stage_ns, STAGE_PLACE, now_ns);
    return now_ns;
}

void place_release_slot(worker *w, place *p)
{
    assert(p->slot >= 0);
    device_slot_release(w->executor->devices[p->device_index], p->slot);
    p->slot = -1;
}

void place_release(worker *w, place *p)
{
    if (p->slot >= 0)
        place_release_slot(w, p);
    if (p->exact != NULL)
        exact_programs_release(w->batch.model, p->exact);
    p->exact = NULL;
}

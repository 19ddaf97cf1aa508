#include "models/start/deferred_buckets.h"

#include <assert.h>
#include <stdlib.h>

#include "models/start/late_programs.h"

const char *deferred_state_name(deferred_state state)
{
    static const char *const names[DEFERRED_STATES] = {"made_at_start", "pending", "wanted", "made",
                                                       "failed"};
    assert((unsigned)state < DEFERRED_STATES);
    return names[state];
}

deferred_state deferred_buckets_state(const model *m, int bucket)
{
    return m->deferred == NULL ? DEFERRED_NOT
                               : (deferred_state)atomic_load_explicit(&m->deferred->states[bucket],
                                                                      memory_order_relaxed);
}

deferred_buckets *deferred_buckets_create(void)
{
    return calloc(1, sizeof(deferred_buckets));
}

void deferred_buckets_dispose(model *m)
{
    device *cpu = m->device_count > 0 ? m->devices[m->device_count - 1] : NULL;
    for (int i = 0; m->deferred != NULL && i < m->bucket_count; i++) {
        device_program *program = atomic_load(&m->deferred->programs[i]);
        if (program != NULL)
            cpu->interface->release(cpu, program);
    }
    free(m->deferred);
    m->deferred = NULL;
}

device_program *deferred_buckets_program(const model *m, int bucket, int device_index)
{
    const model_bucket *b = &m->buckets[bucket];
    device_program *program = b->programs == NULL ? NULL : b->programs[device_index];
    if (program == NULL)
        program = late_programs_get(m, bucket, device_index);
    if (program != NULL || m->deferred == NULL || device_index != m->device_count - 1)
        return program;
    return atomic_load_explicit(&m->deferred->programs[bucket], memory_order_acquire);
}

uint32_t deferred_buckets_made(const model *m)
{
    uint32_t late = late_programs_published(m);
    return m->deferred == NULL
               ? late
               : late + atomic_load_explicit(&m->deferred->made, memory_order_acquire);
}

int deferred_buckets_find(const model *m, int64_t sequence, int64_t above, int64_t rows)
{
    int found = -1;
    for (int i = 0; m->deferred != NULL && i < m->bucket_count; i++) {
        const model_bucket *b = &m->buckets[i];
        if (b->shape.sequence != sequence || b->shape.batch <= above || b->sequences > 0 ||
            deferred_buckets_state(m, i) != DEFERRED_PENDING)
            continue;
        found = i; /* ascending by rows */
        if (b->shape.batch >= rows)
            break;
    }
    return found;
}

void deferred_buckets_want(const model *m, int bucket)
{
    deferred_buckets *d = m->deferred;
    int pending = DEFERRED_PENDING;
    assert(d != NULL && bucket >= 0 && bucket < m->bucket_count);
    if (atomic_compare_exchange_strong(&d->states[bucket], &pending, DEFERRED_WANTED) &&
        d->on_wanted != NULL)
        d->on_wanted(d->owner);
}

int deferred_buckets_next(const model *m)
{
    for (int i = 0; m->deferred != NULL && i < m->bucket_count; i++)
        if (deferred_buckets_state(m, i) == DEFERRED_WANTED)
            return i;
    return -1;
}

void deferred_buckets_finish(const model *m, int bucket, device_program *program)
{
    deferred_buckets *d = m->deferred;
    assert(deferred_buckets_state(m, bucket) == DEFERRED_WANTED);
    atomic_store_explicit(&d->programs[bucket], program, memory_order_release);
    atomic_store(&d->states[bucket], program == NULL ? DEFERRED_FAILED : DEFERRED_MADE);
    if (program != NULL)
        atomic_fetch_add_explicit(&d->made, 1, memory_order_release);
}

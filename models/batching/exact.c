#include "models/batching/exact.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct model_exact_entry {
    model_exact_entry *next;
    device_bucket shape;
    device_program *program;
    uint64_t used; /* larger is more recent */
    int users;
};

struct model_exact {
    pthread_mutex_t mutex; /* held for a walk over at most a few dozen entries */
    device *cpu;
    model_exact_entry *first;
    int count;
    uint64_t clock;
};

model_exact *model_exact_create(device *cpu)
{
    model_exact *e = calloc(1, sizeof *e);
    if (e == NULL)
        return NULL;
    pthread_mutex_init(&e->mutex, NULL);
    e->cpu = cpu;
    return e;
}

static void destroy_entry(model_exact *e, model_exact_entry *entry)
{
    e->cpu->interface->release(e->cpu, entry->program);
    free(entry);
}

void model_exact_destroy(model_exact *e)
{
    if (e == NULL)
        return;
    while (e->first != NULL) {
        model_exact_entry *entry = e->first;
        assert(entry->users == 0);
        e->first = entry->next;
        destroy_entry(e, entry);
    }
    pthread_mutex_destroy(&e->mutex);
    free(e);
}

static model_exact_entry *find(model_exact *e, device_bucket shape)
{
    for (model_exact_entry *i = e->first; i != NULL; i = i->next) {
        if (i->shape.batch == shape.batch && i->shape.sequence == shape.sequence) {
            i->users++;
            i->used = ++e->clock;
            return i;
        }
    }
    return NULL;
}

/* Unlinks the unused entry that was used longest ago, when there are too many. */
static model_exact_entry *evict(model_exact *e)
{
    model_exact_entry **oldest = NULL;
    if (e->count < MODEL_EXACT_PROGRAMS_MAX)
        return NULL;
    for (model_exact_entry **i = &e->first; *i != NULL; i = &(*i)->next)
        if ((*i)->users == 0 && (oldest == NULL || (*i)->used < (*oldest)->used))
            oldest = i;
    if (oldest == NULL)
        return NULL;
    model_exact_entry *entry = *oldest;
    *oldest = entry->next;
    e->count--;
    return entry;
}

status model_exact_take(const model *m, device_bucket shape, model_exact_entry **entry,
                        device_program **program)
{
    model_exact *e = m->exact;
    assert(e != NULL);
    pthread_mutex_lock(&e->mutex);
    model_exact_entry *found = find(e, shape);
    pthread_mutex_unlock(&e->mutex);
    if (found == NULL) {
        model_exact_entry *made = calloc(1, sizeof *made);
        if (made == NULL)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a program");
        status failure = e->cpu->interface->compile(e->cpu, &m->on_device, shape, &made->program);
        if (failure) {
            free(made);
            return failure;
        }
        made->shape = shape;
        atomic_fetch_add_explicit(&m->counters->compiles[MODEL_COMPILE_EXACT], 1,
                                  memory_order_relaxed);
        pthread_mutex_lock(&e->mutex);
        model_exact_entry *gone = NULL;
        found = find(e, shape);
        if (found == NULL) {
            gone = evict(e);
            made->users = 1;
            made->used = ++e->clock;
            made->next = e->first;
            e->first = found = made;
            e->count++;
        } else {
            gone = made; /* another slot was quicker */
        }
        pthread_mutex_unlock(&e->mutex);
        if (gone != NULL)
            destroy_entry(e, gone);
    }
    *entry = found;
    *program = found->program;
    return STATUS_OK;
}

void model_exact_give(const model *m, model_exact_entry *entry)
{
    pthread_mutex_lock(&m->exact->mutex);
    assert(entry->users > 0);
    entry->users--;
    pthread_mutex_unlock(&m->exact->mutex);
}

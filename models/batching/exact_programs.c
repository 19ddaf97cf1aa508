#include "models/batching/exact_programs.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct exact_program {
    exact_program *next;
    device_bucket shape;
    device_program *program;
    uint64_t used; /* larger is more recent */
    int users;     /* callers between acquire and release */
};

struct exact_programs {
    pthread_mutex_t mutex; /* held while EXACT_PROGRAMS_MAX entries are searched */
    device *cpu;
    exact_program *first;
    int count;
    uint64_t clock;
};

exact_programs *exact_programs_create(device *cpu)
{
    exact_programs *e = calloc(1, sizeof *e);
    if (e == NULL)
        return NULL;
    pthread_mutex_init(&e->mutex, NULL);
    e->cpu = cpu;
    return e;
}

static void destroy_entry(exact_programs *e, exact_program *entry)
{
    e->cpu->interface->release(e->cpu, entry->program);
    free(entry);
}

void exact_programs_destroy(exact_programs *e)
{
    if (e == NULL)
        return;
    while (e->first != NULL) {
        exact_program *entry = e->first;
        assert(entry->users == 0);
        e->first = entry->next;
        destroy_entry(e, entry);
    }
    pthread_mutex_destroy(&e->mutex);
    free(e);
}

static exact_program *find(exact_programs *e, device_bucket shape)
{
    for (exact_program *i = e->first; i != NULL; i = i->next) {
        if (i->shape.batch == shape.batch && i->shape.sequence == shape.sequence) {
            i->users++;
            i->used = ++e->clock;
            return i;
        }
    }
    return NULL;
}

/* Unlinks the unused entry that was used longest ago, when there are too many. */
static exact_program *evict(exact_programs *e)
{
    exact_program **oldest = NULL;
    if (e->count < EXACT_PROGRAMS_MAX)
        return NULL;
    for (exact_program **i = &e->first; *i != NULL; i = &(*i)->next)
        if ((*i)->users == 0 && (oldest == NULL || (*i)->used < (*oldest)->used))
            oldest = i;
    if (oldest == NULL)
        return NULL;
    exact_program *entry = *oldest;
    *oldest = entry->next;
    e->count--;
    return entry;
}

status exact_programs_acquire(const model *m, device_bucket shape, exact_program **entry,
                              device_program **program)
{
    exact_programs *e = m->exact_programs;
    assert(e != NULL);
    pthread_mutex_lock(&e->mutex);
    exact_program *found = find(e, shape);
    pthread_mutex_unlock(&e->mutex);
    if (found == NULL) {
        exact_program *made = calloc(1, sizeof *made);
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
        exact_program *gone = NULL;
        found = find(e, shape);
        if (found == NULL) {
            gone = evict(e);
            made->users = 1;
            made->used = ++e->clock;
            made->next = e->first;
            e->first = found = made;
            e->count++;
        } else {
            gone = made; /* another worker was quicker */
        }
        pthread_mutex_unlock(&e->mutex);
        if (gone != NULL)
            destroy_entry(e, gone);
    }
    *entry = found;
    *program = found->program;
    return STATUS_OK;
}

void exact_programs_release(const model *m, exact_program *entry)
{
    pthread_mutex_lock(&m->exact_programs->mutex);
    assert(entry->users > 0);
    entry->users--;
    pthread_mutex_unlock(&m->exact_programs->mutex);
}

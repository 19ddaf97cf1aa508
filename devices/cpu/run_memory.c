#include "devices/cpu/run_memory.h"

#include <assert.h>

#include "base/large_memory.h"

void run_counter_init(run_counter *c, const device_memory *memory)
{
    *c = (run_counter){.runs = 0};
    if (memory)
        c->memory = *memory;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->ended, NULL);
}

void run_counter_dispose(run_counter *c)
{
    assert(c->runs == 0);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->ended);
}

int64_t run_counter_bytes_max(const run_counter *c, int64_t bytes)
{
    bool is_less = c->memory.take && c->memory.bytes_max < (size_t)bytes;
    return is_less ? (int64_t)c->memory.bytes_max : bytes;
}

status run_memory_count(run_memory *m, run_counter *c, size_t bytes, const cancel_token *cancel)
{
    status s = STATUS_OK;
    if (!c->memory.take)
        return STATUS_OK;
    pthread_mutex_lock(&c->lock);
    while (!c->memory.take(c->memory.context, bytes)) {
        if ((s = cancel_check(cancel)))
            break;
        if (c->runs == 0) {
            s = status_fail(STATUS_OUT_OF_MEMORY,
                            "there is no room for the %zu MiB that sizes like these need now",
                            bytes >> 20);
            break;
        }
        pthread_cond_wait(&c->ended, &c->lock);
    }
    if (!s) {
        m->counted = bytes;
        c->runs++;
    }
    pthread_mutex_unlock(&c->lock);
    return s;
}

status run_memory_allocate(run_memory *m, size_t bytes)
{
    m->workspace = large_memory_grow(NULL, 0, bytes);
    m->bytes = m->workspace ? bytes : 0;
    return m->workspace
               ? STATUS_OK
               : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a workspace of %zu bytes", bytes);
}

void run_memory_free(run_memory *m, run_counter *c)
{
    large_memory_free(m->workspace, m->bytes);
    if (m->counted > 0) {
        pthread_mutex_lock(&c->lock);
        c->memory.give(c->memory.context, m->counted);
        c->runs--;
        pthread_cond_broadcast(&c->ended);
        pthread_mutex_unlock(&c->lock);
    }
    *m = (run_memory){0};
}

#include "devices/pjrt/host/objects.h"

#include "devices/pjrt/plugin/fingerprint.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct host_weight {
    pjrt_buffer *buffers[HOST_DEVICES_MAX];
} host_weight;

static void *table_get(host_objects *o, host_table *t, uint32_t number)
{
    pthread_mutex_lock(&o->lock);
    void *item = number < t->capacity ? t->items[number] : NULL;
    pthread_mutex_unlock(&o->lock);
    return item;
}

static void *table_set(host_objects *o, host_table *t, uint32_t number, void *item)
{
    pthread_mutex_lock(&o->lock);
    if (number >= t->capacity) {
        uint32_t capacity = (number + 64) * 2;
        t->items = realloc(t->items, capacity * sizeof *t->items);
        assert(t->items != NULL);
        memset(t->items + t->capacity, 0, (capacity - t->capacity) * sizeof *t->items);
        t->capacity = capacity;
    }
    void *before = t->items[number];
    t->items[number] = item;
    pthread_mutex_unlock(&o->lock);
    return before;
}

status host_objects_load_weight(host_objects *o, const pjrt_message *m, const int fds[3])
{
    void *data = NULL;
    status s = pjrt_memory_map(fds[0], m->bytes, false, &data);
    if (s)
        return s;
    host_weight *w = calloc(1, sizeof *w);
    assert(w != NULL);
    tensor t;
    pjrt_tensor_from_shape(&m->shape, data, &t);
    pjrt_event *uploads[HOST_DEVICES_MAX] = {0};
    for (int d = 0; s == STATUS_OK && d < o->session->device_count; d++)
        s = pjrt_session_upload(o->session, d, &t, &w->buffers[d], &uploads[d]);
    for (int d = 0; d < o->session->device_count; d++) {
        status ended = pjrt_session_await(o->session, uploads[d], "uploading a weight");
        s = s ? s : ended;
    }
    pjrt_memory_unmap(data, m->bytes);
    if (s == STATUS_OK) {
        table_set(o, &o->weights, m->object, w);
        return STATUS_OK;
    }
    for (int d = 0; d < o->session->device_count; d++)
        if (w->buffers[d] != NULL)
            pjrt_session_free_buffer(o->session, w->buffers[d]);
    free(w);
    return s;
}

static void destroy_program(host_objects *o, host_program *p)
{
    if (p == NULL)
        return;
    if (p->executable != NULL)
        pjrt_session_release(o->session, p->executable);
    free(p->arguments);
    free(p);
}

status host_objects_load_program(host_objects *o, const pjrt_message *m, const int fds[3])
{
    void *serialized = NULL, *table = NULL;
    size_t table_bytes = m->argument_count * sizeof(pjrt_argument);
    host_program *p = calloc(1, sizeof *p);
    assert(p != NULL);
    status s = pjrt_memory_map(fds[0], m->bytes, false, &serialized);
    if (s == STATUS_OK)
        s = pjrt_memory_map(fds[1], table_bytes, false, &table);
    if (s)
        goto done;
    p->argument_count = (int)m->argument_count;
    p->arguments = malloc(table_bytes ? table_bytes : 1);
    assert(p->arguments != NULL);
    memcpy(p->arguments, table, table_bytes);
    for (int i = 0; i < p->argument_count; i++)
        if (p->arguments[i].is_weight && table_get(o, &o->weights, p->arguments[i].index) == NULL) {
            s = status_fail(STATUS_INTERNAL, "the program needs weight %u, which was not uploaded",
                            p->arguments[i].index);
            goto done;
        }
    s = pjrt_session_load(o->session, serialized, m->bytes, &p->executable);
    if (s == STATUS_OK)
        s = pjrt_session_check_abi(o->session, p->executable);
    if (s == STATUS_OK)
        s = pjrt_session_output_count(o->session, p->executable, &p->output_count);
    if (s == STATUS_OK && (uint32_t)p->output_count != m->output_count)
        s = status_fail(STATUS_INVALID_ARGUMENT, "the program has %d outputs, the model %u",
                        p->output_count, m->output_count);
    if (s == STATUS_OK) {
        destroy_program(o, table_set(o, &o->programs, m->object, p));
        p = NULL;
    }
done:
    if (serialized != NULL)
        pjrt_memory_unmap(serialized, m->bytes);
    if (table != NULL)
        pjrt_memory_unmap(table, table_bytes);
    destroy_program(o, p);
    return s;
}

void host_objects_release_weight(host_objects *o, uint32_t number)
{
    host_weight *w = table_set(o, &o->weights, number, NULL);
    if (w == NULL)
        return;
    for (int d = 0; d < o->session->device_count; d++)
        pjrt_session_free_buffer(o->session, w->buffers[d]);
    free(w);
}

void host_objects_release_program(host_objects *o, uint32_t number)
{
    destroy_program(o, table_set(o, &o->programs, number, NULL));
}

host_program *host_objects_program(host_objects *o, uint32_t number)
{
    return table_get(o, &o->programs, number);
}

pjrt_buffer *host_objects_weight(host_objects *o, uint32_t number, int device)
{
    return ((host_weight *)table_get(o, &o->weights, number))->buffers[device];
}

#include "models/start/late_programs.h"

#include <assert.h>
#include <stdlib.h>

late_programs *late_programs_create(const model *m)
{
    size_t count = (size_t)m->bucket_count * (size_t)m->device_count;
    late_programs *l = calloc(1, sizeof *l + count * sizeof l->programs[0]);
    if (l != NULL)
        l->device_count = m->device_count;
    return l;
}

void late_programs_drop(const model *m, int first, int end)
{
    late_programs *l = m->late;
    for (int i = 0; i < m->bucket_count; i++)
        for (int d = first; d < end; d++) {
            device_program *program = atomic_exchange(&l->programs[i * l->device_count + d], NULL);
            if (program != NULL)
                m->devices[d]->interface->release(m->devices[d], program);
        }
}

void late_programs_dispose(model *m)
{
    if (m->late != NULL)
        late_programs_drop(m, 0, m->late->device_count);
    free(m->late);
    m->late = NULL;
}

device_program *late_programs_get(const model *m, int bucket, int device_index)
{
    late_programs *l = m->late;
    return l == NULL ? NULL
                     : atomic_load_explicit(&l->programs[bucket * l->device_count + device_index],
                                            memory_order_acquire);
}

uint32_t late_programs_published(const model *m)
{
    return m->late == NULL ? 0 : atomic_load_explicit(&m->late->published, memory_order_acquire);
}

void late_programs_put(const model *m, int bucket, int device_index, device_program *program)
{
    late_programs *l = m->late;
    assert(l != NULL && late_programs_get(m, bucket, device_index) == NULL);
    atomic_store_explicit(&l->programs[bucket * l->device_count + device_index], program,
                          memory_order_release);
}

void late_programs_publish(const model *m)
{
    atomic_fetch_add_explicit(&m->late->published, 1, memory_order_release);
}

#include "models/warm_up.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "models/probe.h"

static status warm(model *m, model_bucket *b, int device_index, const tensor *inputs,
                   tensor *outputs)
{
    device *d = m->devices[device_index];
    device_program *program;
    status failure = d->interface->compile(d, &m->on_device, b->shape, &program);
    if (failure)
        return failure;
    atomic_fetch_add_explicit(&m->counters.compiles[MODEL_COMPILE_WARM_UP], 1,
                              memory_order_relaxed);
    failure = probe_execute(d, program, inputs, outputs);
    if (failure) {
        d->interface->release(d, program);
        return failure;
    }
    b->programs[device_index] = program;
    return STATUS_OK;
}

status warm_up_model(model *m, void (*say)(void *context, const char *text), void *context)
{
    uint64_t start_ns = clock_now_ns();
    arena a = {0};
    status failure = STATUS_OK;
    for (int i = 0; i < m->bucket_count && !failure; i++) {
        model_bucket *b = &m->buckets[i];
        char text[200];
        snprintf(text, sizeof text, "%s: warming bucket %d of %d", m->name, i + 1, m->bucket_count);
        say(context, text);
        tensor inputs[MODEL_TENSORS_MAX], outputs[MODEL_TENSORS_MAX];
        arena_reset(&a, SIZE_MAX);
        failure = probe_make_inputs(m, b->shape, 1, &a, inputs);
        if (!failure)
            failure = probe_make_outputs(m, b->shape, &a, outputs);
        for (int d = 0; d < m->device_count && !failure; d++) {
            failure = warm(m, b, d, inputs, outputs);
            if (failure && d < m->device_count - 1) {
                log_warning("models", "%s: bucket %lldx%lld is not for device %s: %s", m->name,
                            (long long)b->shape.batch, (long long)b->shape.sequence,
                            m->devices[d]->name, status_message());
                failure = STATUS_OK;
            }
        }
    }
    arena_dispose(&a);
    m->warm_up_ns = clock_now_ns() - start_ns;
    return failure;
}

void warm_up_undo(model *m)
{
    for (int i = 0; i < m->bucket_count; i++)
        for (int d = 0; d < m->device_count && m->buckets[i].programs; d++)
            if (m->buckets[i].programs[d] != NULL) {
                m->devices[d]->interface->release(m->devices[d], m->buckets[i].programs[d]);
                m->buckets[i].programs[d] = NULL;
            }
}

#include "models/model.h"

#include <assert.h>

const char *model_fallback_name(model_fallback reason)
{
    static const char *const names[MODEL_FALLBACK_COUNT] = {
        [MODEL_FALLBACK_DEVICE_FAILED] = "device_failed",
        [MODEL_FALLBACK_NO_DEVICE] = "no_device",
        [MODEL_FALLBACK_SOONER] = "sooner",
    };
    assert((unsigned)reason < MODEL_FALLBACK_COUNT);
    return names[reason];
}

const char *model_compile_phase_name(model_compile_phase phase)
{
    static const char *const names[MODEL_COMPILE_COUNT] = {
        [MODEL_COMPILE_WARM_UP] = "warm_up",
        [MODEL_COMPILE_EXACT] = "exact",
        [MODEL_COMPILE_SERVING] = "serving",
    };
    assert((unsigned)phase < MODEL_COMPILE_COUNT);
    return names[phase];
}

bool model_tensor_dims(const model *m, bool is_output, int index, int64_t rows, int64_t length,
                       int64_t dims[TENSOR_RANK_MAX])
{
    const model_tensor *t = is_output ? &m->outputs[index] : &m->inputs[index];
    for (int i = 0; i < t->rank; i++) {
        dims[i] = i == t->batch_axis ? rows : i == t->sequence_axis ? length : t->dims[i];
        if (dims[i] >= 0)
            continue;
        if (m->graph == NULL)
            return false;
        graph_value_index v = is_output ? m->graph->outputs[index] : m->graph->inputs[index];
        const graph_shape *shape = &m->graph->values[v].shape;
        if (i >= shape->rank || shape->dims[i].is_unknown)
            return false;
        dims[i] = graph_dim_at(shape->dims[i], rows, length);
        if (dims[i] < 0)
            return false;
    }
    return true;
}

void model_retain(model *m)
{
    int64_t before = atomic_fetch_add_explicit(&m->references, 1, memory_order_relaxed);
    assert(before >= 0);
}

void model_release(model *m)
{
    int64_t before = atomic_fetch_sub_explicit(&m->references, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before == 1 && m->on_unused != NULL)
        m->on_unused(m);
}

#include "models/model.h"

#include <assert.h>
#include <stdlib.h>

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

const char *model_basis_name(model_basis basis)
{
    static const char *const names[] = {"", "declared", "proved", "probed", "undecided"};
    assert((unsigned)basis < sizeof names / sizeof names[0]);
    return names[basis];
}

const char *model_compile_phase_name(model_compile_phase phase)
{
    static const char *const names[MODEL_COMPILE_COUNT] = {
        [MODEL_COMPILE_WARM_UP] = "warm_up",   [MODEL_COMPILE_EXACT] = "exact",
        [MODEL_COMPILE_DEFERRED] = "deferred", [MODEL_COMPILE_JOINED] = "joined",
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

/* The constant part and what it points to, in one piece. */
typedef struct model_storage {
    model constant;
    model_references references;
    model_counters counters;
    model_usage usage;
} model_storage;

model *model_create(void)
{
    model_storage *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    model *m = &s->constant;
    m->references = &s->references;
    m->counters = &s->counters;
    m->usage = &s->usage;
    m->references->model = m;
    atomic_store(&m->references->count, 1);
    return m;
}

void model_destroy(model *m)
{
    assert(atomic_load(&m->references->count) <= 1);
    free(m); /* the first member of its storage */
}

void model_retain(const model *m)
{
    int64_t before = atomic_fetch_add_explicit(&m->references->count, 1, memory_order_relaxed);
    assert(before > 0);
}

void model_release(const model *m)
{
    model_references *r = m->references;
    int64_t before = atomic_fetch_sub_explicit(&r->count, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before == 1 && r->on_unused != NULL)
        r->on_unused(r->owner, r->model);
}

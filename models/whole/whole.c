#include "models/whole/whole.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "devices/cpu/dynamic/dynamic.h"
#include "devices/cpu/evaluate.h"
#include "devices/slot.h"
#include "graph/specialise/specialise.h"
#include "models/batching/probe.h"
#include "models/start/deferred_buckets.h"
#include "models/whole/free_sizes.h"
#include "models/whole/own_sizes.h"

/* Or an unknown rank. */
static bool has_unknown_dims(const graph *g, const graph_value_index *values, int count)
{
    for (int i = 0; i < count; i++) {
        const graph_shape *shape = &g->values[values[i]].shape;
        if (shape->rank < 0)
            return true;
        for (int d = 0; d < shape->rank; d++)
            if (shape->dims[d].is_unknown)
                return true;
    }
    return false;
}

/* The types that the file declares for the outputs must do. The message of the last failure says
 * which node's shape depends on what, and then, how another device could do. */
static status make_dynamic(model *m, graph *g)
{
    status failure = STATUS_UNSUPPORTED;
    const char *why = status_message(), *end = strstr(why, "; ");
    m->whole_note = arena_format(&m->memory, "shapes depend on values (%.*s)",
                                 end == NULL ? (int)strlen(why) : (int)(end - why), why);
    if (m->whole_note == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a model");
    for (int i = 0; i < g->output_count; i++) {
        const graph_value *v = &g->values[g->outputs[i]];
        if (!v->has_dtype || v->shape.rank < 0)
            return failure; /* its message says which shape depends on what */
    }
    g->is_dynamic = m->on_device.is_whole = true;
    return cpu_dynamic_check(g);
}

/* Shapes that were seen once: constant is only what the file declares so. */
static void set_output(graph_value *v, const tensor *seen)
{
    bool is_declared = v->has_dtype && v->shape.rank == seen->rank;
    v->dtype = seen->dtype;
    v->has_dtype = true;
    v->shape.rank = seen->rank;
    for (int d = 0; d < seen->rank; d++)
        if (!is_declared || !graph_dim_is_constant(v->shape.dims[d]) ||
            v->shape.dims[d].constant != seen->dims[d])
            v->shape.dims[d] = (graph_dim){.is_unknown = true};
}

static bool can_fix(const free_sizes *found)
{
    for (int i = 0; i < found->count; i++)
        if (!found->sizes[i].is_batch)
            return true;
    return false;
}

/* Whether rows, of any number and first in every input, remain where all other sizes are fixed. */
static bool has_rows(const graph *g, const free_sizes *found)
{
    for (int i = 0; i < g->input_count; i++) {
        const graph_shape *shape = &g->values[g->inputs[i]].shape;
        if (shape->rank < 1 || shape->dims[0].is_unknown || shape->dims[0].batch != 1)
            return false;
    }
    for (int i = 0; i < found->count; i++)
        if (found->sizes[i].is_batch)
            return found->sizes[i].step == 1;
    return false;
}

/* Whether each input has a first dim of 1 and sizes after it. */
static bool has_fixed_rows(const graph *g, const free_sizes *found)
{
    bool is_fixed = found->count > 0;
    for (int i = 0; i < g->input_count; i++) {
        const graph_shape *shape = &g->values[g->inputs[i]].shape;
        is_fixed &= shape->rank > 1 && graph_dim_is_constant(shape->dims[0]) &&
                    shape->dims[0].constant == 1;
    }
    return is_fixed;
}

/* Adds what to do to the message. */
static status fail_to_find(const free_sizes *found, arena *memory)
{
    const char *dims = free_sizes_dims(found, memory);
    return status_fail(STATUS_INVALID_ARGUMENT,
                       "%s; no sizes were found that the model accepts: if you know some, give "
                       "them in model.json: \"dims\": {%s}",
                       status_message(), dims != NULL ? dims : "");
}

/* Finds shapes that the graph accepts; `why`: it has sizes beyond rows and tokens, or another
 * reason in words. */
static status find_shapes(model *m, graph *g, const char *why)
{
    free_sizes *found = arena_allocate(&m->memory, sizeof *found);
    tensor *inputs = arena_allocate_zeroed(&m->memory, (size_t)g->input_count + 1, sizeof *inputs);
    tensor *outputs = calloc((size_t)g->output_count + 1, sizeof *outputs);
    status failure = found != NULL && inputs != NULL && outputs != NULL
                         ? free_sizes_find(g, &m->budget, &m->memory, found, inputs, outputs)
                         : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a model");
    if (failure == STATUS_INVALID_ARGUMENT && can_fix(found))
        failure = fail_to_find(found, &m->memory);
    if (!failure) {
        for (int i = 0; i < g->output_count; i++)
            set_output(&g->values[g->outputs[i]], &outputs[i]);
        m->on_device.is_whole = true;
        m->whole_inputs = inputs;
        m->whole_sizes = found;
        const char *dims = free_sizes_dims(found, &m->memory);
        m->whole_note = why;
        if (dims != NULL && dims[0] != 0 && has_rows(g, found))
            m->whole_note =
                arena_format(&m->memory,
                             "%s; to let requests of one size share batches, fix the size in "
                             "model.json: \"dims\": {%s}",
                             why, dims);
        else if (has_fixed_rows(g, found))
            m->whole_note = arena_format(
                &m->memory,
                "%s; their first dim is 1 in the file: exported with a free one, requests of one "
                "size may share batches",
                why);
        if (m->whole_note == NULL || dims == NULL)
            failure = status_fail(STATUS_OUT_OF_MEMORY, "no memory for a model");
    }
    free(outputs);
    return failure;
}

/* The message of the last failure says which node refused those that were tried. */
static const char *without_formula(model *m)
{
    const char *why = status_message(), *end = strstr(why, "; ");
    return arena_format(&m->memory, "it does not take every number of rows and tokens (%.*s)",
                        end == NULL ? (int)strlen(why) : (int)(end - why), why);
}

status whole_examine(model *m)
{
    graph *g = m->graph;
    const char *why = "its inputs have sizes beyond rows and tokens", *own = NULL;
    status failure = STATUS_INVALID_ARGUMENT;
    if (!has_unknown_dims(g, g->inputs, g->input_count)) {
        status s = own_sizes_examine(g, &m->budget, &m->memory, &own);
        if (s)
            return s;
    }
    if (has_unknown_dims(g, g->inputs, g->input_count)) {
        status s = graph_prepare(g, &m->budget, cpu_evaluate_node);
        if (s)
            return s;
        why = own != NULL ? own : why;
    } else {
        failure = graph_infer_symbolic(g, &m->budget, cpu_evaluate_node);
        if (!failure && !has_unknown_dims(g, g->outputs, g->output_count))
            return STATUS_OK;
        why = failure ? without_formula(m)
                      : "the shapes of its outputs are no simple function of rows and tokens";
        if (why == NULL)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a model");
    }
    if (!failure || failure == STATUS_INVALID_ARGUMENT)
        failure = find_shapes(m, g, why);
    return failure == STATUS_UNSUPPORTED ? make_dynamic(m, g) : failure;
}

/* On small numbers, at the shapes that were found. */
status whole_run(const model *m)
{
    device *cpu = m->devices[m->device_count - 1];
    arena memory = {0};
    tensor inputs[MODEL_TENSORS_MAX], outputs[MODEL_TENSORS_MAX];
    status failure = probe_fill_inputs(m, m->whole_inputs, &memory, inputs);
    if (!failure) {
        device_batch batch = {
            .inputs = inputs, .outputs = outputs, .results = &memory, .cancel = m->budget.cancel};
        int slot = device_slot_acquire(cpu, 0);
        failure = cpu->interface->execute(cpu, m->weights_holder, slot, &batch);
        device_slot_release(cpu, slot);
    }
    arena_dispose(&memory);
    /* What small numbers do not suit, requests may. */
    return failure == STATUS_INVALID_ARGUMENT ? STATUS_OK : failure;
}

status whole_try(model *m, bool is_known)
{
    bool is_dynamic = m->graph->is_dynamic;
    m->batching.can_batch = m->batching.can_pad = false;
    m->batching.batch_basis = m->batching.pad_basis = MODEL_BASIS_NONE;
    m->batching.sequence_max = 0;
    m->batching.batch_max = 1;
    const char *note =
        arena_format(&m->memory, "each request runs alone, at its own shape: %s", m->whole_note);
    if (note == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a model");
    m->batching_note = note;
    const char *sizes = m->whole_sizes != NULL ? free_sizes_text(m->whole_sizes, &m->memory) : NULL;
    bool has_sizes = sizes != NULL && sizes[0] != 0;
    log_info("models", "%s: %s%s%s", m->name, note, has_sizes ? "; sizes accepted: " : "",
             has_sizes ? sizes : "");
    if (is_dynamic)
        return STATUS_OK;
    if (!is_known)
        return whole_run(m);
    if (m->deferred == NULL && (m->deferred = deferred_buckets_create()) == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a model");
    atomic_store(&m->deferred->wants_run, true);
    return STATUS_OK;
}

int64_t whole_count_rows(const model *m, const tensor *inputs)
{
    for (int i = 0; i < m->input_count; i++) {
        int64_t most = m->batching.queue_rows_max;
        if (m->inputs[i].rank == 0 || m->inputs[i].dims[0] >= 0)
            continue;
        int64_t rows = inputs[i].dims[0];
        return rows < 1 ? 1 : rows < most ? rows : most;
    }
    return 1;
}

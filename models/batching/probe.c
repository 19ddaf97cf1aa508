#include "models/batching/probe.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/log.h"
#include "base/xorshift.h"
#include "devices/slot.h"
#include "models/batching/describe.h"
#include "models/batching/experiment.h"
#include "models/batching/independence.h"
#include "models/start/start_budget.h"

static void fill_random(const model *m, int input, tensor *t, uint64_t *state)
{
    const model_tensor *declared = &m->inputs[input];
    int64_t count = tensor_count(t);
    if (t->dtype == DTYPE_BYTES)
        return; /* zeroed: empty strings */
    if (declared->is_mask) {
        for (int64_t i = 0; i < count; i++)
            tensor_set_number(t, i, 1);
        return;
    }
    int64_t limit = INT64_MAX;
    if (dtype_is_integer(t->dtype) && m->graph != NULL)
        limit = describe_index_limit(m->graph, m->graph->inputs[input], 1);
    if (limit == INT64_MAX || limit < 1)
        limit = 2;
    /* The first ids often mean padding, or an unknown token. */
    int64_t least = limit > 8 ? 4 : 0;
    for (int64_t i = 0; i < count; i++) {
        uint64_t r = xorshift_next(state) >> 16;
        double value = dtype_is_float(t->dtype)
                           ? (double)(r & 0xffff) / 32768 - 1
                           : (double)(least + (int64_t)(r % (uint64_t)(limit - least)));
        if (t->dtype == DTYPE_BOOL)
            value = (double)(r & 1);
        tensor_set_number(t, i, value);
    }
}

/* Allocates an input or output, if the model's budget allows it. `bytes`: of those before it. */
static status allocate(const model *m, const model_tensor *t, const int64_t *dims, arena *a,
                       int64_t *bytes, tensor *out)
{
    tensor shape;
    status failure = tensor_set_shape(&shape, t->dtype, t->rank, dims);
    if (failure)
        return failure;
    *bytes = graph_cost_add(*bytes, (int64_t)tensor_bytes(&shape));
    if (m->budget.activation_bytes_max > 0 && *bytes > m->budget.activation_bytes_max) {
        char cost[32], limit[32];
        return status_fail(STATUS_TOO_LARGE,
                           "tensor \"%s\": with it, inputs or outputs take %s; the limit is %s",
                           t->name, graph_cost_bytes_text(cost, *bytes),
                           graph_cost_bytes_text(limit, m->budget.activation_bytes_max));
    }
    return tensor_allocate(out, a, t->dtype, t->rank, dims);
}

status probe_make_inputs(const model *m, device_bucket shape, uint64_t seed, arena *a,
                         tensor *inputs)
{
    uint64_t state = seed * 2 + 1;
    int64_t bytes = 0;
    for (int i = 0; i < m->input_count; i++) {
        int64_t dims[TENSOR_RANK_MAX];
        if (!model_tensor_dims(m, false, i, shape.batch, shape.sequence, dims))
            return status_fail(STATUS_UNSUPPORTED, "input \"%s\": its shape is not known",
                               m->inputs[i].name);
        status failure = allocate(m, &m->inputs[i], dims, a, &bytes, &inputs[i]);
        if (failure)
            return failure;
        fill_random(m, i, &inputs[i], &state);
    }
    return STATUS_OK;
}

status probe_fill_inputs(const model *m, const tensor *shapes, arena *a, tensor *inputs)
{
    uint64_t state = 3;
    int64_t bytes = 0;
    for (int i = 0; i < m->input_count; i++) {
        status failure = allocate(m, &m->inputs[i], shapes[i].dims, a, &bytes, &inputs[i]);
        if (failure)
            return failure;
        fill_random(m, i, &inputs[i], &state);
    }
    return STATUS_OK;
}

status probe_make_outputs(const model *m, device_bucket shape, arena *a, tensor *outputs)
{
    int64_t bytes = 0;
    for (int i = 0; i < m->output_count; i++) {
        int64_t dims[TENSOR_RANK_MAX];
        if (!model_tensor_dims(m, true, i, shape.batch, shape.sequence, dims))
            return status_fail(STATUS_UNSUPPORTED,
                               "output \"%s\": its shape does not follow from the inputs' shapes",
                               m->outputs[i].name);
        status failure = allocate(m, &m->outputs[i], dims, a, &bytes, &outputs[i]);
        if (failure)
            return failure;
    }
    return STATUS_OK;
}

status probe_execute(const model *m, device *d, device_program *program, const tensor *inputs,
                     tensor *outputs)
{
    device_segment segment = {.rows = program->bucket.batch,
                              .length = program->bucket.sequence,
                              .inputs = inputs,
                              .outputs = outputs};
    device_batch batch = {.inputs = inputs,
                          .outputs = outputs,
                          .segments = &segment,
                          .segment_count = 1,
                          .cancel = m->budget.cancel};
    int slot = device_slot_acquire(d, 0);
    status failure = d->interface->execute(d, program, slot, &batch);
    device_slot_release(d, slot);
    start_budget_spend(m->start, program->cost.operations);
    return failure;
}

static device *cpu_of(const model *m)
{
    assert(m->device_count > 0);
    return m->devices[m->device_count - 1];
}

/* Compiles at the shape, which checks what it costs, and runs once. An encoder's compilation checks
 * the length already. A model without a sequence axis is asked for one shape only, which warm-up
 * runs as well: it is not run here where that takes too long. */
static status run(const model *m, device_bucket shape, arena *a, const tensor *inputs,
                  tensor *outputs)
{
    device *cpu = cpu_of(m);
    device_program *program;
    status failure = cpu->interface->compile(cpu, &m->on_device, shape, &program);
    if (failure)
        return failure;
    bool must_run = shape.sequence > 0 ? program->layout != DEVICE_RAGGED
                                       : start_budget_allows(m->start, program->cost.operations);
    failure = probe_make_outputs(m, shape, a, outputs);
    if (!failure && must_run)
        failure = probe_execute(m, cpu, program, inputs, outputs);
    cpu->interface->release(cpu, program);
    return failure;
}

static status try_length(const model *m, int64_t length)
{
    arena a = {0};
    tensor inputs[MODEL_TENSORS_MAX], outputs[MODEL_TENSORS_MAX];
    device_bucket shape = {1, length};
    status failure = probe_make_inputs(m, shape, 1, &a, inputs);
    if (!failure)
        failure = run(m, shape, &a, inputs, outputs);
    arena_dispose(&a);
    return failure;
}

/* Whether a failure ends the load: the model costs too much, or the load has ended. Other failures
 * of the probe say what the model cannot do. */
static bool is_fatal(status failure)
{
    return failure == STATUS_TOO_LARGE || cancel_is_end(failure);
}

static status find_length(model *m)
{
    int64_t limit = m->batching.sequence_max;
    status failure = try_length(m, limit);
    if (!failure || is_fatal(failure))
        return failure;
    int64_t works = limit / 2, fails = limit;
    while (works > 0 && (failure = try_length(m, works)) != STATUS_OK) {
        if (is_fatal(failure))
            return failure;
        fails = works;
        works /= 2;
    }
    if (works == 0)
        return try_length(m, limit); /* for the message of the first failure */
    while (fails - works > 1) {
        int64_t middle = works + (fails - works) / 2;
        failure = try_length(m, middle);
        if (is_fatal(failure))
            return failure;
        if (failure == STATUS_OK)
            works = middle;
        else
            fails = middle;
    }
    m->batching.sequence_max = works;
    return STATUS_OK;
}

/* Dims that are neither constant, nor batch, nor sequence: such tensors cannot be batched. */
static const char *with_other_dims(const model *m)
{
    for (int i = 0; i < m->input_count + m->output_count; i++) {
        const model_tensor *t =
            i < m->input_count ? &m->inputs[i] : &m->outputs[i - m->input_count];
        for (int k = 0; k < t->rank; k++)
            if (t->dims[k] < 0 && k != t->batch_axis && k != t->sequence_axis)
                return t->name;
    }
    return NULL;
}

static const model_tensor *without_batch_axis(const model *m)
{
    for (int i = 0; i < m->input_count + m->output_count; i++) {
        const model_tensor *t =
            i < m->input_count ? &m->inputs[i] : &m->outputs[i - m->input_count];
        if (t->batch_axis != 0)
            return t;
    }
    return NULL;
}

static bool has_rows(const model *m)
{
    for (int i = 0; i < m->input_count; i++)
        if (m->inputs[i].batch_axis == 0)
            return true;
    return false;
}

/* The dim, other than the first, that grows with the rows; -1: none does. */
static int find_rows(const model *m, const model_tensor *t)
{
    bool is_input = t >= m->inputs && t < m->inputs + m->input_count;
    if (m->graph == NULL)
        return -1;
    const graph *g = m->graph;
    const graph_shape *shape =
        &g->values[is_input ? g->inputs[t - m->inputs] : g->outputs[t - m->outputs]].shape;
    for (int d = 1; d < t->rank && d < shape->rank; d++)
        if (!shape->dims[d].is_unknown && shape->dims[d].batch != 0)
            return d;
    return -1;
}

/* What would give a tensor a batch axis, or "". Beside inputs with free rows, a first dim of 1 is
 * something else: layers of a state. */
static const char *advise_batch_axis(const model *m, const model_tensor *t)
{
    bool is_input = t >= m->inputs && t < m->inputs + m->input_count;
    if (find_rows(m, t) > 0)
        return ": its rows are on another axis than the first; exported with rows first, requests "
               "may share batches";
    if (!is_input || t->rank == 0 || t->dims[0] != 1)
        return "";
    return has_rows(m) ? ": the file fixes its first dim to 1"
                       : ": the file fixes its first dim to 1; exported with a free one, requests "
                         "may share batches";
}

/* Why a row cannot be cut out of a batch's tensors, or NULL. */
static const char *cannot_cut(model *m)
{
    const model_tensor *unbatched = without_batch_axis(m);
    const char *odd = with_other_dims(m);
    if (unbatched != NULL)
        return arena_format(&m->memory,
                            "each request runs alone: \"%s\" has no batch axis of its own%s",
                            unbatched->name, advise_batch_axis(m, unbatched));
    if (odd != NULL)
        return arena_format(
            &m->memory, "each request runs alone: a dim of \"%s\" is neither rows nor tokens", odd);
    return NULL;
}

/* Appends to the note; NULL, for want of memory: it stays as it was. */
static void note(model *m, const char *added)
{
    const char *both =
        added == NULL ? NULL : arena_format(&m->memory, "%s%s", m->batching_note, added);
    if (both != NULL)
        m->batching_note = both;
}

/* "rows between -1 and 1: 3.1e-07 of the output's range". */
static const char *found_text(char text[160], const experiment_result *r)
{
    if (r->is_skipped)
        snprintf(text, 160, "an experiment would cost too much before ready");
    else if (isinf(r->difference))
        snprintf(text, 160, "%s: results are no numbers, or a batch does not run", r->inputs);
    else if (r->difference == 0)
        snprintf(text, 160, "experiments give the same bits");
    else
        snprintf(text, 160, "%s: outputs differ by %.1e of their range", r->inputs, r->difference);
    return text;
}

/* What model.json declares is not proved, but a contradiction is told. */
static status use_declared(model *m, bool can_batch, int64_t length)
{
    graph_independence found;
    char text[512];
    status failure = independence_examine(m, length, &found);
    if (failure)
        return failure;
    m->batching.can_batch = can_batch;
    m->batching.batch_basis = MODEL_BASIS_DECLARED;
    note(m, arena_format(&m->memory, "model.json declares that %s",
                         can_batch ? "rows are independent" : "rows run alone"));
    if (!can_batch || found.verdict != GRAPH_MIXED)
        return STATUS_OK;
    graph_independence_text(text, &found);
    note(m, arena_format(&m->memory, ", but rows influence each other: %s", text));
    log_warning("models", "%s: model.json declares \"can_batch\": true, but %s", m->name, text);
    return STATUS_OK;
}

static bool is_encoder(const model *m)
{
    return m->weights_holder != NULL && m->weights_holder->layout == DEVICE_RAGGED;
}

/* Proved: an experiment must agree, or something of ours is wrong. */
static status check_proof(model *m, const char *by, int64_t length)
{
    char text[160];
    experiment_result r;
    experiment check = {.rows = 3, .length = length, .batch_length = length, .is_optional = true};
    status failure = experiment_run(m, &check, &r);
    if (cancel_is_end(failure))
        return failure;
    m->batching.can_batch = !failure && r.is_same;
    m->batching.batch_basis = m->batching.can_batch ? MODEL_BASIS_PROVED : MODEL_BASIS_PROBED;
    found_text(text, &r);
    if (m->batching.can_batch) {
        note(m, arena_format(&m->memory, "rows are independent: %s (%s)", by, text));
        return STATUS_OK;
    }
    note(m, arena_format(&m->memory,
                         "each request runs alone: the graph keeps rows apart, but in an "
                         "experiment they are not (%s)",
                         text));
    log_warning("models", "%s: %s", m->name, m->batching_note);
    return STATUS_OK;
}

/* Neither proved nor disproved: an experiment says more, for whoever may declare it. */
static status explain_undecided(model *m, const graph_independence *found, int64_t length)
{
    char why[512], text[160];
    experiment_result r;
    experiment check = {.rows = 3,
                        .length = length,
                        .batch_length = length,
                        .is_thorough = true,
                        .is_optional = true};
    status failure = experiment_run(m, &check, &r);
    if (cancel_is_end(failure))
        return failure;
    m->batching.can_batch = false;
    m->batching.batch_basis = MODEL_BASIS_UNDECIDED;
    note(m, arena_format(&m->memory,
                         "each request runs alone: it is not proved that rows are independent (%s)",
                         graph_independence_text(why, found)));
    found_text(text, &r);
    if (r.is_skipped)
        note(m, "; if you know that they are, set \"can_batch\": true in model.json");
    else if (failure || !r.is_same)
        note(m, arena_format(&m->memory, "; in an experiment they are not (%s)", text));
    else
        note(m, arena_format(&m->memory,
                             "; in experiments they are (%s): if you know that they are, set "
                             "\"can_batch\": true in model.json",
                             text));
    return STATUS_OK;
}

/* Sets can_batch. Fails only if the load has ended: where three rows cost too much, each runs
 * alone. */
static status decide_batch(model *m, const manifest *file, int64_t length)
{
    graph_independence found;
    char text[512];
    if (file->can_batch >= 0)
        return use_declared(m, file->can_batch != 0, length);
    status failure = independence_examine(m, length, &found);
    if (failure)
        return failure;
    if (found.verdict == GRAPH_INDEPENDENT)
        return check_proof(m, "proved from the graph", length);
    if (is_encoder(m))
        return check_proof(m, "recognised as an encoder", length);
    if (found.verdict == GRAPH_UNDECIDED)
        return explain_undecided(m, &found, length);
    m->batching.can_batch = false;
    m->batching.batch_basis = MODEL_BASIS_PROVED;
    note(m, arena_format(&m->memory, "rows influence each other, so each request runs alone: %s",
                         graph_independence_text(text, &found)));
    if (found.op == GRAPH_OP_DYNAMIC_QUANTIZE_LINEAR)
        note(m, "; the same model before it was quantised could share batches, also in int8 "
                "(docs/precision.md)");
    return STATUS_OK;
}

/* An input that can tell padding from tokens: a mask, or any other one beside the tokens. */
static bool can_mask(const model *m)
{
    int count = 0;
    for (int i = 0; i < m->input_count; i++)
        count += m->inputs[i].sequence_axis >= 0;
    return count > 1 || is_encoder(m);
}

/* Sets can_pad, after can_batch. */
static status decide_pad(model *m, const manifest *file, int64_t length, int64_t longest)
{
    model_batching *b = &m->batching;
    graph_independence found;
    char text[160], why[512];
    experiment_result r;
    b->can_pad = false;
    b->pad_basis = MODEL_BASIS_NONE;
    if (file->can_pad >= 0) {
        b->can_pad = file->can_pad != 0;
        b->pad_basis = MODEL_BASIS_DECLARED;
        return STATUS_OK;
    }
    if (!b->can_batch || b->sequence_max == 0)
        return STATUS_OK;
    if (is_encoder(m) && m->device_count == 1) {
        b->can_pad = true;
        b->pad_basis = MODEL_BASIS_PROVED;
        note(m, "; rows of all lengths run together, without padding");
        return STATUS_OK;
    }
    b->pad_basis = MODEL_BASIS_PROBED;
    if (length == longest) {
        note(m, "; rows run at their own length");
        return STATUS_OK;
    }
    status failure = independence_examine_tokens(m, length, &found);
    if (failure)
        return failure;
    experiment check = {.rows = 3, .length = length, .batch_length = longest, .is_thorough = true};
    failure = experiment_run(m, &check, &r);
    if (cancel_is_end(failure))
        return failure;
    found_text(text, &r);
    b->can_pad = !failure && r.is_same;
    if (b->can_pad && found.verdict != GRAPH_INDEPENDENT && !can_mask(m)) {
        b->can_pad = false;
        b->pad_basis = MODEL_BASIS_UNDECIDED;
        note(m, arena_format(&m->memory,
                             "; without a mask it is not proved that padding changes nothing (%s), "
                             "so rows run at their own length; in experiments it changes nothing: "
                             "if you know that it does not, set \"can_pad\": true in model.json",
                             graph_independence_text(why, &found)));
        return STATUS_OK;
    }
    if (b->can_pad && found.verdict == GRAPH_INDEPENDENT)
        b->pad_basis = MODEL_BASIS_PROVED;
    note(m,
         arena_format(&m->memory, "; padding changes %s%s (%s)",
                      b->can_pad ? "nothing" : "results: rows run at their own length",
                      b->pad_basis == MODEL_BASIS_PROVED ? ": tokens are independent" : "", text));
    return STATUS_OK;
}

/* Of the rows in proofs and experiments: short ones, unless the model takes long ones only. */
static status choose_lengths(const model *m, int64_t *length, int64_t *longest)
{
    int64_t most = m->batching.sequence_max;
    *longest = most < 11 ? most : 11;
    *length = *longest > 4 ? *longest - 4 : *longest;
    if (most <= *longest)
        return STATUS_OK;
    status failure = try_length(m, *length);
    if (failure && !is_fatal(failure)) {
        *length = *longest = most;
        failure = STATUS_OK;
    }
    return failure;
}

static void log_note(const model *m)
{
    if (m->batching.sequence_max > 0)
        log_info("models", "%s: %s; longest row %lld tokens", m->name, m->batching_note,
                 (long long)m->batching.sequence_max);
    else
        log_info("models", "%s: %s", m->name, m->batching_note);
}

status probe_model(model *m, const manifest *file)
{
    model_batching *b = &m->batching;
    if (!describe_has_sequence(m))
        b->sequence_max = 0;
    status failure = b->sequence_max > 0 ? find_length(m) : try_length(m, 0);
    if (failure)
        return failure;
    const char *why = cannot_cut(m);
    m->batching_note = "";
    if (why != NULL) {
        b->can_batch = b->can_pad = false;
        if (!describe_has_batch(m))
            b->batch_max = 1;
        note(m, why);
    } else {
        int64_t length, longest;
        failure = choose_lengths(m, &length, &longest);
        if (!failure)
            failure = decide_batch(m, file, length);
        if (!failure)
            failure = decide_pad(m, file, length, longest);
        if (failure)
            return failure;
    }
    log_note(m);
    return STATUS_OK;
}

status probe_confirm(model *m, bool *is_changed)
{
    graph_independence found;
    char text[512];
    *is_changed = false;
    if (m->batching.batch_basis != MODEL_BASIS_PROVED || !m->batching.can_batch || is_encoder(m))
        return STATUS_OK;
    status failure = independence_confirm(m, &found);
    if (failure || found.verdict == GRAPH_INDEPENDENT)
        return failure;
    m->batching.can_batch = m->batching.can_pad = false;
    m->batching.batch_basis = MODEL_BASIS_UNDECIDED;
    m->batching_note = "";
    note(m, arena_format(&m->memory,
                         "each request runs alone: rows are independent in small batches only (%s)",
                         graph_independence_text(text, &found)));
    log_note(m);
    *is_changed = true;
    return STATUS_OK;
}

#include "models/batching/probe.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/xorshift.h"
#include "devices/slot.h"
#include "models/batching/describe.h"
#include "models/batching/row_copy.h"

#define TOLERANCE_OF_RANGE 1e-5

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

status probe_execute(device *d, device_program *program, const cancel_token *cancel,
                     const tensor *inputs, tensor *outputs)
{
    device_segment segment = {.rows = program->bucket.batch,
                              .length = program->bucket.sequence,
                              .inputs = inputs,
                              .outputs = outputs};
    device_batch batch = {.inputs = inputs,
                          .outputs = outputs,
                          .segments = &segment,
                          .segment_count = 1,
                          .cancel = cancel};
    int slot = device_slot_acquire(d, 0);
    status failure = d->interface->execute(d, program, slot, &batch);
    device_slot_release(d, slot);
    return failure;
}

static device *cpu_of(const model *m)
{
    assert(m->device_count > 0);
    return m->devices[m->device_count - 1];
}

/* Compiles at the shape, which checks what it costs, and runs once. */
static status run(const model *m, device_bucket shape, arena *a, const tensor *inputs,
                  tensor *outputs)
{
    device *cpu = cpu_of(m);
    device_program *program;
    status failure = cpu->interface->compile(cpu, &m->on_device, shape, &program);
    if (failure)
        return failure;
    failure = probe_make_outputs(m, shape, a, outputs);
    if (!failure)
        failure = probe_execute(cpu, program, m->budget.cancel, inputs, outputs);
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

/* The largest difference between row `row` of `batch` and the one row of `alone`, as a fraction of
 * the output's range. */
static double largest_difference(const model *m, const tensor *batch, int64_t row,
                                 const tensor *alone, int64_t length, arena *a)
{
    double worst = 0;
    for (int i = 0; i < m->output_count; i++) {
        tensor got = alone[i];
        got.data = arena_allocate_aligned(a, tensor_bytes(&got) + 1, 64);
        if (got.data == NULL)
            return INFINITY;
        if (got.dtype == DTYPE_BYTES)
            continue;
        row_copy(&got, 0, &batch[i], row, &m->outputs[i], length, NULL);
        double low = INFINITY, high = -INFINITY, apart = 0;
        for (int64_t k = 0; k < tensor_count(&got); k++) {
            double x = tensor_get_number(&got, k), y = tensor_get_number(&alone[i], k);
            if (isnan(x) && isnan(y))
                continue;
            low = fmin(low, y);
            high = fmax(high, y);
            double d = x == y ? 0 : fabs(x - y);
            apart = isnan(d) ? INFINITY : fmax(apart, d);
        }
        double range = fmax(high - low, fmax(fabs(high), fabs(low)));
        if (apart > 0)
            worst = fmax(worst, range > 0 ? apart / range : INFINITY);
    }
    return worst;
}

static void copy_row(const model *m, const tensor *to, int64_t to_row, const tensor *from,
                     int64_t from_row, int64_t length)
{
    for (int i = 0; i < m->input_count; i++) {
        tensor_string pad = {0};
        tensor element = {.dtype = to[i].dtype, .data = &pad};
        if (to[i].dtype != DTYPE_BYTES)
            tensor_set_number(&element, 0, m->inputs[i].is_mask ? 0 : m->inputs[i].pad_value);
        row_copy(&to[i], to_row, &from[i], from_row, &m->inputs[i], length, &pad);
    }
}

/* Runs a row of `length` alone, then as the middle one of three rows of `batch_length`.
 * `*difference`: how far its outputs are apart. */
static status compare(const model *m, int64_t length, int64_t batch_length, uint64_t seed,
                      double *difference)
{
    arena a = {0};
    tensor alone[MODEL_TENSORS_MAX], alone_out[MODEL_TENSORS_MAX];
    tensor batch[MODEL_TENSORS_MAX], batch_out[MODEL_TENSORS_MAX];
    int64_t rows = m->batching.can_batch ? 3 : 1, row = rows / 2;
    status failure = probe_make_inputs(m, (device_bucket){1, length}, seed, &a, alone);
    if (!failure)
        failure = run(m, (device_bucket){1, length}, &a, alone, alone_out);
    if (!failure)
        failure = probe_make_inputs(m, (device_bucket){rows, batch_length}, seed + 7, &a, batch);
    if (!failure) {
        copy_row(m, batch, row, alone, 0, length);
        failure = run(m, (device_bucket){rows, batch_length}, &a, batch, batch_out);
    }
    if (!failure)
        *difference = largest_difference(m, batch_out, row, alone_out, length, &a);
    arena_dispose(&a);
    return failure;
}

/* Dims that are neither constant, nor batch, nor sequence: such tensors cannot be batched. */
static bool has_other_dims(const model *m)
{
    for (int i = 0; i < m->input_count + m->output_count; i++) {
        const model_tensor *t =
            i < m->input_count ? &m->inputs[i] : &m->outputs[i - m->input_count];
        for (int k = 0; k < t->rank; k++)
            if (t->dims[k] < 0 && k != t->batch_axis && k != t->sequence_axis)
                return true;
    }
    return false;
}

static const char *without_batch_axis(const model *m)
{
    for (int i = 0; i < m->input_count + m->output_count; i++) {
        const model_tensor *t =
            i < m->input_count ? &m->inputs[i] : &m->outputs[i - m->input_count];
        if (t->batch_axis != 0)
            return t->name;
    }
    return NULL;
}

/* Sets can_batch and can_pad; the differences are for the note. Fails only if the load has ended:
 * where three rows cost too much, each runs alone. */
static status try_batches(model *m, const manifest *file, double *batch_difference,
                          double *pad_difference)
{
    model_batching *b = &m->batching;
    int64_t longest = b->sequence_max < 11 ? b->sequence_max : 11;
    int64_t length = longest > 4 ? longest - 4 : longest;
    *batch_difference = *pad_difference = 0;
    b->can_batch = true;
    status failure = STATUS_OK;
    for (uint64_t seed = 1; seed <= 2 && !failure && file->can_batch < 0; seed++) {
        double difference = INFINITY;
        failure = compare(m, length, length, seed, &difference);
        *batch_difference = fmax(*batch_difference, failure ? INFINITY : difference);
    }
    if (cancel_is_end(failure))
        return failure;
    /* A model that fails on several rows cannot be batched. */
    b->can_batch =
        file->can_batch >= 0 ? file->can_batch != 0 : *batch_difference <= TOLERANCE_OF_RANGE;
    failure = STATUS_OK;
    for (uint64_t seed = 1;
         seed <= 2 && !failure && file->can_pad < 0 && b->can_batch && length < longest; seed++) {
        double difference = INFINITY;
        failure = compare(m, length, longest, seed, &difference);
        *pad_difference = fmax(*pad_difference, failure ? INFINITY : difference);
    }
    if (cancel_is_end(failure))
        return failure;
    b->can_pad = file->can_pad >= 0 ? file->can_pad != 0
                                    : b->can_batch && b->sequence_max > 0 && longest > length &&
                                          *pad_difference <= TOLERANCE_OF_RANGE;
    return STATUS_OK;
}

status probe_model(model *m, const manifest *file)
{
    model_batching *b = &m->batching;
    if (!describe_has_sequence(m))
        b->sequence_max = 0;
    status failure = b->sequence_max > 0 ? find_length(m) : try_length(m, 0);
    if (failure)
        return failure;
    const char *unbatched = without_batch_axis(m);
    double batch_difference = 0, pad_difference = 0;
    if (unbatched != NULL || has_other_dims(m)) {
        b->can_batch = b->can_pad = false;
        if (!describe_has_batch(m))
            b->batch_max = 1;
        m->batching_note =
            arena_format(&m->memory, "each request runs alone: \"%s\" has no batch axis of its own",
                         unbatched ? unbatched : m->name);
    } else {
        failure = try_batches(m, file, &batch_difference, &pad_difference);
        if (failure)
            return failure;
        m->batching_note = arena_format(
            &m->memory, "%s (batched with other rows, outputs differ by %.1e of their range)%s",
            b->can_batch ? "rows are independent"
                         : "rows influence each other: each request runs alone",
            batch_difference,
            b->sequence_max == 0 || !b->can_batch ? ""
            : b->can_pad                          ? "; padding changes nothing"
                         : "; padding changes results: rows run at their own length");
    }
    if (m->batching_note == NULL)
        m->batching_note = "";
    if (b->sequence_max > 0)
        log_info("models", "%s: %s; longest row %lld tokens", m->name, m->batching_note,
                 (long long)b->sequence_max);
    else
        log_info("models", "%s: %s", m->name, m->batching_note);
    return STATUS_OK;
}

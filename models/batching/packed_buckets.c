#include "models/batching/packed_buckets.h"

#include <assert.h>
#include <stdlib.h>

#include "devices/cpu/evaluate.h"
#include "graph/encoder/packed.h"

/* Offsets from m->input_count. */
enum { POSITIONS, SEGMENTS, STARTS };

static status recognise(model *m, encoder *e)
{
    if (m->batching.sequence_max == 0)
        return status_fail(STATUS_UNSUPPORTED, "the model has no sequence axis");
    if (model_is_exact(m))
        return status_fail(STATUS_UNSUPPORTED, "the model runs at exact lengths");
    if (m->weights_holder == NULL || m->weights_holder->layout != DEVICE_RAGGED)
        return status_fail(STATUS_UNSUPPORTED, "the CPU, which takes over when a device fails, "
                                               "pads this model");
    if (m->input_count + ENCODER_PACKED_INPUTS > MODEL_TENSORS_MAX)
        return status_fail(STATUS_UNSUPPORTED, "the model has %d inputs", m->input_count);
    status s = encoder_recognise(m->graph, &m->budget, cpu_evaluate_node, e);
    if (s)
        return s;
    s = encoder_can_pack(e, m->graph);
    if (s)
        encoder_dispose(e);
    return s;
}

void packed_buckets_examine(model *m, model_packing wanted)
{
    m->packing_note = "";
    m->packing = wanted;
    encoder *e = calloc(1, sizeof *e);
    status s = e ? recognise(m, e) : status_fail(STATUS_OUT_OF_MEMORY, "no memory");
    if (s) {
        const char *why = arena_format(&m->memory, "%s", status_message());
        m->packing_note = why ? why : "";
        free(e);
    } else {
        m->encoder = e;
        m->on_device.encoder = e;
    }
    if (wanted == MODEL_PACKING_NEVER) {
        m->packing_note = "packing is switched off";
        return;
    }
    m->packed_encoder = m->encoder;
    m->on_packed = m->on_device;
    m->on_packed.packed_encoder = m->encoder;
}

static bool has_length(const model *m, int64_t length)
{
    int64_t longest = m->sequence_buckets[m->sequence_bucket_count - 1];
    if (longest < PACKED_BUCKETS_LENGTH_MIN)
        return length == longest;
    return length >= PACKED_BUCKETS_LENGTH_MIN && length <= PACKED_BUCKETS_LENGTH_MAX;
}

static status add(model *m, int64_t rows, int64_t length)
{
    model_bucket *b = &m->buckets[m->bucket_count];
    *b = (model_bucket){.shape = {rows, length},
                        .sequences = encoder_packing_of(rows, length).sequences};
    b->programs = arena_allocate_zeroed(&m->memory, (size_t)m->device_count, sizeof *b->programs);
    if (b->programs == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for buckets");
    m->bucket_count++;
    return STATUS_OK;
}

status packed_buckets_add(model *m, int64_t tokens_max)
{
    status failure = STATUS_OK;
    for (int s = 0; m->packed_encoder != NULL && s < m->sequence_bucket_count; s++)
        for (int r = 0; r < m->batch_bucket_count && !failure; r++) {
            int64_t rows = m->batch_buckets[r], length = m->sequence_buckets[s];
            bool is_within = tokens_max == 0 || rows * length <= tokens_max;
            if (is_within && has_length(m, length) && m->bucket_count < MODEL_BUCKETS_MAX)
                failure = add(m, rows, length);
        }
    return failure;
}

void packed_buckets_dispose(model *m)
{
    if (m->encoder == NULL)
        return;
    encoder_dispose(m->encoder);
    free(m->encoder);
    m->encoder = m->packed_encoder = NULL;
}

int packed_buckets_input_count(const model *m)
{
    return m->input_count + ENCODER_PACKED_INPUTS;
}

void packed_buckets_describe(const model *m, const model_bucket *b, bool is_output, int index,
                             tensor *t)
{
    int64_t dims[TENSOR_RANK_MAX] = {b->shape.batch, b->shape.sequence};
    dtype type = DTYPE_I32;
    int rank = 2;
    assert(b->sequences > 0);
    if (!is_output && index == m->input_count + STARTS) {
        dims[0] = b->sequences;
        rank = 1;
    } else if (is_output || index < m->input_count) {
        const model_tensor *declared = is_output ? &m->outputs[index] : &m->inputs[index];
        bool has_sequence = !is_output || declared->sequence_axis >= 0;
        type = declared->dtype;
        rank = declared->rank;
        bool is_known =
            model_tensor_dims(m, is_output, index, has_sequence ? b->shape.batch : b->sequences,
                              b->shape.sequence, dims);
        assert(is_known);
    }
    status s = tensor_set_shape(t, type, rank, dims);
    assert(s == STATUS_OK);
}

void packed_buckets_mark(const model *m, const tensor *inputs, int number, int64_t row,
                         int64_t offset, int64_t length)
{
    const tensor *own = inputs + m->input_count;
    int64_t first = row * own[POSITIONS].dims[1] + offset;
    assert(offset + length <= own[POSITIONS].dims[1] && row < own[POSITIONS].dims[0]);
    assert(number < own[STARTS].dims[0]);
    int32_t *positions = (int32_t *)own[POSITIONS].data + first;
    int32_t *segments = (int32_t *)own[SEGMENTS].data + first;
    for (int64_t i = 0; i < length; i++) {
        positions[i] = (int32_t)i;
        segments[i] = number + 1;
    }
    ((int32_t *)own[STARTS].data)[number] = (int32_t)first;
}

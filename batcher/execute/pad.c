#include "batcher/execute/pad.h"

#include <assert.h>

#include "base/clock.h"
#include "batcher/execute/pack_copy.h"
#include "models/batching/row_copy.h"

static void pad_input(const model *m, int input, const batch_member *members, int count, tensor *to)
{
    const model_tensor *declared = &m->inputs[input];
    tensor_string buffer = {0}; /* the largest element */
    if (to->dtype != DTYPE_BYTES) {
        tensor element = {.dtype = to->dtype, .data = &buffer};
        tensor_set_number(&element, 0, declared->is_mask ? 0 : declared->pad_value);
    }
    int64_t row = 0;
    for (int i = 0; i < count; i++) {
        const job *j = members[i].job;
        for (int64_t k = 0; k < members[i].rows; k++)
            row_copy(to, row++, &j->inputs[input], members[i].row + k, declared, j->length,
                     &buffer);
    }
    if (declared->batch_axis != 0)
        return;
    assert(row <= to->dims[0]);
    const batch_member *first = &members[0];
    while (row < to->dims[0])
        row_copy(to, row++, &first->job->inputs[input], first->row, declared, first->job->length,
                 &buffer);
}

void pad_rows(const model *m, const batch_member *members, int count, tensor *inputs)
{
    assert(count > 0);
    for (int i = 0; i < m->input_count; i++)
        pad_input(m, i, members, count, &inputs[i]);
}

/* One job that fills the bucket exactly is computed where it lies. */
static bool fits_in_place(const model *m, const batch_member *members, int count,
                          device_bucket shape)
{
    const job *j = members[0].job;
    if (count != 1 || members[0].rows != j->rows || j->rows != shape.batch ||
        j->length != shape.sequence)
        return false;
    for (int i = 0; i < m->input_count; i++)
        if ((uintptr_t)j->inputs[i].data % 64 != 0)
            return false;
    for (int i = 0; i < m->output_count; i++)
        if ((uintptr_t)j->outputs[i].data % 64 != 0)
            return false;
    return true;
}

/* Copies the members into the worker's own tensors. */
static status stage_members(worker *w, const device_program *program, const batch_member *members,
                            int count)
{
    batch *b = &w->batch;
    bool is_packed = program->layout == DEVICE_PACKED;
    model_bucket bucket = {.shape = program->bucket,
                           .sequences = is_packed ? b->packed->sequences : 0};
    status failure = staging_lay_out(&w->staging, b->model, &bucket);
    if (failure)
        return failure;
    if (is_packed) {
        assert(count == b->count); /* `places` is of all members */
        pack_copy_in(b->model, members, b->places, count, w->staging.inputs);
    } else {
        pad_rows(b->model, members, count, w->staging.inputs);
    }
    return STATUS_OK;
}

status pad_members(worker *w, const device_program *program, int first, int count, padded *out)
{
    batch *b = &w->batch;
    const batch_member *members = &b->members[first];
    *out = (padded){.work = {.segments = &b->segments[first], .segment_count = count}};
    if (program->layout == DEVICE_WHOLE) {
        job *whole = members[0].job;
        assert(count == 1 && members[0].rows == whole->rows);
        out->work.inputs = whole->inputs;
        out->work.outputs = whole->outputs;
        out->work.results = &whole->memory;
    } else if (program->layout == DEVICE_PADDED &&
               fits_in_place(b->model, members, count, program->bucket)) {
        out->work.inputs = members[0].job->inputs;
        out->work.outputs = members[0].job->outputs;
    } else if (program->layout != DEVICE_RAGGED) {
        status failure = stage_members(w, program, members, count);
        if (failure)
            return failure;
        out->work.inputs = w->staging.inputs;
        out->work.outputs = w->staging.outputs;
        out->is_staged = true;
    }
    stage_stamp(b->stage_ns, STAGE_PAD, clock_now_ns());
    return STATUS_OK;
}

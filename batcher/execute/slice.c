#include "batcher/execute/slice.h"

#include "base/clock.h"
#include "batcher/execute/pack_copy.h"
#include "models/batching/row_copy.h"

void slice_rows(const model *m, const batch_member *members, int count, const tensor *outputs)
{
    for (int output = 0; output < m->output_count; output++) {
        int64_t row = 0;
        for (int i = 0; i < count; i++) {
            const job *j = members[i].job;
            for (int64_t k = 0; k < members[i].rows; k++)
                row_copy(&j->outputs[output], members[i].row + k, &outputs[output], row++,
                         &m->outputs[output], j->length, NULL);
        }
    }
}

void slice_members(worker *w, const device_program *program, int first, int count,
                   const padded *from)
{
    batch *b = &w->batch;
    const batch_member *members = &b->members[first];
    if (from->is_staged && program->layout == DEVICE_PACKED)
        pack_copy_out(b->model, members, b->places, count, from->work.outputs);
    else if (from->is_staged)
        slice_rows(b->model, members, count, from->work.outputs);
    stage_stamp(b->stage_ns, STAGE_SLICE, clock_now_ns());
}

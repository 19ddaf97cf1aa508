#include "batcher/execute/form.h"

#include <string.h>

#include "base/clock.h"

/* Rows that would have been in this batch, if its bucket had more room. */
static int64_t rows_behind(const batch *b)
{
    if (b->model->deferred == NULL || b->bucket < 0 || b->packed != NULL)
        return 0;
    device_bucket shape = b->model->buckets[b->bucket].shape;
    int sequence = bucket_find_sequence(&b->queue->axes, shape.sequence);
    return b->rows < shape.batch || sequence < 0 ? 0 : b->queue->bucket_queue_rows[sequence];
}

void form_batch(worker *w, const dispatch_batch *taken, uint64_t now_ns)
{
    batch *b = &w->batch;
    b->model = taken->members[0].job->model;
    b->queue = taken->queue;
    b->bucket = taken->bucket;
    b->packed = taken->packed;
    b->is_exact = taken->bucket < 0;
    b->count = taken->count;
    b->rows = taken->rows;
    b->rows_behind = rows_behind(b);
    b->length_max = b->tokens = 0;
    b->cost_ns = 0;
    b->fell_back = false;
    b->device_ns = 0;
    memset(b->stage_ns, 0, sizeof b->stage_ns);
    queue_stamp(b->stage_ns, now_ns);
    for (int i = 0; i < b->count; i++) {
        const batch_member *member = &b->members[i];
        job *j = member->job;
        b->tokens += member_tokens(member);
        if (j->length > b->length_max)
            b->length_max = j->length;
        b->cost_ns += hold_release(&w->executor->admission->backlog, &j->hold, member->rows);
    }
}

/* Rows [row, row + rows) of `whole`; the tensor itself where it has no batch axis. */
static tensor view(const tensor *whole, const model_tensor *axes, int64_t row, int64_t rows)
{
    tensor part = *whole;
    if (axes->batch_axis != 0 || whole->dims[0] == 0)
        return part;
    size_t row_bytes = tensor_bytes(whole) / (size_t)whole->dims[0];
    part.dims[0] = rows;
    part.data = whole->data ? (char *)whole->data + (size_t)row * row_bytes : NULL;
    return part;
}

status form_segments(worker *w)
{
    batch *b = &w->batch;
    const model *m = b->model;
    arena_reset(&w->views, SIZE_MAX);
    for (int i = 0; i < b->count; i++) {
        const batch_member *member = &b->members[i];
        job *j = member->job;
        device_segment *segment = &b->segments[i];
        *segment = (device_segment){
            .rows = member->rows, .length = j->length, .inputs = j->inputs, .outputs = j->outputs};
        if (member->rows == j->rows)
            continue;
        tensor *views =
            arena_allocate(&w->views, (size_t)(m->input_count + m->output_count) * sizeof *views);
        if (views == NULL)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a batch");
        segment->inputs = views;
        segment->outputs = views + m->input_count;
        for (int k = 0; k < m->input_count; k++)
            views[k] = view(&j->inputs[k], &m->inputs[k], member->row, member->rows);
        for (int k = 0; k < m->output_count; k++)
            segment->outputs[k] = view(&j->outputs[k], &m->outputs[k], member->row, member->rows);
    }
    stage_stamp(b->stage_ns, STAGE_FORM, clock_now_ns());
    return STATUS_OK;
}

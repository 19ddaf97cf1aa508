#include <assert.h>

#include "base/clock.h"
#include "batcher/scheduler_internal.h"

static void take(batch *b, model_queue *q, int list, int64_t rows, int64_t length, int jobs_max,
                 job **dropped)
{
    bool is_whole = jobs_max == 1;
    b->rows +=
        model_queue_take(q, list, rows, length, is_whole, b->members, &b->count, jobs_max, dropped);
}

void form_batch(scheduler *s, lane *l, model_queue *q, int list, const policy_decision *decision,
                job **dropped)
{
    batch *b = &l->batch;
    *b = (batch){.model = NULL, .queue = q, .bucket = decision->bucket};
    b->is_exact = decision->bucket < 0;
    if (b->is_exact) {
        /* Of a dropped head the next one takes the place: decide by what is really first. */
        model_queue_drop_head(q, list, dropped);
        const job *head = q->lists[list].first;
        if (head == NULL)
            return;
        bool is_alone = !head->model->batching.can_batch;
        take(b, q, list, is_alone ? INT64_MAX : decision->rows, head->length,
             is_alone ? 1 : BATCH_MEMBERS_MAX, dropped);
    } else {
        bool is_ragged = q->tables[l->device_index].is_ragged;
        take(b, q, list, decision->rows, -1, BATCH_MEMBERS_MAX, dropped);
        int64_t wanted = decision->rows + decision->fill_rows;
        for (int i = is_ragged ? q->list_count - 1 : list - 1; i >= 0 && b->rows < wanted; i--)
            if (i != list)
                take(b, q, i, wanted - b->rows, -1, BATCH_MEMBERS_MAX, dropped);
    }
    for (int i = 0; i < b->count; i++) {
        const batch_member *member = &b->members[i];
        int64_t length = member->job->length;
        b->model = member->job->model;
        b->tokens += member->rows * (length > 0 ? length : 1);
        if (length > b->length_max)
            b->length_max = length;
        atomic_fetch_sub_explicit(&b->model->queued_rows, member->rows, memory_order_relaxed);
    }
    (void)s;
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

status form_segments(lane *l)
{
    batch *b = &l->batch;
    const model *m = b->model;
    arena_reset(&l->views, SIZE_MAX);
    for (int i = 0; i < b->count; i++) {
        const batch_member *member = &b->members[i];
        job *j = member->job;
        device_segment *segment = &b->segments[i];
        *segment = (device_segment){
            .rows = member->rows, .length = j->length, .inputs = j->inputs, .outputs = j->outputs};
        if (member->rows == j->rows)
            continue;
        tensor *views =
            arena_allocate(&l->views, (size_t)(m->input_count + m->output_count) * sizeof *views);
        if (views == NULL)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a batch");
        segment->inputs = views;
        segment->outputs = views + m->input_count;
        for (int k = 0; k < m->input_count; k++)
            views[k] = view(&j->inputs[k], &m->inputs[k], member->row, member->rows);
        for (int k = 0; k < m->output_count; k++)
            segment->outputs[k] = view(&j->outputs[k], &m->outputs[k], member->row, member->rows);
    }
    return STATUS_OK;
}

#include "batcher/execute/complete.h"

void complete_batch(worker *w)
{
    batch *b = &w->batch;
    for (int i = STAGE_FORM; i <= STAGE_SLICE; i++)
        if (b->stage_ns[i] < b->stage_ns[i - 1])
            b->stage_ns[i] = b->stage_ns[i - 1];
    model_counters *of_model = b->model->counters;
    counter_add(&of_model->batches, 1);
    counter_add(&of_model->batch_rows, (uint64_t)b->rows);
    counter_add(&of_model->real_tokens, (uint64_t)b->tokens);
    usage_add_tokens(b->model->usage, b->stage_ns[STAGE_SLICE], (uint64_t)b->tokens);
}

/* The longest of the model's buckets on that device. */
static uint64_t longest_batch_ns(const model_queue *q, int device_index)
{
    uint64_t longest_ns = 0;
    for (int i = 0; i < q->model->bucket_count; i++) {
        uint64_t ns = latency_bucket_ns(q->latency, device_index, i);
        longest_ns = ns > longest_ns ? ns : longest_ns;
    }
    return longest_ns;
}

/* Admission and the bound on batches learn from a job that has its result. */
static void learn(worker *w, const job *j)
{
    batch *b = &w->batch;
    uint64_t end_ns = j->stage_ns[STAGE_SLICE];
    admission_learn_end(w->executor->admission, j, end_ns <= j->deadline_ns, end_ns);
    if (b->bucket >= 0 && b->model->slo_ns > 0)
        slo_observe(&b->queue->slo, b->model->slo_ns, end_ns - j->stage_ns[STAGE_ADMIT],
                    longest_batch_ns(b->queue, b->device_index));
}

void complete_member(worker *w, const batch_member *member, status result)
{
    batch *b = &w->batch;
    job *j = member->job;
    if (!job_finish_rows(j, member->rows, result))
        return;
    for (int i = STAGE_QUEUE; i <= STAGE_SLICE; i++)
        j->stage_ns[i] = b->stage_ns[i];
    if (j->result == STATUS_OK)
        learn(w, j);
    j->bucket = b->shape;
    j->is_packed = b->is_packed;
    j->device_index = b->device_index;
    j->batch_rows = b->rows;
    j->fell_back = b->fell_back;
    j->on_done(j);
}

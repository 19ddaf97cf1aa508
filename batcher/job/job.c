#include "batcher/job/job.h"

#include <assert.h>
#include <string.h>

void job_init(job *j)
{
    memset(j, 0, sizeof *j);
    j->deadline_ns = UINT64_MAX;
}

void job_reset(job *j, size_t keep_bytes)
{
    /* A job is 12 KiB, most of it tensors that were never touched: clear what the model used. */
    int inputs = j->model ? j->model->input_count : MODEL_TENSORS_MAX;
    int outputs = j->model ? j->model->output_count : MODEL_TENSORS_MAX;
    if (j->model)
        model_release(j->model);
    memset(j->inputs, 0, (size_t)inputs * sizeof *j->inputs);
    memset(j->outputs, 0, (size_t)outputs * sizeof *j->outputs);
    memset(j->output_wanted, 0, sizeof j->output_wanted);
    memset(j->stage_ns, 0, sizeof j->stage_ns);
    arena_reset(&j->memory, keep_bytes);
    j->next = NULL;
    j->on_done = NULL;
    j->home = j->owner = NULL;
    j->tag = 0;
    j->model = NULL;
    j->rows = j->length = 0;
    j->deadline_ns = UINT64_MAX;
    j->priority = 0;
    j->tenant = 0;
    assert(j->hold.rows == 0);
    j->backlog_ns = 0;
    j->result = STATUS_OK;
    j->error[0] = 0;
    j->bucket = (device_bucket){0, 0};
    j->is_packed = false;
    j->device_index = 0;
    j->batch_rows = 0;
    j->fell_back = false;
    j->row_next = 0;
    atomic_store_explicit(&j->is_cancelled, false, memory_order_relaxed);
    atomic_store_explicit(&j->rows_left, 0, memory_order_relaxed);
    atomic_store_explicit(&j->has_failed, false, memory_order_relaxed);
}

void job_dispose(job *j)
{
    if (j->model)
        model_release(j->model);
    j->model = NULL;
    arena_dispose(&j->memory);
}

status job_allocate_outputs(job *j)
{
    const model *m = j->model;
    assert(m != NULL);
    /* The device sets their shapes and data. */
    if (model_is_whole(m)) {
        for (int i = 0; i < m->output_count; i++)
            j->outputs[i] = (tensor){.dtype = m->outputs[i].dtype, .rank = m->outputs[i].rank};
        return STATUS_OK;
    }
    for (int i = 0; i < m->output_count; i++) {
        int64_t dims[TENSOR_RANK_MAX];
        if (!model_tensor_dims(m, true, i, j->rows, j->length, dims))
            return status_fail(STATUS_UNSUPPORTED,
                               "output \"%s\": its shape is not known beforehand",
                               m->outputs[i].name);
        tensor *t = &j->outputs[i];
        status failure = tensor_set_shape(t, m->outputs[i].dtype, m->outputs[i].rank, dims);
        if (failure)
            return failure;
        size_t bytes = tensor_bytes(t);
        t->data = arena_allocate_aligned(&j->memory, bytes ? bytes : 1, 64);
        if (t->data == NULL)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for output \"%s\"",
                               m->outputs[i].name);
    }
    return STATUS_OK;
}

bool job_finish_rows(job *j, int64_t rows, status result)
{
    assert(rows > 0 && rows <= j->rows);
    /* Two workers may finish parts of one job: the first failure is the job's, and it is written
     * before the count goes down, so whoever takes the count to zero sees it. */
    if (result && !atomic_exchange(&j->has_failed, true)) {
        j->result = result;
        strncpy(j->error, status_message(), sizeof j->error - 1);
        j->error[sizeof j->error - 1] = 0;
    }
    int64_t left = atomic_fetch_sub(&j->rows_left, rows) - rows;
    assert(left >= 0);
    assert(left > 0 || j->hold.rows == 0);
    return left == 0;
}

/* Jobs that leave the queue without running. */
#include <assert.h>

#include "batcher/scheduler_state.h"

/* Says why: sets the thread's status message and returns the job's result. */
static status explain(const job *j, status result, uint64_t now_ns)
{
    const model_batching *limits = &j->model->batching;
    if (result == STATUS_CANCELLED || atomic_load(&j->is_cancelled))
        return status_fail(STATUS_CANCELLED, "the request was cancelled while it waited");
    if (result == STATUS_DEADLINE_EXCEEDED && now_ns < j->deadline_ns)
        return status_fail(result,
                           "the deadline cannot be met: %.3f ms are left and a batch takes longer",
                           (double)(j->deadline_ns - now_ns) / 1e6);
    if (result == STATUS_DEADLINE_EXCEEDED)
        return status_fail(result, "the deadline passed while the request waited");
    if (result == STATUS_UNAVAILABLE)
        return status_fail(result, "no device could run model \"%s\"", j->model->name);
    return status_fail(result,
                       "%lld rows of %lld tokens fit no batch of model \"%s\": its limits are "
                       "%lld and %lld",
                       (long long)j->rows, (long long)j->length, j->model->name,
                       (long long)limits->batch_max, (long long)limits->sequence_max);
}

void drop_jobs(scheduler *s, job *chain, status result, uint64_t now_ns)
{
    for (job *j = chain, *next; j != NULL; j = next) {
        next = j->next;
        j->next = NULL;
        if (result == STATUS_DEADLINE_EXCEEDED && !atomic_load(&j->is_cancelled))
            admission_learn_end(&s->admission, j, false, now_ns);
        int64_t rows = j->rows - j->row_next;
        assert(rows == j->hold.rows);
        hold_release(&s->admission.backlog, &j->hold, rows);
        if (job_finish_rows(j, rows, explain(j, result, now_ns))) {
            queue_stamp(j->stage_ns, now_ns);
            j->on_done(j);
        }
    }
}

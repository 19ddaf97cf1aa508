/* Ceilings at the door: what is let in is answered, what is not costs nothing. */
#include "server/edge.h"

void admit_undo(const infer_request *r, int from)
{
    for (int i = from - 1; i >= 0; i--)
        atomic_fetch_sub_explicit(&r->jobs[i]->model->queued_rows, r->jobs[i]->rows,
                                  memory_order_relaxed);
}

status admit(exchange *e, const infer_request *r)
{
    connection *c = e->connection;
    const server_limits *limits = &c->loop->server->options->limits;
    const model *m = r->model;
    if (c->jobs + r->job_count > limits->connection_jobs_max) {
        /* Answers nobody waits for are how a peer makes work for nothing (CVE-2023-44487). */
        if (c->jobs > 2 * c->exchanges)
            connection_condemn(c);
        return status_fail(STATUS_RESOURCE_EXHAUSTED,
                           "this connection has %d requests running: the limit is %d", c->jobs,
                           limits->connection_jobs_max);
    }
    for (int i = 0; i < r->job_count; i++) {
        job *j = r->jobs[i];
        if (j->rows > m->batching.queue_rows_max) {
            admit_undo(r, i);
            return status_fail(STATUS_TOO_LARGE, "%lld rows in one request: the limit is %lld",
                               (long long)j->rows, (long long)m->batching.queue_rows_max);
        }
        int64_t before =
            atomic_fetch_add_explicit(&j->model->queued_rows, j->rows, memory_order_relaxed);
        if (before + j->rows > m->batching.queue_rows_max) {
            admit_undo(r, i + 1);
            return status_fail(STATUS_RESOURCE_EXHAUSTED,
                               "the queue of model \"%s\" is full (%lld rows)", m->name,
                               (long long)before);
        }
    }
    return STATUS_OK;
}

#include "batcher/queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "batcher/staging.h"

model_queue *model_queue_create(const model *m, int device_count)
{
    model_queue *q = calloc(1, sizeof *q);
    if (q == NULL)
        return NULL;
    q->model = m;
    q->serial = m->serial;
    q->device_count = device_count;
    q->tables = calloc((size_t)device_count, sizeof *q->tables);
    q->latency_ns = calloc((size_t)device_count * MODEL_BUCKETS_MAX, sizeof *q->latency_ns);
    if (q->tables == NULL || q->latency_ns == NULL) {
        model_queue_destroy(q);
        return NULL;
    }
    for (int i = 0; i < device_count; i++)
        bucket_table_init(&q->tables[i], m, i);
    q->axes = q->tables[0];
    q->list_count =
        model_is_exact(m) || m->sequence_bucket_count < 1 ? 1 : m->sequence_bucket_count;
    for (int i = 0; i < MODEL_AXIS_MAX; i++)
        q->lists[i].deadline_ns = UINT64_MAX;
    for (int i = 0; i < m->bucket_count; i++) {
        size_t bytes = staging_bytes(m, m->buckets[i].shape);
        if (bytes > q->staging_bytes)
            q->staging_bytes = bytes;
    }
    return q;
}

void model_queue_destroy(model_queue *q)
{
    if (q == NULL)
        return;
    assert(q->rows == 0);
    free(q->tables);
    free(q->latency_ns);
    free(q);
}

static void forget(job_list *l)
{
    if (l->first == NULL) {
        assert(l->rows == 0 && l->jobs == 0);
        l->last = NULL;
        l->deadline_ns = UINT64_MAX;
        l->priority = INT32_MAX;
    }
}

void model_queue_push(model_queue *q, job *j)
{
    int list = q->list_count == 1 ? 0 : bucket_find_sequence(&q->axes, j->length);
    assert(j->rows > 0 && list >= 0 && list < q->list_count);
    job_list *l = &q->lists[list];
    j->next = NULL;
    j->row_next = 0;
    if (l->first == NULL) {
        l->first = j;
        l->priority = j->priority;
    } else {
        l->last->next = j;
    }
    l->last = j;
    l->jobs++;
    l->rows += j->rows;
    q->rows += j->rows;
    if (j->deadline_ns < l->deadline_ns)
        l->deadline_ns = j->deadline_ns;
    if (j->priority < l->priority)
        l->priority = j->priority;
}

static void unlink_after(model_queue *q, job_list *l, job *previous, job *j)
{
    if (previous)
        previous->next = j->next;
    else
        l->first = j->next;
    if (l->last == j)
        l->last = previous;
    l->jobs--;
    l->rows -= j->rows - j->row_next;
    q->rows -= j->rows - j->row_next;
    j->next = NULL;
    forget(l);
}

static void drop(job **dropped, job *j)
{
    j->next = *dropped;
    *dropped = j;
}

/* A job that failed in part is not worth more device time; it comes back as failed. */
static bool is_dead(const job *j)
{
    return atomic_load_explicit(&j->is_cancelled, memory_order_relaxed) ||
           atomic_load_explicit(&j->has_failed, memory_order_relaxed);
}

void model_queue_drop_head(model_queue *q, int list, job **dropped)
{
    job_list *l = &q->lists[list];
    while (l->first != NULL && is_dead(l->first)) {
        job *j = l->first;
        unlink_after(q, l, NULL, j);
        drop(dropped, j);
    }
}

int64_t model_queue_take(model_queue *q, int list, int64_t rows, int64_t length, bool whole_jobs,
                         batch_member *members, int *count, int capacity, job **dropped)
{
    job_list *l = &q->lists[list];
    int64_t taken = 0;
    while (taken < rows && *count < capacity) {
        model_queue_drop_head(q, list, dropped);
        job *j = l->first;
        if (j == NULL)
            break;
        if (length >= 0 && j->length != length)
            break;
        int64_t part = j->rows - j->row_next;
        if (part > rows - taken) {
            if (whole_jobs)
                break;
            part = rows - taken;
        }
        members[(*count)++] = (batch_member){.job = j, .row = j->row_next, .rows = part};
        taken += part;
        if (j->row_next + part == j->rows)
            unlink_after(q, l, NULL, j);
        else {
            l->rows -= part;
            q->rows -= part;
        }
        j->row_next += part;
    }
    return taken;
}

void model_queue_sweep(model_queue *q, uint64_t now_ns, bool cancelled_too, job **dropped)
{
    for (int i = 0; i < q->list_count; i++) {
        job_list *l = &q->lists[i];
        if (l->first == NULL || (!cancelled_too && now_ns < l->deadline_ns))
            continue;
        uint64_t deadline_ns = UINT64_MAX;
        int priority = INT32_MAX;
        job *previous = NULL;
        for (job *j = l->first, *next; j != NULL; j = next) {
            next = j->next;
            if (now_ns >= j->deadline_ns ||
                atomic_load_explicit(&j->is_cancelled, memory_order_relaxed)) {
                unlink_after(q, l, previous, j);
                drop(dropped, j);
                continue;
            }
            if (j->deadline_ns < deadline_ns)
                deadline_ns = j->deadline_ns;
            if (j->priority < priority)
                priority = j->priority;
            previous = j;
        }
        l->deadline_ns = deadline_ns;
        l->priority = priority;
    }
}

void model_queue_empty(model_queue *q, job **dropped)
{
    for (int i = 0; i < q->list_count; i++) {
        while (q->lists[i].first != NULL) {
            job *j = q->lists[i].first;
            unlink_after(q, &q->lists[i], NULL, j);
            drop(dropped, j);
        }
    }
}

uint64_t model_queue_deadline(const model_queue *q)
{
    uint64_t deadline_ns = UINT64_MAX;
    for (int i = 0; i < q->list_count; i++)
        if (q->lists[i].first != NULL && q->lists[i].deadline_ns < deadline_ns)
            deadline_ns = q->lists[i].deadline_ns;
    return deadline_ns;
}

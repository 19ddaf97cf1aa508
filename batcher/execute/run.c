#include "batcher/execute/run.h"

#include <assert.h>

#include "batcher/execute/complete.h"
#include "batcher/execute/execute.h"
#include "batcher/execute/form.h"
#include "batcher/execute/retry.h"
#include "models/start/deferred_buckets.h"

/* The CPU took the batch. Had another device it, healthy? */
static void count_fallback(worker *w)
{
    const executor *e = w->executor;
    const batch *b = &w->batch;
    if (w->device_index != executor_cpu(e) || e->device_count == 1)
        return;
    bool has_healthy = false;
    for (int i = 0; i < executor_cpu(e) && !b->is_exact; i++)
        has_healthy |= b->queue->tables[i].has_any && health_is_good(&e->health, i) &&
                       !health_is_draining(&e->health, i);
    retry_count_fallback(w, has_healthy ? MODEL_FALLBACK_SOONER : MODEL_FALLBACK_NO_DEVICE);
}

/* One member again, alone: in the same program, or, since packed rows would cost each as much as
 * all, in a padded one; by the CPU where none holds its rows. */
static status run_member(worker *w, int i)
{
    batch *b = &w->batch;
    const batch_member *member = &b->members[i];
    if (b->packed != NULL) {
        const bucket_table *t = &b->queue->tables[w->device_index];
        b->bucket = bucket_choose(t, bucket_find_sequence(t, member->job->length), member->rows);
        if (b->bucket < 0 || b->model->buckets[b->bucket].shape.batch < member->rows) {
            b->bucket = b->packed->index;
            return execute_members(w, executor_cpu(w->executor), i, 1);
        }
    }
    return retry_members(w, i, 1);
}

static void isolate(worker *w)
{
    batch *b = &w->batch;
    counter_add(&b->model->counters->isolations, 1);
    for (int i = 0; i < b->count; i++)
        complete_member(w, &b->members[i], run_member(w, i));
}

static bool is_members_fault(status failure)
{
    return failure && failure != STATUS_UNAVAILABLE && failure != STATUS_OUT_OF_MEMORY &&
           failure != STATUS_DEADLINE_EXCEEDED;
}

/* A full batch that left more rows behind than the device's other slots take at once: a larger
 * bucket would be of use, if there is one that has not been made. */
static void want_larger_bucket(const worker *w)
{
    const batch *b = &w->batch;
    if (b->rows_behind < device_depth(w->executor->devices[w->device_index]))
        return;
    device_bucket shape = b->model->buckets[b->bucket].shape;
    int larger =
        deferred_buckets_find(b->model, shape.sequence, shape.batch, b->rows + b->rows_behind);
    if (larger >= 0)
        deferred_buckets_want(b->model, larger);
}

void run_batch(worker *w)
{
    batch *b = &w->batch;
    assert(b->count > 0);
    const model *m = b->model;
    model_retain(m); /* the last job to go may take the model with it */
    count_fallback(w);
    if (b->rows_behind > 0)
        want_larger_bucket(w);
    status failure = form_segments(w);
    if (!failure)
        failure = retry_members(w, 0, b->count);
    complete_batch(w);
    if (is_members_fault(failure) && b->count > 1)
        isolate(w);
    else
        for (int i = 0; i < b->count; i++)
            complete_member(w, &b->members[i], failure);
    model_release(m);
}

#include "models/batching/costly_buckets.h"

#include <stdlib.h>

#include "devices/cpu/evaluate.h"
#include "graph/specialise/specialise.h"

static status measure(const model *m, device_bucket shape, graph_spent *cost)
{
    tensor *inputs = calloc((size_t)m->graph->input_count + 1, sizeof *inputs);
    graph *specialised = NULL;
    if (inputs == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for buckets");
    status failure = graph_bind(m->graph, shape.batch, shape.sequence, inputs);
    if (!failure)
        failure = graph_specialise(m->graph, &(graph_binding){inputs, &m->budget},
                                   cpu_evaluate_node, &specialised);
    free(inputs);
    if (!failure)
        failure = graph_cost_measure(specialised, &m->budget, cost);
    graph_destroy(specialised);
    return failure == STATUS_TOO_LARGE
               ? status_prefix(failure, "batches of %lld rows", (long long)shape.batch)
               : failure;
}

/* Of the buckets of one length, finds the largest batch that is within the budget; the smallest
 * one is taken as it is. Costs grow with the batch. */
static status find_batch_max(const model *m, int64_t sequence, int64_t *batch_max, int64_t *dropped)
{
    *batch_max = INT64_MAX;
    for (int i = m->bucket_count - 1; i > 0; i--) {
        device_bucket shape = m->buckets[i].shape;
        if (shape.sequence != sequence || m->buckets[i - 1].shape.sequence != sequence)
            continue;
        graph_spent cost;
        status failure = measure(m, shape, &cost);
        if (failure != STATUS_TOO_LARGE)
            return failure;
        *batch_max = m->buckets[i - 1].shape.batch;
        *dropped = *dropped == 0 || shape.batch < *dropped ? shape.batch : *dropped;
    }
    return STATUS_OK;
}

static void keep_batches(model *m, int64_t sequence, int64_t batch_max)
{
    int kept = 0;
    for (int i = 0; i < m->bucket_count; i++) {
        device_bucket shape = m->buckets[i].shape;
        if (shape.sequence != sequence || shape.batch <= batch_max)
            m->buckets[kept++] = m->buckets[i];
    }
    m->bucket_count = kept;
}

/* The batch axis ends with the largest batch that some bucket has. */
static void shorten_axis(model *m)
{
    int64_t largest = 0;
    for (int i = 0; i < m->bucket_count; i++)
        if (m->buckets[i].shape.batch > largest)
            largest = m->buckets[i].shape.batch;
    while (m->batch_bucket_count > 1 && m->batch_buckets[m->batch_bucket_count - 1] > largest)
        m->batch_bucket_count--;
    m->batching.batch_max = m->batch_buckets[m->batch_bucket_count - 1];
}

status costly_buckets_drop(model *m, const manifest *file, int64_t *dropped)
{
    bool is_asked_for = file->batch_bucket_count > 0 || file->batch_max > 0;
    *dropped = 0;
    if (m->bucket_count == 0)
        return STATUS_OK;
    for (int s = 0; s < m->sequence_bucket_count; s++) {
        int64_t batch_max, sequence = m->sequence_buckets[s];
        status failure = find_batch_max(m, sequence, &batch_max, dropped);
        if (failure)
            return failure;
        if (*dropped > 0 && is_asked_for)
            return STATUS_TOO_LARGE; /* the message is that of the check */
        keep_batches(m, sequence, batch_max);
    }
    if (*dropped > 0)
        shorten_axis(m);
    return STATUS_OK;
}

status costly_buckets_cap(model *m)
{
    for (int s = 0; m->bucket_count > 0 && s < m->sequence_bucket_count; s++) {
        graph_spent cost;
        int64_t sequence = m->sequence_buckets[s], least = m->batch_buckets[0];
        status failure = measure(m, (device_bucket){least, sequence}, &cost);
        if (failure)
            return failure;
        int64_t rows_max = least * (COSTLY_BUCKETS_OPERATIONS / (cost.operations + 1));
        int64_t by_bytes = least * (COSTLY_BUCKETS_BYTES / (cost.bytes + 1));
        rows_max = by_bytes < rows_max ? by_bytes : rows_max;
        keep_batches(m, sequence, rows_max > least ? rows_max : least);
    }
    if (m->bucket_count > 0)
        shorten_axis(m);
    return STATUS_OK;
}

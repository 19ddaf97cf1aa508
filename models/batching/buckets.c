#include "models/batching/buckets.h"

#include <string.h>

static int powers_of_two(int64_t from, int64_t to, int64_t *sizes)
{
    int count = 0;
    for (int64_t size = from; size < to && count < MODEL_AXIS_MAX - 1; size *= 2)
        sizes[count++] = size;
    sizes[count++] = to;
    return count;
}

static status copy(const model *m, const int64_t *from, int count, int64_t most, const char *axis,
                   int64_t *to)
{
    if (from[count - 1] > most)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "model.json: buckets.%s: %lld, but model \"%s\" takes at most %lld",
                           axis, (long long)from[count - 1], m->name, (long long)most);
    memcpy(to, from, (size_t)count * sizeof *to);
    return STATUS_OK;
}

static status add(model *m, int64_t batch, int64_t sequence)
{
    if (m->bucket_count == MODEL_BUCKETS_MAX)
        return status_fail(STATUS_INVALID_ARGUMENT, "model \"%s\" has over %d buckets", m->name,
                           MODEL_BUCKETS_MAX);
    model_bucket *b = &m->buckets[m->bucket_count];
    b->shape = (device_bucket){batch, sequence};
    b->programs = arena_allocate_zeroed(&m->memory, (size_t)m->device_count, sizeof *b->programs);
    if (b->programs == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for buckets");
    m->bucket_count++;
    return STATUS_OK;
}

status buckets_make(model *m, const manifest *file)
{
    model_batching *b = &m->batching;
    status failure = STATUS_OK;
    m->bucket_count = 0;
    if (file->batch_bucket_count > 0) {
        failure = copy(m, file->batch_buckets, file->batch_bucket_count, b->batch_max, "batch",
                       m->batch_buckets);
        m->batch_bucket_count = file->batch_bucket_count;
        b->batch_max = m->batch_buckets[m->batch_bucket_count - 1];
    } else {
        m->batch_bucket_count = powers_of_two(1, b->batch_max, m->batch_buckets);
    }
    if (failure)
        return failure;
    if (b->sequence_max == 0) {
        m->sequence_buckets[0] = 0;
        m->sequence_bucket_count = 1;
    } else if (file->sequence_bucket_count > 0) {
        failure = copy(m, file->sequence_buckets, file->sequence_bucket_count, b->sequence_max,
                       "sequence", m->sequence_buckets);
        m->sequence_bucket_count = file->sequence_bucket_count;
        b->sequence_max = m->sequence_buckets[m->sequence_bucket_count - 1];
    } else {
        m->sequence_bucket_count = powers_of_two(b->sequence_max < 16 ? b->sequence_max : 16,
                                                 b->sequence_max, m->sequence_buckets);
    }
    if (failure || model_is_exact(m))
        return failure;
    for (int s = 0; s < m->sequence_bucket_count && !failure; s++) {
        for (int r = 0; r < m->batch_bucket_count && !failure; r++) {
            int64_t tokens = m->batch_buckets[r] * m->sequence_buckets[s];
            bool is_auto = file->batch_bucket_count == 0;
            if (!is_auto || r == 0 || tokens <= BUCKETS_TOKENS_MAX)
                failure = add(m, m->batch_buckets[r], m->sequence_buckets[s]);
        }
    }
    return failure;
}

#include "batcher/policy/bucket.h"

#include <assert.h>
#include <string.h>

#include "models/start/deferred_buckets.h"

static int find_size(const int64_t *sizes, int count, int64_t size)
{
    for (int i = 0; i < count; i++)
        if (sizes[i] == size)
            return i;
    return -1;
}

/* False: the axes do not have that size. */
static bool put(bucket_table *t, device_bucket shape, int bucket)
{
    int s = find_size(t->sequences, t->sequence_count, shape.sequence);
    int r = find_size(t->batches, t->batch_count, shape.batch);
    if (s < 0 || r < 0)
        return false;
    atomic_store_explicit(&t->index[s * MODEL_AXIS_MAX + r], (int16_t)bucket, memory_order_release);
    return true;
}

void bucket_table_init(bucket_table *t, const model *m, int device_index)
{
    t->sequence_count = m->sequence_bucket_count;
    t->batch_count = m->batch_bucket_count;
    memcpy(t->sequences, m->sequence_buckets, sizeof t->sequences);
    memcpy(t->batches, m->batch_buckets, sizeof t->batches);
    t->has_any = t->is_ragged = false;
    for (int i = 0; i < MODEL_AXIS_MAX * MODEL_AXIS_MAX; i++)
        atomic_store_explicit(&t->index[i], (int16_t)-1, memory_order_relaxed);
    t->packed_count = 0;
    bucket_table_add_made(t, m, device_index);
}

static bool has_packed(const bucket_table *t, int bucket)
{
    for (int i = 0; i < t->packed_count; i++)
        if (t->packed[i].index == bucket)
            return true;
    return false;
}

/* Batches refer to entries, which therefore stay where they are. */
static void add_packed(bucket_table *t, const model_bucket *b, int bucket)
{
    if (t->packed_count < BUCKET_PACKED_MAX && !has_packed(t, bucket))
        t->packed[t->packed_count++] =
            (bucket_packed){bucket, b->shape.batch, b->shape.sequence, b->sequences};
}

void bucket_table_add_made(bucket_table *t, const model *m, int device_index)
{
    for (int i = 0; i < m->bucket_count; i++) {
        const model_bucket *b = &m->buckets[i];
        const device_program *program = deferred_buckets_program(m, i, device_index);
        if (program == NULL)
            continue;
        if (b->sequences > 0) {
            add_packed(t, b, i);
        } else if (put(t, b->shape, i)) {
            t->is_ragged |= program->layout == DEVICE_RAGGED;
            t->has_any = true;
        }
    }
}

int bucket_find_sequence(const bucket_table *t, int64_t length)
{
    for (int i = 0; i < t->sequence_count; i++)
        if (length <= t->sequences[i])
            return i;
    return -1;
}

int bucket_choose_cell(const bucket_table *t, int sequence, int64_t rows)
{
    int largest = -1;
    int64_t largest_rows = 0;
    for (int s = sequence; s >= 0 && s < t->sequence_count; s++) {
        for (int b = 0; b < t->batch_count; b++) {
            int cell = s * MODEL_AXIS_MAX + b;
            if (t->index[cell] < 0)
                continue;
            if (t->batches[b] >= rows)
                return cell;
            if (t->batches[b] > largest_rows) {
                largest = cell;
                largest_rows = t->batches[b];
            }
        }
        /* A longer sequence only when the right one has nothing ready at all: splitting the rows
         * costs less than padding every one of them. */
        if (largest >= 0)
            return largest;
    }
    return -1;
}

int bucket_choose(const bucket_table *t, int sequence, int64_t rows)
{
    int cell = bucket_choose_cell(t, sequence, rows);
    return cell < 0 ? -1 : t->index[cell];
}

int64_t bucket_rows_max(const bucket_table *t, int sequence)
{
    int cell = bucket_choose_cell(t, sequence, INT64_MAX);
    return cell < 0 ? 0 : t->batches[cell % MODEL_AXIS_MAX];
}

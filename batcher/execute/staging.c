#include "batcher/execute/staging.h"

#include <stdlib.h>

#include "models/batching/packed_buckets.h"

#define ALIGNMENT ((size_t)64)

static bool set_shape(const model *m, const model_bucket *b, bool is_output, int index, tensor *t)
{
    if (b->sequences > 0) {
        packed_buckets_describe(m, b, is_output, index, t);
        return true;
    }
    const model_tensor *declared = is_output ? &m->outputs[index] : &m->inputs[index];
    int64_t dims[TENSOR_RANK_MAX];
    return model_tensor_dims(m, is_output, index, b->shape.batch, b->shape.sequence, dims) &&
           tensor_set_shape(t, declared->dtype, declared->rank, dims) == STATUS_OK;
}

/* One walk for measuring and for laying out; `memory` NULL measures. */
static size_t lay_out(const model *m, const model_bucket *b, char *memory, tensor *inputs,
                      tensor *outputs)
{
    size_t offset = 0;
    int input_count = b->sequences > 0 ? packed_buckets_input_count(m) : m->input_count;
    for (int i = 0; i < input_count + m->output_count; i++) {
        bool is_output = i >= input_count;
        int index = is_output ? i - input_count : i;
        tensor t = {0};
        if (!set_shape(m, b, is_output, index, &t))
            return SIZE_MAX;
        t.data = memory ? memory + offset : NULL;
        size_t bytes = tensor_bytes(&t);
        if (bytes > SIZE_MAX / 4 - offset)
            return SIZE_MAX;
        offset += (bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
        if (memory)
            *(is_output ? &outputs[index] : &inputs[index]) = t;
    }
    return offset ? offset : ALIGNMENT;
}

size_t staging_bytes(const model *m, const model_bucket *bucket)
{
    return lay_out(m, bucket, NULL, NULL, NULL);
}

static size_t largest_bytes(const model *m)
{
    size_t largest = 0;
    for (int i = 0; i < m->bucket_count; i++) {
        size_t bytes = staging_bytes(m, &m->buckets[i]);
        if (bytes != SIZE_MAX && bytes > largest)
            largest = bytes;
    }
    return largest;
}

status staging_lay_out(staging *s, const model *m, const model_bucket *bucket)
{
    size_t bytes = staging_bytes(m, bucket);
    if (bytes == SIZE_MAX)
        return status_fail(STATUS_UNSUPPORTED, "model \"%s\": the size of a batch is not known",
                           m->name);
    if (bytes > s->bytes) {
        size_t largest = largest_bytes(m);
        bytes = largest > bytes ? largest : bytes;
        void *memory = aligned_alloc(ALIGNMENT, bytes);
        if (memory == NULL)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a batch of %zu bytes", bytes);
        free(s->memory);
        s->memory = memory;
        s->bytes = bytes;
    }
    lay_out(m, bucket, s->memory, s->inputs, s->outputs);
    return STATUS_OK;
}

void staging_dispose(staging *s)
{
    free(s->memory);
    *s = (staging){0};
}

#include "batcher/staging.h"

#include <stdlib.h>

#define ALIGNMENT ((size_t)64)

/* One walk for measuring and for laying out; `memory` NULL measures. */
static size_t lay_out(const model *m, device_bucket shape, char *memory, tensor *inputs,
                      tensor *outputs)
{
    size_t offset = 0;
    for (int i = 0; i < m->input_count + m->output_count; i++) {
        bool is_output = i >= m->input_count;
        int index = is_output ? i - m->input_count : i;
        const model_tensor *declared = is_output ? &m->outputs[index] : &m->inputs[index];
        int64_t dims[TENSOR_RANK_MAX];
        tensor t = {0};
        if (!model_tensor_dims(m, is_output, index, shape.batch, shape.sequence, dims) ||
            tensor_set_shape(&t, declared->dtype, declared->rank, dims))
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

size_t staging_bytes(const model *m, device_bucket shape)
{
    return lay_out(m, shape, NULL, NULL, NULL);
}

status staging_lay_out(staging *s, const model *m, device_bucket shape, size_t bytes_min)
{
    size_t bytes = staging_bytes(m, shape);
    if (bytes == SIZE_MAX)
        return status_fail(STATUS_UNSUPPORTED, "model \"%s\": the size of a batch is not known",
                           m->name);
    if (bytes > s->bytes) {
        if (bytes_min != SIZE_MAX && bytes < bytes_min)
            bytes = bytes_min;
        void *memory = aligned_alloc(ALIGNMENT, bytes);
        if (memory == NULL)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a batch of %zu bytes", bytes);
        free(s->memory);
        s->memory = memory;
        s->bytes = bytes;
    }
    lay_out(m, shape, s->memory, s->inputs, s->outputs);
    return STATUS_OK;
}

void staging_dispose(staging *s)
{
    free(s->memory);
    *s = (staging){0};
}

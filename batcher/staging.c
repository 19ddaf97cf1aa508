#include "batcher/staging.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

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

static void fill(char *to, size_t count, const void *element, size_t bytes)
{
    static const char zero[sizeof(tensor_string)];
    if (memcmp(element, zero, bytes) == 0) {
        memset(to, 0, count * bytes);
        return;
    }
    for (size_t i = 0; i < count; i++)
        memcpy(to + i * bytes, element, bytes);
}

void staging_copy_row(const tensor *to, int64_t to_row, const tensor *from, int64_t from_row,
                      const model_tensor *axes, int64_t length, const void *pad)
{
    size_t element = dtype_bytes(to->dtype);
    assert(to->dtype == from->dtype && to->rank == from->rank);
    int first = axes->batch_axis == 0 ? 1 : 0;
    int cut = axes->sequence_axis;
    size_t outer = 1, inner = element, to_positions = 1, from_positions = 1, positions = 1;
    for (int i = first; i < to->rank; i++) {
        if (i == cut) {
            to_positions = (size_t)to->dims[i];
            from_positions = (size_t)from->dims[i];
            positions = (size_t)length;
        } else if (cut >= 0 && i < cut) {
            outer *= (size_t)to->dims[i];
        } else {
            inner *= (size_t)to->dims[i];
        }
    }
    assert(positions <= to_positions && positions <= from_positions);
    if (first == 0)
        to_row = from_row = 0;
    char *t = (char *)to->data + (size_t)to_row * outer * to_positions * inner;
    const char *f = (const char *)from->data + (size_t)from_row * outer * from_positions * inner;
    for (size_t o = 0; o < outer; o++) {
        if (positions * inner > 0)
            memcpy(t, f, positions * inner);
        if (pad != NULL && positions < to_positions)
            fill(t + positions * inner, (to_positions - positions) * (inner / element), pad,
                 element);
        t += to_positions * inner;
        f += from_positions * inner;
    }
}

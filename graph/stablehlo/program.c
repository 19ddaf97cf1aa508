#include "graph/stablehlo/program.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

void stablehlo_program_dispose(stablehlo_program *p)
{
    free(p->text);
    free(p->arguments);
    *p = (stablehlo_program){0};
}

/* A 2-D weight seen as [channels][depth] with strides. */
static float weight_at(const tensor *w, int axis, int64_t channel, int64_t depth)
{
    int64_t index = axis == 1 ? depth * w->dims[1] + channel : channel * w->dims[1] + depth;
    return ((const float *)w->data)[index];
}

static float scale_of(const tensor *w, int axis, int64_t channel)
{
    float largest = 0;
    for (int64_t k = 0; k < w->dims[1 - axis]; k++)
        largest = fmaxf(largest, fabsf(weight_at(w, axis, channel, k)));
    return largest > 0 ? largest / 127.0f : 1.0f;
}

static void to_s8(const tensor *w, int axis, tensor *out)
{
    for (int64_t n = 0; n < w->dims[axis]; n++) {
        float inverse = 1.0f / scale_of(w, axis, n);
        for (int64_t k = 0; k < w->dims[1 - axis]; k++) {
            int64_t index = axis == 1 ? k * w->dims[1] + n : n * w->dims[1] + k;
            ((int8_t *)out->data)[index] = (int8_t)nearbyintf(weight_at(w, axis, n, k) * inverse);
        }
    }
}

static void to_turned(const tensor *w, uint16_t *out)
{
    int64_t rows = w->dims[0], columns = w->dims[1];
    const float *from = w->data;
    for (int64_t i = 0; i < columns; i++)
        for (int64_t k = 0; k < rows; k++)
            out[i * rows + k] = dtype_f32_to_bf16(from[k * columns + i]);
}

status stablehlo_argument_data(const stablehlo_argument *argument, arena *a, tensor *out)
{
    const tensor *w = argument->constant;
    assert(argument->input < 0);
    if (argument->transform == STABLEHLO_AS_IS) {
        *out = *w;
        return STATUS_OK;
    }
    assert(w->dtype == DTYPE_F32);
    status s = tensor_allocate(out, a, argument->dtype, argument->rank, argument->dims);
    if (s)
        return s;
    if (argument->transform == STABLEHLO_TO_S8)
        to_s8(w, argument->axis, out);
    else if (argument->transform == STABLEHLO_TO_BF16_TURNED)
        to_turned(w, out->data);
    else if (argument->transform == STABLEHLO_TO_S8_SCALES)
        for (int64_t n = 0; n < w->dims[argument->axis]; n++)
            ((float *)out->data)[n] = scale_of(w, argument->axis, n);
    else
        for (int64_t i = 0, count = tensor_count(w); i < count; i++)
            ((uint16_t *)out->data)[i] = dtype_f32_to_bf16(((const float *)w->data)[i]);
    return STATUS_OK;
}

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
static float weight_at(const stablehlo_argument *a, int64_t channel, int64_t depth)
{
    const tensor *w = a->constant;
    int64_t index = a->axis == 1 ? depth * w->dims[1] + channel : channel * w->dims[1] + depth;
    float weight = ((const float *)w->data)[index];
    return a->channels.factors == NULL ? weight
                                       : weight / ((const float *)a->channels.factors->data)[depth];
}

static float scale_of(const stablehlo_argument *a, int64_t channel)
{
    float largest = 0;
    for (int64_t k = 0; k < a->constant->dims[1 - a->axis]; k++)
        largest = fmaxf(largest, fabsf(weight_at(a, channel, k)));
    return largest > 0 ? largest / 127.0f : 1.0f;
}

static void to_s8(const stablehlo_argument *a, tensor *out)
{
    const int64_t channels = a->constant->dims[a->axis], depth = a->constant->dims[1 - a->axis];
    /* Whether weights of one channel lie apart. */
    bool is_by_depth = (a->axis == 1) != (a->transform == STABLEHLO_TO_S8_TURNED);
    for (int64_t n = 0; n < channels; n++) {
        float inverse = 1.0f / scale_of(a, n);
        for (int64_t k = 0; k < depth; k++) {
            int64_t index = is_by_depth ? k * channels + n : n * depth + k;
            ((int8_t *)out->data)[index] = (int8_t)nearbyintf(weight_at(a, n, k) * inverse);
        }
    }
}

/* Of one output: the sum of what the offsets add to each product. */
static float shift_of(const stablehlo_argument *a, int64_t channel)
{
    const float *offsets = a->channels.offsets->data;
    float scale = scale_of(a, channel), inverse = 1.0f / scale;
    double sum = 0;
    for (int64_t k = 0; k < a->constant->dims[1 - a->axis]; k++)
        sum += (double)offsets[k] * nearbyintf(weight_at(a, channel, k) * inverse);
    return (float)(sum * (double)scale);
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
    if (argument->transform == STABLEHLO_TO_S8 || argument->transform == STABLEHLO_TO_S8_TURNED)
        to_s8(argument, out);
    else if (argument->transform == STABLEHLO_TO_BF16_TURNED)
        to_turned(w, out->data);
    else if (argument->transform == STABLEHLO_TO_S8_SHIFTS)
        for (int64_t n = 0; n < w->dims[argument->axis]; n++)
            ((float *)out->data)[n] = shift_of(argument, n);
    else if (argument->transform == STABLEHLO_TO_S8_SCALES)
        for (int64_t n = 0; n < w->dims[argument->axis]; n++)
            ((float *)out->data)[n] = scale_of(argument, n);
    else
        for (int64_t i = 0, count = tensor_count(w); i < count; i++)
            ((uint16_t *)out->data)[i] = dtype_f32_to_bf16(((const float *)w->data)[i]);
    return STATUS_OK;
}

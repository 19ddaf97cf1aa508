#include "kernels/attention.h"

#include "kernels/kernels_list.h"
#include "kernels/rows.h"

static void attend(const attention_f32 *a, size_t first, size_t length, size_t head, size_t i)
{
    float *weights = a->workspace;
    size_t d = a->head_size;
    const float *q = a->q + (first + i) * a->qkv_stride + head * d;
    for (size_t j = 0; j < length; j++) {
        const float *k = a->k + (first + j) * a->qkv_stride + head * d;
        weights[j] = 0;
        for (size_t x = 0; x < d; x++)
            weights[j] += q[x] * k[x];
    }
    softmax_f32 s = {.rows = 1, .width = length, .x = weights, .scale = a->scale, .out = weights};
    if (a->bias)
        s.bias =
            a->bias + (ptrdiff_t)head * a->bias_head_stride + (ptrdiff_t)i * a->bias_row_stride;
    s.mask = a->mask ? a->mask + first : NULL;
    softmax_f32_scalar(&s);
    float *out = a->out + (first + i) * a->out_stride + head * d;
    for (size_t x = 0; x < d; x++)
        out[x] = 0;
    for (size_t j = 0; j < length; j++) {
        const float *v = a->v + (first + j) * a->qkv_stride + head * d;
        for (size_t x = 0; x < d; x++)
            out[x] += weights[j] * v[x];
    }
}

void attention_f32_scalar(const struct attention_f32 *a)
{
    for (size_t s = 0; s < a->sequences; s++) {
        size_t first = (size_t)a->offsets[s], length = (size_t)a->offsets[s + 1] - first;
        for (size_t head = 0; head < a->heads; head++) {
            for (size_t i = 0; i < length; i++)
                attend(a, first, length, head, i);
        }
    }
}

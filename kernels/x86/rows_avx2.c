#include "kernels/kernels_list.h"
#include "kernels/x86/rows_vector.h"

float reduce_sum_f32_avx2(const float *in, size_t count)
{
    return row_sum(in, count);
}

float reduce_max_f32_avx2(const float *in, size_t count)
{
    return row_extreme(in, count, 1);
}

float reduce_min_f32_avx2(const float *in, size_t count)
{
    return row_extreme(in, count, -1);
}

void layer_norm_f32_avx2(const struct layer_norm_f32 *l)
{
    float tops[NORM_ROWS];
    for (size_t r = 0; r < l->rows; r += NORM_ROWS)
        layer_norm_some(l, r, l->rows - r < NORM_ROWS ? l->rows - r : NORM_ROWS, tops);
}

void softmax_f32_avx2(const struct softmax_f32 *s)
{
    for (size_t r = 0; r < s->rows; r++) {
        softmax_row(s, s->x + r * s->x_stride, s->bias ? s->bias + r * s->bias_stride : NULL,
                    s->mask ? s->mask + r * s->mask_stride : NULL, s->out + r * s->out_stride);
    }
}

#include "kernels/kernels_list.h"
#include "kernels/x86/activation_vector.h"

void activation_f32_avx2(const struct activation_f32 *p)
{
    activate_all(p);
}

void prelu_f32_avx2(const float *a, size_t a_step, const float *b, size_t b_step, float *out,
                    size_t count)
{
    map_binary(prelu, a, a_step, b, b_step, out, count);
}

void weighted_rows_f32_avx2(const struct weighted_rows_f32 *w)
{
    sum_rows(w);
}

#include "kernels/kernels_list.h"
#include "kernels/x86/vector/vector.h"

static inline vec_i dot_step(vec_i sum, vec_i a, vec_i b)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}

static inline vec dot_to_float(vec_i sum)
{
    return vec_from_i(sum);
}

#define DOT_UNROLLED_STEPS 1
#include "kernels/x86/gemm/gemm_dot_vector.h"

void gemm_s16_avx2(const struct gemm_s16 *g)
{
    dot_job d = dot_job_of_s16(g);
    dot_run(&d, GEMM_S16_BLOCK / 2);
}

double peak_s16_avx2(size_t rounds)
{
    return dot_peak(rounds, 2);
}

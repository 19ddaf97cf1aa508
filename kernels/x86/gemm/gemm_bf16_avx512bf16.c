#include "kernels/kernels_list.h"
#include "kernels/x86/vector/vector.h"

/* In assembly: gcc 12 copies the sums around the intrinsic, which halves the speed. */
static inline vec_i dot_step(vec_i sum, vec_i a, vec_i b)
{
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
}

static inline vec dot_to_float(vec_i sum)
{
    return _mm512_castsi512_ps(sum);
}

#include "kernels/x86/gemm/gemm_dot_vector.h"

void gemm_bf16_avx512bf16(const struct gemm_bf16 *g)
{
    dot_job d = dot_job_of_bf16(g);
    dot_run(&d, SIZE_MAX);
}

double peak_bf16_avx512bf16(size_t rounds)
{
    return dot_peak(rounds, 2);
}

#include "kernels/kernels_list.h"
#include "kernels/x86/vector/vector.h"

/* In assembly: gcc 12 copies the sums around the intrinsic, which halves the speed. */
static inline vec_i dot_step(vec_i sum, vec_i a, vec_i b)
{
    __asm__("%{vex%} vpdpwssd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
    return sum;
}

static inline vec dot_to_float(vec_i sum)
{
    return vec_from_i(sum);
}

#include "kernels/x86/gemm/gemm_dot_vector.h"

void gemm_s16_avxvnni(const struct gemm_s16 *g)
{
    dot_job d = dot_job_of_s16(g);
    dot_run(&d, GEMM_S16_BLOCK / 2);
}

double peak_s16_avxvnni(size_t rounds)
{
    return dot_peak(rounds, 2);
}

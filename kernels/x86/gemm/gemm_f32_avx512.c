#include "kernels/kernels_list.h"
#include "kernels/x86/gemm/gemm_f32_vector.h"

void gemm_f32_avx512(const struct gemm_f32 *g)
{
    gemm_rows(g);
}

void gemm_unpacked_f32_avx512(const struct gemm_f32_unpacked *g)
{
    gemm_unpacked(g);
}

double peak_f32_avx512(size_t rounds)
{
    return gemm_peak(rounds);
}

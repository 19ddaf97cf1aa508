#include "kernels/kernels_list.h"
#include "kernels/x86/gemm/gemm_f32_vector.h"

void gemm_pack_f32_avx2(const float *b, size_t b_row_stride, size_t b_column_stride, size_t k,
                        size_t n, float *packed)
{
    gemm_pack(b, b_row_stride, b_column_stride, k, n, packed);
}

void gemm_f32_avx2(const struct gemm_f32 *g)
{
    gemm_rows(g);
}

void gemm_unpacked_f32_avx2(const struct gemm_f32_unpacked *g)
{
    gemm_unpacked(g);
}

double peak_f32_avx2(size_t rounds)
{
    return gemm_peak(rounds);
}

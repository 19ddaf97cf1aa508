#include "kernels/kernels_list.h"
#include "kernels/x86/vector/vector.h"

/* Exact: the even and the odd bytes as 16-bit lanes, since vpmaddubsw would saturate. The parts of
 * a and b are common to many steps of a tile, and computed once. */
static inline vec_i dot_step(vec_i sum, vec_i a, vec_i b)
{
    __m256i a_even = _mm256_and_si256(a, _mm256_set1_epi16(0xff));
    __m256i a_odd = _mm256_srli_epi16(a, 8);
    __m256i b_even = _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8);
    __m256i b_odd = _mm256_srai_epi16(b, 8);
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(a_even, b_even));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a_odd, b_odd));
}

#define DOT_TILE_ROWS 4 /* 8 sums, 4 of B, 2 of A, one product */
#define DOT_UNROLLED_STEPS 1

static inline vec dot_to_float(vec_i sum)
{
    return vec_from_i(sum);
}

#include "kernels/x86/gemm/gemm_dot_vector.h"

void gemm_u8s8_avx2(const struct gemm_u8s8 *g)
{
    dot_job d = dot_job_of_u8s8(g);
    dot_run(&d, SIZE_MAX);
}

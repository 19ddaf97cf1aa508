#include "kernels/kernels_list.h"
#include "kernels/x86/vector/vector.h"

/* Without VNNI: as in AVX2, the even and the odd bytes as 16-bit lanes. */
static inline vec_i dot_step(vec_i sum, vec_i a, vec_i b)
{
    __m512i a_even = _mm512_and_si512(a, _mm512_set1_epi16(0xff));
    __m512i a_odd = _mm512_srli_epi16(a, 8);
    __m512i b_even = _mm512_srai_epi16(_mm512_slli_epi16(b, 8), 8);
    __m512i b_odd = _mm512_srai_epi16(b, 8);
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(a_even, b_even));
    return _mm512_add_epi32(sum, _mm512_madd_epi16(a_odd, b_odd));
}

#define DOT_TILE_ROWS 4 /* 16 sums, 8 of B, 2 of A */
#define DOT_UNROLLED_STEPS 1

static inline vec dot_to_float(vec_i sum)
{
    return vec_from_i(sum);
}

#include "kernels/x86/gemm/gemm_dot_vector.h"

void gemm_u8s8_avx512(const struct gemm_u8s8 *g)
{
    dot_job d = dot_job_of_u8s8(g);
    dot_run(&d, SIZE_MAX);
}

#include "kernels/kernels_list.h"
#include "kernels/x86/vector/vector.h"

#define TILE_DOT(sums, a, b) AMX_DOT_BF16(sums, a, b)
#define TILE_IS_INTEGER 0
#define GELU_DEGREE 3

static inline vec tile_to_float(vec_i sums)
{
    return _mm512_castsi512_ps(sums);
}

#include "kernels/x86/gemm/gemm_tiles_vector.h"

void gemm_bf16_amx(const struct gemm_bf16 *g)
{
    dot_job d = dot_job_of_bf16(g);
    tile_multiply(&d);
}

double peak_bf16_amx(size_t rounds)
{
    return tile_peak(rounds, 2);
}

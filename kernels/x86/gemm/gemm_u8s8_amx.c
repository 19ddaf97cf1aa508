#include "kernels/kernels_list.h"
#include "kernels/x86/vector/vector.h"

#define TILE_DOT(sums, a, b) AMX_DOT_U8S8(sums, a, b)
#define TILE_IS_INTEGER 1
#define GELU_DEGREE 2

static inline vec tile_to_float(vec_i sums)
{
    return vec_from_i(sums);
}

#include "kernels/x86/gemm/gemm_tiles_vector.h"

void gemm_u8s8_amx(const struct gemm_u8s8 *g)
{
    dot_job d = dot_job_of_u8s8(g);
    tile_multiply(&d);
}

double peak_u8s8_amx(size_t rounds)
{
    return tile_peak(rounds, 4);
}

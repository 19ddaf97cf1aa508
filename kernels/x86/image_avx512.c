#include "kernels/kernels_list.h"
#include "kernels/scalar/image_rows_loops.h"
#include "kernels/x86/image_vector.h"
#include "kernels/x86/pool_vector.h"

void image_rows_avx512(const struct image_rows *r)
{
    unfold_rows(r);
}

void depthwise_f32_avx512(const struct depthwise_f32 *d)
{
    depthwise_pixels(d);
}

void pool_f32_avx512(const struct pool_f32 *p)
{
    pool_pixels(p);
}

void pool_planes_f32_avx512(const struct pool_planes_f32 *p)
{
    pool_planes(p);
}

void embedding_sum_f32_avx512(const struct embedding_sum_f32 *e)
{
    embed_tokens(e);
}

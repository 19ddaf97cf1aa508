#include "kernels/kernels_list.h"
#include "kernels/scalar/tensor_u8_loops.h"

void quantise_tensor_u8_avx2(const struct quantise_tensor_u8 *q)
{
    u8_quantise(q);
}

void dequantise_u8_avx2(const struct dequantise_u8 *d)
{
    u8_dequantise(d);
}

void add_u8_avx2(const struct add_u8 *p)
{
    u8_add(p);
}

void pool_u8_avx2(const struct pool_u8 *p)
{
    u8_pool(p);
}

void depthwise_u8s8_avx2(const struct depthwise_u8s8 *d)
{
    u8_depthwise(d);
}

#include "kernels/kernels_list.h"
#include "kernels/scalar/bytes_loops.h"

void bytes_quantise_scalar(const struct bytes_quantise *q)
{
    quantise_bytes(q);
}

void bytes_dequantise_scalar(const struct bytes_dequantise *d)
{
    dequantise_bytes(d);
}

void bytes_add_scalar(const struct bytes_add *p)
{
    add_bytes(p);
}

void bytes_interleave_scalar(const struct bytes_interleave *p)
{
    interleave_bytes(p, 0);
}

void bytes_pool_scalar(const struct bytes_pool *p)
{
    pool_bytes(p);
}

void bytes_depthwise_scalar(const struct bytes_depthwise *d)
{
    depthwise_bytes(d);
}

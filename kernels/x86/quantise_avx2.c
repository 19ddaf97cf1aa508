#include "kernels/kernels_list.h"
#include "kernels/x86/quantise_vector.h"

void quantise_u8_avx2(const struct quantise_u8 *q)
{
    quantise_rows_u8(q);
}

void quantise_s16_avx2(const struct quantise_s16 *q)
{
    quantise_rows_s16(q);
}

void layer_norm_quantise_avx2(const struct layer_norm_quantise *l)
{
    layer_norm_quantise_rows(l);
}

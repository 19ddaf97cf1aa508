#include "kernels/kernels_list.h"
#include "kernels/x86/attention_vector.h"

void attention_f32_avx512(const struct attention_f32 *a)
{
    attention_run(a);
}

#include "kernels/kernels_list.h"
#include "kernels/scalar/line_loops.h"
#include "kernels/x86/lines/line_vector.h"

void compare_f32_avx512(const struct compare_f32 *p)
{
    line_compare(p);
}

void convert_line_avx512(const struct convert_line *p)
{
    line_convert(p);
}

void fold_windows_f32_avx512(const struct fold_windows_f32 *p)
{
    fold_windows(p);
}

void fold_rows_f32_avx512(const struct fold_rows_f32 *p)
{
    line_fold_rows(p);
}

void gather_sum_f32_avx512(const struct gather_sum_f32 *p)
{
    line_gather_sum(p);
}

void repeat_f32_avx512(const struct repeat_f32 *p)
{
    line_repeat(p);
}

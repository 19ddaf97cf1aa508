#include "kernels/kernels_list.h"
#include "kernels/scalar/combine_loops.h"
#include "kernels/scalar/fold_loops.h"
#include "kernels/scalar/line_loops.h"
#include "kernels/scalar/plain_loops.h"
#include "kernels/scalar/transpose_loops.h"
#include "kernels/x86/lines/line_vector.h"

void combine_line_avx2(const struct combine_line *p)
{
    line_combine(p);
}

void choose_line_avx2(const struct choose_line *p)
{
    line_choose(p);
}

void convert_line_avx2(const struct convert_line *p)
{
    line_convert(p);
}

void fold_windows_f32_avx2(const struct fold_windows_f32 *p)
{
    fold_windows(p);
}

void fold_rows_f32_avx2(const struct fold_rows_f32 *p)
{
    line_fold_rows(p);
}

void gather_sum_f32_avx2(const struct gather_sum_f32 *p)
{
    gather_sum(p);
}

void repeat_plane_avx2(const struct repeat_plane *p)
{
    line_repeat(p);
}

void transpose_plane_avx2(const struct transpose_plane *p)
{
    line_transpose(p);
}

void fold_each_f32_avx2(const struct fold_each_f32 *p)
{
    fold_each(p);
}

void arg_rows_f32_avx2(const struct arg_rows_f32 *p)
{
    line_arg_rows(p);
}

void cumulate_f32_avx2(const struct cumulate_f32 *p)
{
    line_cumulate(p);
}

void fold_line_avx2(const struct fold_line *p)
{
    line_fold_plain(p);
}

size_t place_line_avx2(const struct place_line *p)
{
    return line_place(p);
}

void plain_product_avx2(const struct plain_product *p)
{
    line_product_plain(p);
}

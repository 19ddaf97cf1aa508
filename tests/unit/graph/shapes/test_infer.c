#include <criterion/criterion.h>

#include "tests/unit/graph/shapes/case.h"

Test(infer, elementwise)
{
    static const infer_case rows[] = {
        {GRAPH_OP_RELU, "f32[2,3]", "", "f32[2,3]"},
        {GRAPH_OP_RELU, "bool[2]", "", "!invalid_argument"},
        {GRAPH_OP_RELU, "", "", "!invalid_argument"},
        {GRAPH_OP_RELU, "f32[2] f32[2]", "", "!invalid_argument"},
        {GRAPH_OP_ADD, "f32[4,1,3] f32[5,1]", "", "f32[4,5,3]"},
        {GRAPH_OP_ADD, "f32[] f32[0]", "", "f32[0]"},
        {GRAPH_OP_ADD, "f32[2] f32[3]", "", "!invalid_argument"},
        {GRAPH_OP_ADD, "f32[2] i64[2]", "", "!invalid_argument"},
        {GRAPH_OP_ADD, "f32[1048576,1] f32[1,1048576]", "", "!too_large"},
        {GRAPH_OP_EQUAL, "i64[2,1] i64[3]", "", "bool[2,3]"},
        {GRAPH_OP_AND, "bool[2] bool[1]", "", "bool[2]"},
        {GRAPH_OP_AND, "i32[2] i32[2]", "", "!invalid_argument"},
        {GRAPH_OP_MAX, "f32[2,1] f32[3] f32[]", "", "f32[2,3]"},
        {GRAPH_OP_MAX, "f32[2] -", "", "!invalid_argument"},
        {GRAPH_OP_POW, "f32[2] i64[]", "", "f32[2]"},
        {GRAPH_OP_MOD, "f32[2] f32[2]", "", "f32[2]"},
        {GRAPH_OP_MOD, "f32[2] f32[2]", "fmod=1", "f32[2]"},
        {GRAPH_OP_PRELU, "f32[2,3] f32[3]", "", "f32[2,3]"},
        {GRAPH_OP_PRELU, "f32[3] f32[2,3]", "", "!invalid_argument"},
        {GRAPH_OP_WHERE, "bool[2,1] f32[3] f32[]", "", "f32[2,3]"},
        {GRAPH_OP_WHERE, "bool[2] f32[2] i64[2]", "", "!invalid_argument"},
        {GRAPH_OP_CLIP, "f32[2] - f32[]", "", "f32[2]"},
        {GRAPH_OP_CLIP, "f32[2] f32[2]", "", "!invalid_argument"},
        {GRAPH_OP_CAST, "f32[2]", "to=7", "i64[2]"},
        {GRAPH_OP_CAST, "f32[2]", "to=17", "!unsupported"},
        {GRAPH_OP_CAST_LIKE, "f32[2] u8[9]", "", "u8[2]"},
        {GRAPH_OP_SOFTMAX, "f32[2,3]", "axis=-2", "f32[2,3]"},
        {GRAPH_OP_SOFTMAX, "f32[2,3]", "axis=2", "!invalid_argument"},
        {GRAPH_OP_SOFTMAX, "f32[]", "", "!invalid_argument"},
        {GRAPH_OP_CUM_SUM, "f32[2,3] i64[]={2}", "", "!invalid_argument"},
        {GRAPH_OP_CUM_SUM, "f32[2,3] i64[]", "", "f32[2,3]"},
        {GRAPH_OP_BIT_SHIFT, "u8[2] u8[2]", "direction=UP", "!invalid_argument"},
        {GRAPH_OP_BIT_SHIFT, "u8[2] u8[2]", "direction=LEFT", "u8[2]"},
        {GRAPH_OP_BIT_SHIFT, "i8[2] i8[2]", "direction=RIGHT", "i8[2]"},
        {GRAPH_OP_GELU, "f32[2]", "approximate=erf", "!invalid_argument"},
        {GRAPH_OP_TRILU, "f32[3]", "", "!invalid_argument"},
        {GRAPH_OP_IS_NAN, "f16[2]", "", "bool[2]"},
    };
    INFER_CASES(rows);
}

Test(infer, reductions)
{
    static const infer_case rows[] = {
        {GRAPH_OP_REDUCE_SUM, "f32[2,3,4]", "", "f32[1,1,1]"},
        {GRAPH_OP_REDUCE_SUM, "f32[2,3,4]", "keepdims=0", "f32[]"},
        {GRAPH_OP_REDUCE_SUM, "f32[2,3,4] i64[1]={-1}", "keepdims=0", "f32[2,3]"},
        {GRAPH_OP_REDUCE_SUM, "f32[2,3,4] i64[2]={0,2}", "", "f32[1,3,1]"},
        {GRAPH_OP_REDUCE_SUM, "f32[2,3] i64[0]", "noop_with_empty_axes=1", "f32[2,3]"},
        {GRAPH_OP_REDUCE_SUM, "f32[2,3] i64[1]", "", "!unsupported"},
        {GRAPH_OP_REDUCE_SUM, "f32[2,3] i64[1]={2}", "", "!invalid_argument"},
        {GRAPH_OP_REDUCE_SUM, "f32[2,3] i64[2]={0,-2}", "", "!invalid_argument"},
        {GRAPH_OP_ARG_MAX, "f32[2,3]", "axis=1", "i64[2,1]"},
        {GRAPH_OP_ARG_MAX, "f32[2,0]", "axis=1", "!invalid_argument"},
    };
    INFER_CASES(rows);
}

Test(infer, views)
{
    static const infer_case rows[] = {
        {GRAPH_OP_SHAPE, "f32[2,3,4]", "", "i64[3]"},
        {GRAPH_OP_SHAPE, "f32[2,3,4]", "start=-2 end=-1", "i64[1]"},
        {GRAPH_OP_SHAPE, "f32[2,3,4]", "start=2 end=1", "i64[0]"},
        {GRAPH_OP_SIZE, "f32[2,3]", "", "i64[]"},
        {GRAPH_OP_RESHAPE, "f32[2,3,4] i64[3]={0,-1,2}", "", "f32[2,6,2]"},
        {GRAPH_OP_RESHAPE, "f32[2] i64[0]", "", "!invalid_argument"},
        {GRAPH_OP_RESHAPE, "f32[1] i64[0]", "", "f32[]"},
        {GRAPH_OP_RESHAPE, "f32[2,3] i64[2]={-1,-1}", "", "!invalid_argument"},
        {GRAPH_OP_RESHAPE, "f32[2,3] i64[2]={4,-1}", "", "!invalid_argument"},
        {GRAPH_OP_RESHAPE, "f32[2,3] i64[1]={-7}", "", "!invalid_argument"},
        {GRAPH_OP_RESHAPE, "f32[2,3] i64[2]", "", "!unsupported"},
        {GRAPH_OP_RESHAPE, "f32[0,3] i64[2]={0,-1}", "allowzero=1", "!invalid_argument"},
        {GRAPH_OP_RESHAPE, "f32[0,3] i64[2]={3,0}", "allowzero=1", "f32[3,0]"},
        {GRAPH_OP_RESHAPE, "f32[4] i64[2]={4294967296,4294967297}", "", "!invalid_argument"},
        {GRAPH_OP_RESHAPE, "f32[4] i64[9]={1,1,1,1,1,1,1,1,4}", "", "!invalid_argument"},
        {GRAPH_OP_FLATTEN, "f32[2,3,4]", "axis=0", "f32[1,24]"},
        {GRAPH_OP_FLATTEN, "f32[2,3,4]", "axis=3", "f32[24,1]"},
        {GRAPH_OP_FLATTEN, "f32[2,3,4]", "axis=4", "!invalid_argument"},
        {GRAPH_OP_SQUEEZE, "f32[1,2,1]", "", "f32[2]"},
        {GRAPH_OP_SQUEEZE, "f32[1,2,1] i64[1]={-1}", "", "f32[1,2]"},
        {GRAPH_OP_SQUEEZE, "f32[1,2,1] i64[1]={1}", "", "!invalid_argument"},
        {GRAPH_OP_UNSQUEEZE, "f32[2] i64[2]={0,-1}", "", "f32[1,2,1]"},
        {GRAPH_OP_UNSQUEEZE, "f32[2] i64[2]={0,0}", "", "!invalid_argument"},
        {GRAPH_OP_UNSQUEEZE, "f32[1,1,1,1,1,1,1,2] i64[1]={0}", "", "!unsupported"},
        {GRAPH_OP_TRANSPOSE, "f32[2,3,4]", "", "f32[4,3,2]"},
        {GRAPH_OP_TRANSPOSE, "f32[2,3,4]", "perm=[1,2,0]", "f32[3,4,2]"},
        {GRAPH_OP_TRANSPOSE, "f32[2,3,4]", "perm=[1,1,0]", "!invalid_argument"},
        {GRAPH_OP_TRANSPOSE, "f32[2,3,4]", "perm=[1,3,0]", "!invalid_argument"},
        {GRAPH_OP_TRANSPOSE, "f32[2,3,4]", "perm=[1,0]", "!invalid_argument"},
        {GRAPH_OP_DEPTH_TO_SPACE, "f32[1,8,2,3]", "blocksize=2", "f32[1,2,4,6]"},
        {GRAPH_OP_DEPTH_TO_SPACE, "f32[1,6,2,3]", "blocksize=2", "!invalid_argument"},
        {GRAPH_OP_SPACE_TO_DEPTH, "f32[1,3,4,6]", "blocksize=2 mode=CRD", "f32[1,12,2,3]"},
        {GRAPH_OP_SPACE_TO_DEPTH, "f32[1,3,4,6]", "blocksize=2 mode=RCD", "!invalid_argument"},
        {GRAPH_OP_SPACE_TO_DEPTH, "f32[1,2,4,6]", "blocksize=2", "f32[1,8,2,3]"},
        {GRAPH_OP_SPACE_TO_DEPTH, "f32[1,2,4,6]", "blocksize=0", "!invalid_argument"},
        {GRAPH_OP_REVERSE_SEQUENCE, "f32[4,3] i64[3]", "", "f32[4,3]"},
        {GRAPH_OP_REVERSE_SEQUENCE, "f32[4,3] i64[4]", "", "!invalid_argument"},
    };
    INFER_CASES(rows);
}

Test(infer, rearrangements)
{
    static const infer_case rows[] = {
        {GRAPH_OP_EXPAND, "f32[3,1] i64[3]={2,1,6}", "", "f32[2,3,6]"},
        {GRAPH_OP_EXPAND, "f32[3,4] i64[1]={1}", "", "f32[3,4]"},
        {GRAPH_OP_EXPAND, "f32[3] i64[1]={-1}", "", "!invalid_argument"},
        {GRAPH_OP_EXPAND, "f32[1] i64[2]={1099511627776,1099511627776}", "", "!too_large"},
        {GRAPH_OP_TILE, "f32[2,3] i64[2]={2,0}", "", "f32[4,0]"},
        {GRAPH_OP_TILE, "f32[2,3] i64[1]={2}", "", "!invalid_argument"},
        {GRAPH_OP_TILE, "f32[2] i64[1]={9223372036854775807}", "", "!invalid_argument"},
        {GRAPH_OP_CONCAT, "f32[2,3] f32[2,4]", "axis=-1", "f32[2,7]"},
        {GRAPH_OP_CONCAT, "f32[2,3] f32[3,3]", "axis=1", "!invalid_argument"},
        {GRAPH_OP_CONCAT, "f32[2,3] f32[2,3]", "", "!invalid_argument"},
        {GRAPH_OP_SPLIT, "f32[2,5]", "axis=1 num_outputs=2", "f32[2,3] f32[2,2]"},
        {GRAPH_OP_SPLIT, "f32[6] i64[2]={2,4}", "", "f32[2] f32[4]"},
        {GRAPH_OP_SPLIT, "f32[6] i64[2]={2,3}", "", "!invalid_argument 2"},
        {GRAPH_OP_SPLIT, "f32[6] i64[2]={7,-1}", "", "!invalid_argument 2"},
        {GRAPH_OP_SPLIT, "f32[6] i64[2]", "", "!unsupported 2"},
        {GRAPH_OP_SLICE, "f32[10,4] i64[1]={-3} i64[1]={9223372036854775807}", "", "f32[3,4]"},
        {GRAPH_OP_SLICE, "f32[10] i64[1]={9} i64[1]={-100} i64[1]={0} i64[1]={-3}", "", "f32[4]"},
        {GRAPH_OP_SLICE, "f32[10] i64[1]={-100} i64[1]={-200} i64[1]={0} i64[1]={-1}", "",
         "f32[0]"},
        {GRAPH_OP_SLICE, "f32[10] i64[1]={0} i64[1]={9} i64[1]={0} i64[1]={4}", "", "f32[3]"},
        {GRAPH_OP_SLICE, "f32[10] i64[1]={8} i64[1]={2}", "", "f32[0]"},
        {GRAPH_OP_SLICE,
         "f32[3] i64[1]={2} i64[1]={-9223372036854775808} i64[1]={0} "
         "i64[1]={-9223372036854775808}",
         "", "f32[1]"},
        {GRAPH_OP_SLICE, "f32[0] i64[1]={0} i64[1]={5} i64[1]={0} i64[1]={-1}", "", "f32[0]"},
        {GRAPH_OP_SLICE, "f32[9] i64[1]={0} i64[1]={5} i64[1]={0} i64[1]={0}", "",
         "!invalid_argument"},
        {GRAPH_OP_SLICE, "f32[9] i64[1]={0} i64[1]={5} i64[1]={1}", "", "!invalid_argument"},
        {GRAPH_OP_SLICE, "f32[9] i64[1] i64[1]={5}", "", "!unsupported"},
        {GRAPH_OP_PAD, "f32[2,3] i64[4]={0,1,2,-1}", "", "f32[4,3]"},
        {GRAPH_OP_PAD, "f32[2,3] i64[2]={1,1} - i64[1]={-1}", "", "f32[2,5]"},
        {GRAPH_OP_PAD, "f32[2,3] i64[4]={0,2,0,0}", "mode=reflect", "f32[2,5]"},
        {GRAPH_OP_PAD, "f32[2,3] i64[4]={0,3,0,0}", "mode=reflect", "!invalid_argument"},
        {GRAPH_OP_PAD, "f32[2,3] i64[4]={0,-4,0,0}", "", "!invalid_argument"},
        {GRAPH_OP_PAD, "f32[2] i64[2]={9223372036854775807,1}", "", "!invalid_argument"},
        {GRAPH_OP_PAD, "f32[2] i64[2]={0,0} i64[]", "", "!invalid_argument"},
    };
    INFER_CASES(rows);
}

Test(infer, values_that_make_shapes)
{
    static const infer_case rows[] = {
        {GRAPH_OP_CONSTANT_OF_SHAPE, "i64[2]={2,3}", "value=i64[1]", "i64[2,3]"},
        {GRAPH_OP_CONSTANT_OF_SHAPE, "i64[0]", "", "f32[]"},
        {GRAPH_OP_CONSTANT_OF_SHAPE, "i64[1]={-1}", "", "!invalid_argument"},
        {GRAPH_OP_CONSTANT_OF_SHAPE, "i64[2]", "", "!unsupported"},
        {GRAPH_OP_EYE_LIKE, "i32[2,3]", "dtype=1", "f32[2,3]"},
        {GRAPH_OP_EYE_LIKE, "i32[2]", "", "!invalid_argument"},
        {GRAPH_OP_RANGE, "i64[]={10} i64[]={3} i64[]={-3}", "", "i64[3]"},
        {GRAPH_OP_RANGE, "i64[]={0} i64[]={3} i64[]={-3}", "", "i64[0]"},
        {GRAPH_OP_RANGE, "f32[]={0} f32[]={1} f32[]={0.3}", "", "f32[4]"},
        {GRAPH_OP_RANGE, "f32[]={0} f32[]={1} f32[]={0}", "", "!invalid_argument"},
        {GRAPH_OP_RANGE, "i64[]={-9223372036854775807} i64[]={9223372036854775807} i64[]={1}", "",
         "!too_large"},
        {GRAPH_OP_RANGE, "f32[]={0} f32[]={inf} f32[]={1}", "", "!invalid_argument"},
        {GRAPH_OP_RANGE, "i64[]={0} i64[] i64[]={1}", "", "!unsupported"},
        {GRAPH_OP_ONE_HOT, "i64[2,3] i64[]={5} f32[2]", "axis=1", "f32[2,5,3]"},
        {GRAPH_OP_ONE_HOT, "i64[2] i64[]={-5} f32[2]", "", "!invalid_argument"},
        {GRAPH_OP_TOP_K, "f32[2,9] i64[1]={4}", "", "f32[2,4] i64[2,4]"},
        {GRAPH_OP_TOP_K, "f32[2,9] i64[1]={10}", "", "!invalid_argument 2"},
        {GRAPH_OP_NON_ZERO, "i64[2,2]={1,0,0,3}", "", "i64[2,2]"},
        {GRAPH_OP_NON_ZERO, "i64[2,2]", "", "!unsupported"},
        {GRAPH_OP_COMPRESS, "f32[3,2] bool[2]={0,1}", "axis=0", "f32[1,2]"},
        {GRAPH_OP_COMPRESS, "f32[3,2] bool[4]={0,1,1,1}", "axis=0", "!invalid_argument"},
        {GRAPH_OP_COMPRESS, "f32[3,2] bool[4]={0,1,1,1}", "", "f32[3]"},
        {GRAPH_OP_UNIQUE, "f32[6]={2,1,1,3,4,3}", "", "f32[4] i64[4] i64[6] i64[4]"},
        {GRAPH_OP_UNIQUE, "f32[3,2]={1,0,1,0,2,3}", "axis=0", "f32[2,2] i64[2] i64[3] i64[2]"},
        {GRAPH_OP_RESIZE, "f32[1,1,2,4] - f32[4]={1,1,0.6,0.6}", "", "f32[1,1,1,2]"},
        {GRAPH_OP_RESIZE, "f32[1,1,2,4] - - i64[2]={7,8}", "axes=[2,3]", "f32[1,1,7,8]"},
        {GRAPH_OP_RESIZE, "f32[2,4] - - i64[2]={7,8}", "keep_aspect_ratio_policy=not_larger",
         "f32[4,8]"},
        {GRAPH_OP_RESIZE, "f32[2,4] - f32[2]={1,1} i64[2]={7,8}", "", "!invalid_argument"},
        {GRAPH_OP_RESIZE, "f32[2,4] - f32[2]={1,1e30}", "", "!invalid_argument"},
        {GRAPH_OP_UPSAMPLE, "f32[2,4] f32[2]={1,2}", "", "f32[2,8]"},
    };
    INFER_CASES(rows);
}

Test(infer, gathering)
{
    static const infer_case rows[] = {
        {GRAPH_OP_GATHER, "f32[30,8] i64[2,5]", "", "f32[2,5,8]"},
        {GRAPH_OP_GATHER, "f32[3,8] i64[]", "axis=-1", "f32[3]"},
        {GRAPH_OP_GATHER, "f32[3,8] f32[2]", "", "!invalid_argument"},
        {GRAPH_OP_GATHER, "f32[1,1,1,1,1] i64[1,1,1,1,1]", "", "!unsupported"},
        {GRAPH_OP_GATHER_ELEMENTS, "f32[3,4] i64[9,2]", "axis=0", "f32[9,2]"},
        {GRAPH_OP_GATHER_ELEMENTS, "f32[3,4] i64[9,5]", "axis=0", "!invalid_argument"},
        {GRAPH_OP_GATHER_ND, "f32[2,3,4] i64[5,2]", "", "f32[5,4]"},
        {GRAPH_OP_GATHER_ND, "f32[2,3,4] i64[2,5,1]", "batch_dims=1", "f32[2,5,4]"},
        {GRAPH_OP_GATHER_ND, "f32[2,3,4] i64[5,4]", "", "!invalid_argument"},
        {GRAPH_OP_GATHER_ND, "f32[2,3,4] i64[5,0]", "", "!invalid_argument"},
        {GRAPH_OP_SCATTER_ELEMENTS, "f32[3,4] i64[2,2] f32[2,2]", "reduction=add", "f32[3,4]"},
        {GRAPH_OP_SCATTER_ELEMENTS, "f32[3,4] i64[2,2] f32[2,3]", "", "!invalid_argument"},
        {GRAPH_OP_SCATTER_ELEMENTS, "f32[3,4] i64[2,2] f32[2,2]", "reduction=xor",
         "!invalid_argument"},
        {GRAPH_OP_SCATTER_ND, "f32[4,5] i64[2,1] f32[2,5]", "", "f32[4,5]"},
        {GRAPH_OP_SCATTER_ND, "f32[4,5] i64[2,1] f32[2,4]", "", "!invalid_argument"},
    };
    INFER_CASES(rows);
}

Test(infer, products)
{
    static const infer_case rows[] = {
        {GRAPH_OP_MATMUL, "f32[2,1,3,4] f32[5,4,6]", "", "f32[2,5,3,6]"},
        {GRAPH_OP_MATMUL, "f32[4] f32[5,4,6]", "", "f32[5,6]"},
        {GRAPH_OP_MATMUL, "f32[2,3,4] f32[4]", "", "f32[2,3]"},
        {GRAPH_OP_MATMUL, "f32[4] f32[4]", "", "f32[]"},
        {GRAPH_OP_MATMUL, "f32[3,4] f32[3,4]", "", "!invalid_argument"},
        {GRAPH_OP_MATMUL, "f32[] f32[3,4]", "", "!invalid_argument"},
        {GRAPH_OP_MATMUL, "f32[2,3,4] f32[3,4,5]", "", "!invalid_argument"},
        {GRAPH_OP_GEMM, "f32[4,3] f32[6,4] f32[6]", "transA=1 transB=1", "f32[3,6]"},
        {GRAPH_OP_GEMM, "f32[3,4] f32[4,6] f32[3]", "", "!invalid_argument"},
        {GRAPH_OP_MATMUL_INTEGER, "u8[3,4] i8[4,6] u8[] i8[6]", "", "i32[3,6]"},
        {GRAPH_OP_MATMUL_INTEGER, "u8[3,4] i8[4,6] i8[]", "", "!invalid_argument"},
        {GRAPH_OP_MATMUL_INTEGER, "u8[3,4] i8[4,6] u8[] i8[5]", "", "!invalid_argument"},
        {GRAPH_OP_QLINEAR_MATMUL, "u8[3,4] f32[] u8[] i8[4,6] f32[6] i8[6] f32[] i8[]", "",
         "i8[3,6]"},
        {GRAPH_OP_EINSUM, "f32[2,3] f32[3,4]", "equation=ij,jk->ik", "f32[2,4]"},
        {GRAPH_OP_EINSUM, "f32[2,3] f32[3,4]", "equation=ij,jk", "f32[2,4]"},
        {GRAPH_OP_EINSUM, "f32[5,2,3] f32[1,3,4]", "equation=...ij,...jk->...ik", "f32[5,2,4]"},
        {GRAPH_OP_EINSUM, "f32[3,3]", "equation=ii->i", "f32[3]"},
        {GRAPH_OP_EINSUM, "f32[3,4]", "equation=ii->i", "!invalid_argument"},
        {GRAPH_OP_EINSUM, "f32[3,4]", "equation=ij->ik", "!invalid_argument"},
        {GRAPH_OP_EINSUM, "f32[3,4]", "equation=i->i", "!invalid_argument"},
        {GRAPH_OP_EINSUM, "f32[3,4]", "equation=ij,jk->i", "!invalid_argument"},
        {GRAPH_OP_EINSUM, "f32[3,4]", "equation=i..j->i", "!invalid_argument"},
        {GRAPH_OP_DET, "f32[2,3,3]", "", "f32[2]"},
        {GRAPH_OP_DET, "f32[2,3]", "", "!invalid_argument"},
    };
    INFER_CASES(rows);
}

Test(infer, windows)
{
    static const infer_case rows[] = {
        {GRAPH_OP_CONV, "f32[1,4,7,7] f32[6,2,3,3] f32[6]", "group=2 pads=[1,1,1,1] strides=[2,2]",
         "f32[1,6,4,4]"},
        {GRAPH_OP_CONV, "f32[1,4,7,7] f32[6,4,3,3]", "dilations=[3,3]", "f32[1,6,1,1]"},
        {GRAPH_OP_CONV, "f32[1,4,7,7] f32[6,4,3,3]", "auto_pad=SAME_LOWER strides=[2,3]",
         "f32[1,6,4,3]"},
        {GRAPH_OP_CONV, "f32[1,4,7,7] f32[6,4,3,3]", "dilations=[4,4]", "!invalid_argument"},
        {GRAPH_OP_CONV, "f32[1,4,7,7] f32[6,4,3,3]", "strides=[0,1]", "!invalid_argument"},
        {GRAPH_OP_CONV, "f32[1,4,7,7] f32[6,4,3,3]", "strides=[1]", "!invalid_argument"},
        {GRAPH_OP_CONV, "f32[1,4,7,7] f32[6,4,3,3]", "pads=[-1,0,0,0]", "!invalid_argument"},
        {GRAPH_OP_CONV, "f32[1,4,7,7] f32[6,4,3,3]", "group=2", "!invalid_argument"},
        {GRAPH_OP_CONV, "f32[1,4,7,7] f32[5,2,3,3]", "group=2", "!invalid_argument"},
        {GRAPH_OP_CONV, "f32[1,4,7,7] f32[6,4,3,3] f32[5]", "", "!invalid_argument"},
        {GRAPH_OP_CONV, "f32[1,4,7,7] f32[6,4,3,3]", "kernel_shape=[3,2]", "!invalid_argument"},
        {GRAPH_OP_CONV, "f32[1,4] f32[6,4]", "", "!invalid_argument"},
        {GRAPH_OP_CONV_INTEGER, "u8[1,1,3,3] u8[1,1,2,2] u8[]", "", "i32[1,1,2,2]"},
        {GRAPH_OP_QLINEAR_CONV, "u8[1,3,4,4] f32[] u8[] i8[2,3,1,1] f32[2] i8[2] f32[] u8[] i32[2]",
         "", "u8[1,2,4,4]"},
        {GRAPH_OP_CONV_TRANSPOSE, "f32[1,4,3,3] f32[4,2,3,3]",
         "strides=[2,2] pads=[1,1,1,1] output_padding=[1,1]", "f32[1,2,6,6]"},
        {GRAPH_OP_CONV_TRANSPOSE, "f32[1,4,3,3] f32[4,2,3,3]", "group=2 strides=[3,2]",
         "f32[1,4,9,7]"},
        {GRAPH_OP_CONV_TRANSPOSE, "f32[1,4,3,3] f32[4,2,3,3]", "pads=[9,9,9,9]",
         "!invalid_argument"},
        {GRAPH_OP_CONV_TRANSPOSE, "f32[1,4,3,3] f32[4,2,3,3]", "auto_pad=SAME_UPPER strides=[2,2]",
         "f32[1,2,6,6]"},
        {GRAPH_OP_MAX_POOL, "f32[1,1,32,32]", "kernel_shape=[5,5] strides=[3,3]",
         "f32[1,1,10,10] i64[1,1,10,10]"},
        {GRAPH_OP_MAX_POOL, "f32[1,1,4,4]", "kernel_shape=[3,3] strides=[2,2] ceil_mode=1",
         "f32[1,1,2,2]"},
        {GRAPH_OP_MAX_POOL, "f32[1,1,2,2]", "kernel_shape=[1,1] strides=[2,2] ceil_mode=1",
         "f32[1,1,1,1]"},
        {GRAPH_OP_AVERAGE_POOL, "f32[1,1,4,4]", "kernel_shape=[2,2] pads=[2,2,2,2]",
         "!invalid_argument"},
        {GRAPH_OP_AVERAGE_POOL, "f32[1,1,4,4]", "", "!invalid_argument"},
        {GRAPH_OP_GLOBAL_AVERAGE_POOL, "f32[2,3,5,7]", "", "f32[2,3,1,1]"},
        {GRAPH_OP_GRID_SAMPLE, "f32[1,3,4,4] f32[1,6,7,2]", "", "f32[1,3,6,7]"},
        {GRAPH_OP_GRID_SAMPLE, "f32[1,3,4,4] f32[1,6,7,3]", "", "!invalid_argument"},
    };
    INFER_CASES(rows);
}

Test(infer, normalisations_and_quantisation)
{
    static const infer_case rows[] = {
        {GRAPH_OP_BATCH_NORMALIZATION, "f32[2,3,4] f32[3] f32[3] f32[3] f32[3]", "", "f32[2,3,4]"},
        {GRAPH_OP_BATCH_NORMALIZATION, "f32[2,3,4] f32[3] f32[4] f32[3] f32[3]", "",
         "!invalid_argument"},
        {GRAPH_OP_LAYER_NORMALIZATION, "f32[2,3,4] f32[4]", "", "f32[2,3,4] f32[2,3,1]"},
        {GRAPH_OP_LAYER_NORMALIZATION, "f32[2,3,4] f32[3,4] f32[4]", "axis=1", "f32[2,3,4]"},
        {GRAPH_OP_LAYER_NORMALIZATION, "f32[2,3,4] f32[3]", "", "!invalid_argument"},
        {GRAPH_OP_GROUP_NORMALIZATION, "f32[2,6,4] f32[6] f32[6]", "num_groups=3", "f32[2,6,4]"},
        {GRAPH_OP_GROUP_NORMALIZATION, "f32[2,6,4] f32[6] f32[6]", "num_groups=4",
         "!invalid_argument"},
        {GRAPH_OP_INSTANCE_NORMALIZATION, "f32[2,6] f32[6] f32[6]", "", "!invalid_argument"},
        {GRAPH_OP_LRN, "f32[2,6,3,3]", "size=0", "!invalid_argument"},
        {GRAPH_OP_MEAN_VARIANCE_NORMALIZATION, "f32[2,6]", "", "!invalid_argument"},
        {GRAPH_OP_LP_NORMALIZATION, "f32[2,6]", "p=3", "!invalid_argument"},
        {GRAPH_OP_QUANTIZE_LINEAR, "f32[2,3] f32[]", "", "u8[2,3]"},
        {GRAPH_OP_QUANTIZE_LINEAR, "f32[2,3] f32[3] i8[3]", "axis=-1", "i8[2,3]"},
        {GRAPH_OP_QUANTIZE_LINEAR, "f32[2,3] f32[2] i8[2]", "axis=-1", "!invalid_argument"},
        {GRAPH_OP_QUANTIZE_LINEAR, "f32[2,3] f32[] i8[]", "output_dtype=2", "!invalid_argument"},
        {GRAPH_OP_QUANTIZE_LINEAR, "f32[2,5] f32[2,3]", "block_size=2", "u8[2,5]"},
        {GRAPH_OP_DEQUANTIZE_LINEAR, "i8[2,5] f16[2,3] i8[2,3]", "block_size=2", "f16[2,5]"},
        {GRAPH_OP_DEQUANTIZE_LINEAR, "i8[2,5] f32[] u8[]", "", "!invalid_argument"},
        {GRAPH_OP_DEQUANTIZE_LINEAR, "i64[2,5] f32[]", "", "!invalid_argument"},
        {GRAPH_OP_DYNAMIC_QUANTIZE_LINEAR, "f32[2,5]", "", "u8[2,5] f32[] u8[]"},
    };
    INFER_CASES(rows);
}

Test(infer, recurrent)
{
    static const infer_case rows[] = {
        {GRAPH_OP_TREES, "f32[7,2] i32[1,5] i32[3] i32[2] f32[2] i32[1]", "targets=3 columns=2",
         "f32[7,3]"},
        {GRAPH_OP_TREES, "f64[7,2] i32[1,5] i32[3] i32[2] f32[2] i32[1]", "", "f64[7,1]"},
        {GRAPH_OP_TREES, "f32[7,2] i32[1,5] i32[3] i32[2] f32[2] i32[1]", "columns=3",
         "!invalid_argument"},
        {GRAPH_OP_SQUARED_DISTANCE, "f32[7,2] f32[3,2]", "", "f32[7,3]"},
        {GRAPH_OP_SQUARED_DISTANCE, "f64[7,2] f64[3,2]", "", "f64[7,3]"},
        {GRAPH_OP_SQUARED_DISTANCE, "f32[7,2] f32[3,4]", "", "!invalid_argument"},
        {GRAPH_OP_SQUARED_DISTANCE, "f32[7] f32[3,7]", "", "!invalid_argument"},
        {GRAPH_OP_COUPLE, "f32[7,6]", "classes=4", "f32[7,4]"},
        {GRAPH_OP_COUPLE, "f32[7,6]", "classes=3", "!invalid_argument"},
        {GRAPH_OP_COUPLE, "f32[7,0]", "classes=1", "!invalid_argument"},
        {GRAPH_OP_ROUNDED_LSTM, "f32[7,2,3] f32[1,20,3] f32[1,20,5]", "",
         "f32[7,1,2,5] f32[1,2,5] f32[1,2,5]"},
        {GRAPH_OP_LSTM, "f32[7,2,3] f32[1,20,3] f32[1,20,5]", "",
         "f32[7,1,2,5] f32[1,2,5] f32[1,2,5]"},
        {GRAPH_OP_LSTM, "f32[2,7,3] f32[2,20,3] f32[2,20,5]", "direction=bidirectional layout=1",
         "f32[2,7,2,5] f32[2,2,5] f32[2,2,5]"},
        {GRAPH_OP_LSTM, "f32[7,2,3] f32[1,15,3] f32[1,15,5]", "", "!invalid_argument"},
        {GRAPH_OP_LSTM, "f32[7,2,3] f32[2,20,3] f32[2,20,5]", "", "!invalid_argument"},
        {GRAPH_OP_LSTM, "f32[7,2,3] f32[1,20,3] f32[1,20,5] f32[1,20]", "", "!invalid_argument"},
        {GRAPH_OP_LSTM, "f32[7,2,3] f32[1,20,3] f32[1,20,5] - - - - f32[1,15]", "", "f32[7,1,2,5]"},
        {GRAPH_OP_GRU, "f16[7,2,3] f16[1,15,3] f16[1,15,5] f16[1,30] i32[2]", "hidden_size=5",
         "f16[7,1,2,5] f16[1,2,5]"},
        {GRAPH_OP_GRU, "f32[7,2,3] f32[1,15,3] f32[1,15,5]", "hidden_size=6", "!invalid_argument"},
        {GRAPH_OP_GRU, "f32[7,2,3] f32[1,15,3] f32[1,15,5] - i64[2]", "", "!invalid_argument"},
        {GRAPH_OP_RNN, "f32[7,2,3] f32[1,5,3] f32[1,5,5]", "direction=backward",
         "!invalid_argument"},
        {GRAPH_OP_RNN, "f32[7,2,3] f32[1,5,3] f32[1,5,5]", "layout=2", "!invalid_argument"},
    };
    INFER_CASES(rows);
}

Test(infer, signal)
{
    static const infer_case rows[] = {
        {GRAPH_OP_DFT, "f32[2,10,3,1]", "", "f32[2,10,3,2]"},
        {GRAPH_OP_DFT, "f32[2,10,3,1] i64[]={16} i64[]={1}", "onesided=1", "f32[2,9,3,2]"},
        {GRAPH_OP_DFT, "f32[2,9,2] - i64[]={1}", "onesided=1 inverse=1", "f32[2,16,1]"},
        {GRAPH_OP_DFT, "f32[2,9,2]", "onesided=1", "!invalid_argument"},
        {GRAPH_OP_DFT, "f32[2,9,3]", "", "!invalid_argument"},
        {GRAPH_OP_DFT, "f32[2,9,2] - i64[]={2}", "", "!invalid_argument"},
        {GRAPH_OP_DFT, "f32[2,9,2] i64[]", "", "!unsupported"},
        {GRAPH_OP_STFT, "f32[2,100,1] i64[]={10} f32[20]", "", "f32[2,9,11,2]"},
        {GRAPH_OP_STFT, "f32[2,100] i64[]={10} - i64[]={20}", "onesided=0", "f32[2,9,20,2]"},
        {GRAPH_OP_STFT, "f32[2,100] i64[]={10} f32[20] i64[]={21}", "", "!invalid_argument"},
        {GRAPH_OP_STFT, "f32[2,10] i64[]={1} f32[20]", "", "!invalid_argument"},
        {GRAPH_OP_STFT, "f32[2,100] i64[]={0} f32[20]", "", "!invalid_argument"},
        {GRAPH_OP_HANN_WINDOW, "i64[]={12}", "", "f32[12]"},
        {GRAPH_OP_HANN_WINDOW, "i64[]={12}", "output_datatype=7", "i64[12]"},
        {GRAPH_OP_HANN_WINDOW, "i64[]", "", "!unsupported"},
        {GRAPH_OP_MEL_WEIGHT_MATRIX, "i64[]={8} i64[]={16} i64[] f32[] f32[]", "", "f32[9,8]"},
    };
    INFER_CASES(rows);
}

Test(infer, detection)
{
    static const infer_case rows[] = {
        {GRAPH_OP_NON_MAX_SUPPRESSION,
         "f32[1,2,4]={0,0,1,1,0,0,1,2} f32[1,1,2]={0.5,0.75} i64[]={2} f32[]={0.25}", "",
         "i64[1,3]"},
        {GRAPH_OP_NON_MAX_SUPPRESSION,
         "f32[1,2,4]={0,0,1,1,0,0,1,2} f32[1,1,2]={0.5,0.75} i64[]={2} f32[]={0.625}", "",
         "i64[2,3]"},
        {GRAPH_OP_NON_MAX_SUPPRESSION, "f32[1,2,4]={0,0,1,1,0,0,1,2} f32[1,1,2]={1,1}", "",
         "i64[0,3]"},
        {GRAPH_OP_NON_MAX_SUPPRESSION, "f32[1,2,4] f32[1,1,2] i64[]={2}", "", "!unsupported"},
        {GRAPH_OP_NON_MAX_SUPPRESSION, "f32[1,2,4] f32[1,1,3] i64[]={2}", "", "!invalid_argument"},
        {GRAPH_OP_ROI_ALIGN, "f32[2,3,8,8] f32[5,4] i64[5]", "output_height=2 output_width=7",
         "f32[5,3,2,7]"},
        {GRAPH_OP_ROI_ALIGN, "f32[2,3,8,8] f32[5,4] i64[4]", "", "!invalid_argument"},
        {GRAPH_OP_DEFORM_CONV, "f32[2,4,8,9] f32[6,4,3,3] f32[2,18,6,7]", "", "f32[2,6,6,7]"},
        {GRAPH_OP_DEFORM_CONV, "f32[2,4,8,9] f32[6,2,3,3] f32[2,36,6,7] f32[6] f32[2,18,6,7]",
         "group=2 offset_group=2", "f32[2,6,6,7]"},
        {GRAPH_OP_DEFORM_CONV, "f32[2,4,8,9] f32[6,4,3,3] f32[2,18,6,6]", "", "!invalid_argument"},
        {GRAPH_OP_DEFORM_CONV, "f32[2,4,2,9] f32[6,4,3,3] f32[2,18,1,7]", "", "!invalid_argument"},
        {GRAPH_OP_BIT_CAST, "f32[3]", "to=6", "i32[3]"},
        {GRAPH_OP_BIT_CAST, "f32[3]", "to=7", "!invalid_argument"},
        {GRAPH_OP_CUM_PROD, "f32[2,3] i64[]={2}", "", "!invalid_argument"},
    };
    INFER_CASES(rows);
}

#include <criterion/criterion.h>
#include <string.h>

#include "graph/independence/rules.h"
#include "graph/shapes/infer.h"
#include "tests/unit/graph/independence/row_case.h"

Test(independence_rules, elementwise)
{
    static const row_case rows[] = {
        {GRAPH_OP_RELU, "f32[B,4]", "", "0"},
        {GRAPH_OP_RELU, "f32[3*B*2]", "", "0/3"},
        {GRAPH_OP_CLIP, "f32[B,4] f32[] f32[]", "", "0"},
        {GRAPH_OP_ADD, "f32[B,4] f32[B,4]", "", "0"},
        {GRAPH_OP_ADD, "f32[B,4] f32[4]", "", "0"},
        {GRAPH_OP_ADD, "f32[4] f32[B,4]", "", "0"},
        {GRAPH_OP_ADD, "f32[B,4] f32[]", "", "0"},
        {GRAPH_OP_ADD, "f32[B,1] f32[1,4]", "", "0"},
        {GRAPH_OP_ADD, "f32[5,B,4] f32[B,1]", "", "1"},
        {GRAPH_OP_ADD, "f32[B,1] f32[5,1,4]", "", "1"},
        {GRAPH_OP_ADD, "f32[3*B,4] f32[3*B,1]", "", "0/3"},
        {GRAPH_OP_ADD, "f32[3*B] f32[B*3]", "", "mixed"},
        {GRAPH_OP_SUB, "f32[B,1] f32[1,B]", "", "mixed"},
        {GRAPH_OP_ADD, "f32[B,1,4] f32[B,4]", "", "mixed"},
        {GRAPH_OP_ADD, "i64[B,4] i64[]={B}", "", "mixed"},
        {GRAPH_OP_ADD, "i64[B,1] i64[B,1]=#", "", "mixed"},
        {GRAPH_OP_ADD, "i64[B,2] i64[B,1]={7}", "", "0"},
        {GRAPH_OP_WHERE, "bool[B,1] f32[B,4] f32[4]", "", "0"},
        {GRAPH_OP_PRELU, "f32[B,4] f32[4]", "", "0"},
        {GRAPH_OP_MAX, "f32[B,4] f32[] f32[B,1]", "", "0"},
        {GRAPH_OP_POW, "f32[2*B*2,4] f32[]", "", "0/2"},
        {GRAPH_OP_CAST, "f32[B,4]", "to=7", "0"},
        {GRAPH_OP_QUANTIZE_LINEAR, "f32[B,4] f32[] u8[]", "", "0"},
        {GRAPH_OP_QUANTIZE_LINEAR, "f32[B,4] f32[4] u8[4]", "axis=1", "0"},
        {GRAPH_OP_QUANTIZE_LINEAR, "f32[B,4] f32[B]", "axis=0", "0"},
        {GRAPH_OP_QUANTIZE_LINEAR, "f32[2*B,4] f32[B*2]", "axis=0", "mixed"},
        {GRAPH_OP_QUANTIZE_LINEAR, "f32[B,4] f32[4]={B}", "axis=1", "mixed"},
        {GRAPH_OP_DEQUANTIZE_LINEAR, "u8[B,4] f32[B]", "axis=0", "0"},
        {GRAPH_OP_DYNAMIC_QUANTIZE_LINEAR, "f32[B,4]", "", "mixed mixed mixed"},
    };
    ROW_CASES(rows);
}

Test(independence_rules, views_and_transpositions)
{
    static const row_case rows[] = {
        {GRAPH_OP_RESHAPE, "f32[B,6] i64[3]={0,2,3}", "", "0"},
        {GRAPH_OP_RESHAPE, "f32[B,6] i64[2]={-1,2}", "", "0"},
        {GRAPH_OP_RESHAPE, "f32[B,6] i64[2]={2,-1}", "", "view"},
        {GRAPH_OP_RESHAPE, "f32[B,6] i64[2]={1,-1}", "", "1"},
        {GRAPH_OP_RESHAPE, "f32[4,B,6] i64[2]={-1,6}", "", "0/4"},
        {GRAPH_OP_RESHAPE, "f32[4,B,6] i64[3]={4,-1,3}", "", "1"},
        {GRAPH_OP_RESHAPE, "f32[4*B,6] i64[3]={4,-1,6}", "", "1"},
        {GRAPH_OP_RESHAPE, "f32[4*B,6] i64[3]={2,-1,6}", "", "1/2"},
        {GRAPH_OP_RESHAPE, "f32[4*B,6] i64[2]={B*2,12}", "", "view"},
        {GRAPH_OP_RESHAPE, "f32[B,6] i64[2]={B,6}", "", "0"},
        {GRAPH_OP_FLATTEN, "f32[B,2,3]", "axis=1", "0"},
        {GRAPH_OP_FLATTEN, "f32[B,2,3]", "axis=0", "1"},
        {GRAPH_OP_FLATTEN, "f32[B,2,3]", "axis=2", "0"},
        {GRAPH_OP_SQUEEZE, "f32[1,B,1,4] i64[2]={0,2}", "", "0"},
        {GRAPH_OP_UNSQUEEZE, "f32[B,4] i64[2]={0,2}", "", "1"},
        {GRAPH_OP_TRANSPOSE, "f32[B,4]", "", "1"},
        {GRAPH_OP_TRANSPOSE, "f32[2,3*B*2,5]", "perm=[1,2,0]", "0/3"},
        {GRAPH_OP_DEPTH_TO_SPACE, "f32[B,8,2,3]", "blocksize=2", "0"},
        {GRAPH_OP_DEPTH_TO_SPACE, "f32[1,B*4,2,3]", "blocksize=2", "mixed"},
        {GRAPH_OP_SPACE_TO_DEPTH, "f32[B,2,4,6]", "blocksize=2", "0"},
    };
    ROW_CASES(rows);
}

Test(independence_rules, repetition_and_padding)
{
    static const row_case rows[] = {
        {GRAPH_OP_EXPAND, "f32[1,4] i64[2]={B,4}", "", "0"},
        {GRAPH_OP_EXPAND, "f32[4] i64[3]={2,B,4}", "", "1"},
        {GRAPH_OP_EXPAND, "f32[1,4] i64[2]={B*2,4}", "", "0"},
        {GRAPH_OP_EXPAND, "f32[B,1] i64[2]={B,4}", "", "0"},
        {GRAPH_OP_EXPAND, "f32[B,1] i64[3]={5,1,4}", "", "1"},
        {GRAPH_OP_EXPAND, "i64[B,1]=# i64[3]={5,1,4}", "", "numbered"},
        {GRAPH_OP_TILE, "f32[B,4] i64[2]={1,3}", "", "0"},
        {GRAPH_OP_TILE, "f32[B,4] i64[2]={2,1}", "", "0/2"},
        {GRAPH_OP_TILE, "f32[3*B*2,4] i64[2]={2,1}", "", "0/6"},
        {GRAPH_OP_TILE, "f32[2,4] i64[2]={B,1}", "", "0"},
        {GRAPH_OP_TILE, "f32[2,4] i64[2]={1,B}", "", "1"},
        {GRAPH_OP_CONSTANT_OF_SHAPE, "i64[2]={B,4}", "", "0"},
        {GRAPH_OP_EYE_LIKE, "f32[B,4]", "", "mixed"},
        {GRAPH_OP_EYE_LIKE, "f32[4,B]", "", "mixed"},
        {GRAPH_OP_PAD, "f32[B,4] i64[4]={0,1,0,2}", "", "0"},
        {GRAPH_OP_PAD, "f32[B,4] i64[4]={1,0,0,0}", "", "mixed"},
        {GRAPH_OP_PAD, "f32[B,4] i64[4]={0,B,0,0}", "", "mixed"},
        {GRAPH_OP_PAD, "f32[B,4] i64[2]={1,2} f32[] i64[1]={-1}", "mode=edge", "0"},
        {GRAPH_OP_ONE_HOT, "i64[B,2] i64[]={3} f32[2]", "", "0"},
        {GRAPH_OP_ONE_HOT, "i64[B] i64[]={3} f32[2]", "axis=0", "1"},
        {GRAPH_OP_REVERSE_SEQUENCE, "f32[3,B] i64[B]={1}", "", "1"},
        {GRAPH_OP_REVERSE_SEQUENCE, "f32[B,3] i64[3]={1}", "", "mixed"},
        {GRAPH_OP_REVERSE_SEQUENCE, "f32[3,2,B] i64[2]={1,2}", "", "2"},
    };
    ROW_CASES(rows);
}

Test(independence_rules, joining_and_cutting)
{
    static const row_case rows[] = {
        {GRAPH_OP_CONCAT, "f32[B,4] f32[B,2]", "axis=1", "0"},
        {GRAPH_OP_CONCAT, "f32[B,4] f32[B,4]", "axis=0", "0/2"},
        {GRAPH_OP_CONCAT, "f32[2*B,4] f32[B,4]", "axis=0", "0/3"},
        {GRAPH_OP_CONCAT, "f32[B*2,4] f32[B,4]", "axis=0", "undecided"},
        {GRAPH_OP_CONCAT, "f32[2*B,4] f32[B*2,4]", "axis=1", "mixed"},
        {GRAPH_OP_CONCAT, "i64[B,1]=# i64[B,2]", "axis=1", "indexed"},
        {GRAPH_OP_CONCAT, "i64[B,1]=# i64[B,2] i64[B,1]=#", "axis=1", "mixed"},
        {GRAPH_OP_CONCAT, "i64[B,1]=# i64[B,2]", "axis=-1", "indexed"},
        {GRAPH_OP_CONCAT, "i64[B,2] i64[B,2]=#", "axis=1", "mixed"},
        {GRAPH_OP_SPLIT, "f32[B,4] i64[2]={1,3}", "axis=1", "0 0"},
        {GRAPH_OP_SPLIT, "f32[2*B,4]", "axis=0", "0 0"},
        {GRAPH_OP_SPLIT, "f32[4*B,4]", "axis=0", "0/2 0/2"},
        {GRAPH_OP_SPLIT, "f32[B*2,4]", "axis=0", "mixed mixed"},
        {GRAPH_OP_SPLIT, "f32[3*B,4] i64[2]={B,B*2}", "axis=0", "0 0/2"},
        {GRAPH_OP_SLICE, "f32[B,4] i64[1]={1} i64[1]={3} i64[1]={1}", "", "0"},
        {GRAPH_OP_SLICE, "f32[B,4] i64[1]={-1} i64[1]={-9} i64[1]={1} i64[1]={-1}", "", "0"},
        {GRAPH_OP_SLICE, "f32[B,4] i64[1]={0} i64[1]={999} i64[1]={0}", "", "0"},
        {GRAPH_OP_SLICE, "f32[B,4] i64[1]={0} i64[1]={1} i64[1]={0}", "", "mixed"},
        {GRAPH_OP_SLICE, "f32[B,4] i64[1]={-1} i64[1]={999} i64[1]={0}", "", "mixed"},
        {GRAPH_OP_SLICE, "f32[B,4] i64[1]={-1} i64[1]={-99} i64[1]={0} i64[1]={-1}", "", "mixed"},
        {GRAPH_OP_SLICE, "f32[2*B,4] i64[2]={0,1} i64[2]={B,3}", "", "0"},
        {GRAPH_OP_SLICE, "f32[2*B,4] i64[1]={B} i64[1]={99}", "", "0"},
        {GRAPH_OP_SLICE, "f32[B,9] i64[1]={B} i64[1]={9} i64[1]={1}", "", "mixed"},
        {GRAPH_OP_SLICE, "f32[9] i64[1]={0} i64[1]={B}", "", "undecided"},
    };
    ROW_CASES(rows);
}

Test(independence_rules, indices)
{
    static const row_case rows[] = {
        {GRAPH_OP_GATHER, "f32[5,4] i64[B,2]", "", "0"},
        {GRAPH_OP_GATHER, "f32[5,4] i64[B]", "axis=1", "1"},
        {GRAPH_OP_GATHER, "f32[B,4] i64[]={1}", "axis=1", "0"},
        {GRAPH_OP_GATHER, "f32[3,B,4] i64[2,2]={0,1,1,2}", "axis=0", "2"},
        {GRAPH_OP_GATHER, "f32[B,4] i64[]={0}", "", "mixed"},
        {GRAPH_OP_GATHER, "f32[B,4] i64[1]={0}", "", "mixed"},
        {GRAPH_OP_GATHER, "f32[B,4] i64[B]", "", "mixed"},
        {GRAPH_OP_GATHER, "f32[B,4] i64[B]=#", "", "0"},
        {GRAPH_OP_GATHER, "f32[B,4] i64[B]", "axis=1", "mixed"},
        {GRAPH_OP_GATHER_ELEMENTS, "f32[B,4] i64[B,2]", "axis=1", "0"},
        {GRAPH_OP_GATHER_ELEMENTS, "f32[B,4] i64[B,4]", "axis=0", "mixed"},
        {GRAPH_OP_GATHER_ELEMENTS, "f32[B,4] i64[1,4]", "axis=0", "mixed"},
        {GRAPH_OP_GATHER_ELEMENTS, "f32[5,4] i64[B,4]", "axis=0", "0"},
        {GRAPH_OP_GATHER_ND, "f32[5,4] i64[B,2]", "", "0"},
        {GRAPH_OP_GATHER_ND, "f32[B,5,4] i64[B,1]", "batch_dims=1", "0"},
        {GRAPH_OP_GATHER_ND, "f32[5,B,4] i64[3,1]", "", "1"},
        {GRAPH_OP_GATHER_ND, "f32[B,5,4] i64[B,1]", "", "mixed"},
        {GRAPH_OP_GATHER_ND, "f32[B,5,4] i64[B,1]=#", "", "0"},
        {GRAPH_OP_SCATTER_ELEMENTS, "f32[B,4] i64[B,2] f32[B,2]", "axis=1", "0"},
        {GRAPH_OP_SCATTER_ELEMENTS, "f32[B,4] i64[B,4] f32[B,4]", "axis=0", "mixed"},
        {GRAPH_OP_SCATTER_ELEMENTS, "f32[B*2,4] i64[B,4] f32[B,4]", "axis=1", "mixed"},
        {GRAPH_OP_SCATTER_ND, "f32[B,4] i64[B,1]=# f32[B,4]", "", "0"},
        {GRAPH_OP_SCATTER_ND, "f32[3,B] i64[2,1]={0,2} f32[2,B]", "", "1"},
        {GRAPH_OP_SCATTER_ND, "f32[B,4] i64[1,1]={0} f32[1,4]", "", "mixed"},
        {GRAPH_OP_TOP_K, "f32[B,4] i64[1]={2}", "", "0 0"},
        {GRAPH_OP_TOP_K, "f32[B*2,4] i64[1]={2}", "axis=0", "mixed mixed"},
        {GRAPH_OP_COMPRESS, "f32[B,3] bool[3]={1,0,1}", "axis=1", "0"},
        {GRAPH_OP_ROI_ALIGN, "f32[B,2,4,4] f32[B,4] i64[B]=#", "", "0"},
        {GRAPH_OP_ROI_ALIGN, "f32[B,2,4,4] f32[B,4] i64[B]", "", "undecided"},
        {GRAPH_OP_ROI_ALIGN, "f32[B,2,4,4] f32[B,4] i64[B]={0}", "", "mixed"},
        {GRAPH_OP_ROI_ALIGN, "f32[B,2,4,4] f32[4,4] i64[4]={0}", "", "mixed"},
        {GRAPH_OP_ROI_ALIGN, "f32[1,2,4,4] f32[B,4] i64[B]=#", "", "undecided"},
        {GRAPH_OP_ROI_ALIGN, "f32[2*B,2,4,4] f32[2*B,4] i64[2*B]=#", "", "undecided"},
        {GRAPH_OP_DEFORM_CONV, "f32[B,2,4,4] f32[3,2,1,1] f32[B,2,4,4]", "", "0"},
        {GRAPH_OP_DEFORM_CONV, "f32[B,2,4,4] f32[3,2,1,1] f32[B,2,4,4] f32[3] f32[B,1,4,4]", "",
         "0"},
        {GRAPH_OP_DEFORM_CONV, "f32[B,2,4,4] f32[B,2,1,1] f32[B,2,4,4]", "", "mixed"},
        {GRAPH_OP_DEFORM_CONV, "f32[1,2,B,4] f32[3,2,1,1] f32[1,2,B,4]", "", "mixed"},
        {GRAPH_OP_COMPRESS, "f32[B,3] bool[1]={1}", "axis=0", "mixed"},
    };
    ROW_CASES(rows);
}

Test(independence_rules, matrices)
{
    static const row_case rows[] = {
        {GRAPH_OP_MATMUL, "f32[B,4] f32[4,5]", "", "0"},
        {GRAPH_OP_MATMUL, "f32[B,3,4] f32[4,5]", "", "0"},
        {GRAPH_OP_MATMUL, "f32[B,3,4] f32[B,4,5]", "", "0"},
        {GRAPH_OP_MATMUL, "f32[B,2,3,4] f32[2,4,5]", "", "0"},
        {GRAPH_OP_MATMUL, "f32[2,3,4] f32[B,1,4,5]", "", "0"},
        {GRAPH_OP_MATMUL, "f32[3,4] f32[4,B]", "", "1"},
        {GRAPH_OP_MATMUL, "f32[4] f32[4,B]", "", "0"},
        {GRAPH_OP_MATMUL, "f32[B,4] f32[4]", "", "0"},
        {GRAPH_OP_MATMUL, "f32[B,3,4] f32[4]", "", "0"},
        {GRAPH_OP_MATMUL, "f32[2*B*3,4] f32[4,5]", "", "0/2"},
        {GRAPH_OP_MATMUL, "f32[B,4] f32[4,B]", "", "mixed"},
        {GRAPH_OP_MATMUL, "f32[4,B] f32[B,4]", "", "mixed"},
        {GRAPH_OP_MATMUL, "f32[B,3,4] f32[4,B]", "", "mixed"},
        {GRAPH_OP_MATMUL, "f32[B*2,3,4] f32[2*B,4,5]", "", "mixed"},
        {GRAPH_OP_MATMUL_INTEGER, "u8[B,4] i8[4,5] u8[] i8[]", "", "0"},
        {GRAPH_OP_MATMUL_INTEGER, "u8[B,4] i8[4,5] u8[B]", "", "mixed"},
        {GRAPH_OP_GEMM, "f32[B,4] f32[4,5] f32[5]", "", "0"},
        {GRAPH_OP_GEMM, "f32[4,B] f32[5,4] f32[1,5]", "transA=1 transB=1", "0"},
        {GRAPH_OP_GEMM, "f32[3,4] f32[4,B] f32[3,1]", "", "1"},
        {GRAPH_OP_GEMM, "f32[B,4] f32[4,5] f32[B,1]", "", "0"},
        {GRAPH_OP_GEMM, "f32[B,4] f32[B,4]", "transA=1", "mixed"},
        {GRAPH_OP_GEMM, "f32[B,4] f32[B,4]", "transB=1", "mixed"},
        {GRAPH_OP_TRILU, "f32[B,4,4]", "", "0"},
        {GRAPH_OP_TRILU, "f32[B,4]", "", "mixed"},
        {GRAPH_OP_DET, "f32[B,3,3]", "", "0"},
        {GRAPH_OP_EINSUM, "f32[B,3,4] f32[B,4,5]", "equation=bij,bjk->bik", "0"},
        {GRAPH_OP_EINSUM, "f32[B,3,4] f32[4,5]", "equation=...ij,jk->...ik", "0"},
        {GRAPH_OP_EINSUM, "f32[3,B,4] f32[4,5]", "equation=sbi,ij->bsj", "0"},
        {GRAPH_OP_EINSUM, "f32[B,4] f32[B,4]", "equation=bi,ci->bc", "mixed"},
        {GRAPH_OP_EINSUM, "f32[B,4]", "equation=bi->i", "mixed"},
        {GRAPH_OP_EINSUM, "f32[2,B,3] f32[2,B,3]", "equation=...ij,...ij->...i", "1"},
    };
    ROW_CASES(rows);
}

Test(independence_rules, reductions_and_statistics)
{
    static const row_case rows[] = {
        {GRAPH_OP_REDUCE_MAX, "f32[B,4,5] i64[1]={1}", "", "0"},
        {GRAPH_OP_REDUCE_MEAN, "f32[4,B,5] i64[2]={0,-1}", "keepdims=0", "0"},
        {GRAPH_OP_REDUCE_SUM, "f32[37,B] i64[1]={0}", "", "1"},
        {GRAPH_OP_REDUCE_SUM, "f32[5,37,B] i64[2]={0,1}", "keepdims=0", "0"},
        {GRAPH_OP_REDUCE_SUM, "f32[5,B,37] i64[2]={0,2}", "", "1"},
        {GRAPH_OP_REDUCE_L1, "f32[37,B] i64[1]={0}", "", "1"},
        {GRAPH_OP_REDUCE_L2, "f32[37,B,1] i64[1]={0}", "", "1"},
        {GRAPH_OP_REDUCE_PROD, "f32[37,B] i64[1]={0}", "", "1"},
        {GRAPH_OP_REDUCE_LOG_SUM_EXP, "f32[37,B] i64[1]={0}", "", "1"},
        {GRAPH_OP_REDUCE_SUM, "f32[B,4] i64[1]={0}", "", "mixed"},
        {GRAPH_OP_REDUCE_SUM, "f32[B,4]", "", "mixed"},
        {GRAPH_OP_REDUCE_SUM, "f32[B,4] i64[0]", "noop_with_empty_axes=1", "0"},
        {GRAPH_OP_REDUCE_SUM, "f32[2*B,4] i64[1]={0}", "", "mixed"},
        {GRAPH_OP_ARG_MAX, "f32[4,B]", "axis=0 keepdims=0", "0"},
        {GRAPH_OP_ARG_MIN, "f32[B,4]", "axis=0", "mixed"},
        {GRAPH_OP_SOFTMAX, "f32[B,4]", "", "0"},
        {GRAPH_OP_SOFTMAX, "f32[B,4]", "axis=0", "mixed"},
        {GRAPH_OP_SOFTMAX, "f32[37,B]", "axis=0", "1"},
        {GRAPH_OP_LOG_SOFTMAX, "f32[37,B]", "axis=0", "1"},
        {GRAPH_OP_SOFTMAX, "f32[2,37,B,1]", "axis=1", "2"},
        {GRAPH_OP_SOFTMAX, "f32[2*B*2,4]", "axis=0", "mixed"},
        {GRAPH_OP_SOFTMAX, "f32[4,B]", "axis=0", "1"},
        {GRAPH_OP_LOG_SOFTMAX, "f32[4,B]", "axis=0", "1"},
        {GRAPH_OP_SOFTMAX, "f32[600,B]", "axis=0", "1"},
        {GRAPH_OP_LOG_SOFTMAX, "f32[2,600,B,1]", "axis=1", "2"},
        {GRAPH_OP_HARDMAX, "f32[4,B]", "axis=0", "1"},
        {GRAPH_OP_LP_NORMALIZATION, "f32[600,B]", "axis=0 p=1", "1"},
        {GRAPH_OP_CUM_SUM, "f32[600,B] i64[]={0}", "", "1"},
        {GRAPH_OP_REDUCE_SUM, "f32[600,B] i64[1]={0}", "", "1"},
        {GRAPH_OP_REDUCE_SUM, "f32[600,B] i64[1]={0}", "keepdims=0", "0"},
        {GRAPH_OP_REDUCE_MEAN, "f32[600,B] i64[1]={0}", "keepdims=0", "0"},
        {GRAPH_OP_REDUCE_L1, "f32[600,B] i64[1]={0}", "keepdims=0", "0"},
        {GRAPH_OP_REDUCE_L2, "f32[600,B] i64[1]={0}", "keepdims=0", "0"},
        {GRAPH_OP_REDUCE_SUM_SQUARE, "f32[600,B] i64[1]={0}", "keepdims=0", "0"},
        {GRAPH_OP_REDUCE_LOG_SUM_EXP, "f32[600,B] i64[1]={0}", "keepdims=0", "0"},
        {GRAPH_OP_REDUCE_LOG_SUM, "f32[600,B] i64[1]={0}", "keepdims=0", "0"},
        {GRAPH_OP_REDUCE_PROD, "f32[600,B] i64[1]={0}", "keepdims=0", "0"},
        {GRAPH_OP_REDUCE_SUM, "f32[3,40,B,1] i64[2]={0,1}", "keepdims=0", "0"},
        {GRAPH_OP_MEAN_VARIANCE_NORMALIZATION, "f32[600,B]", "axes=[0]", "1"},
        {GRAPH_OP_MEAN_VARIANCE_NORMALIZATION, "f32[3,B,40]", "axes=[0,2]", "1"},
        {GRAPH_OP_HARDMAX, "f32[B,4]", "axis=1", "0"},
        {GRAPH_OP_LP_NORMALIZATION, "f32[4,B]", "axis=0", "1"},
        {GRAPH_OP_LP_NORMALIZATION, "f32[37,B]", "axis=0 p=1", "1"},
        {GRAPH_OP_CUM_SUM, "f32[B,4] i64[]={1}", "", "0"},
        {GRAPH_OP_CUM_SUM, "f32[37,B] i64[]={0}", "", "1"},
        {GRAPH_OP_CUM_SUM, "f32[B,4] i64[]={-2}", "", "mixed"},
        {GRAPH_OP_MEAN_VARIANCE_NORMALIZATION, "f32[B,2,3,3]", "axes=[2,3]", "0"},
        {GRAPH_OP_MEAN_VARIANCE_NORMALIZATION, "f32[37,2,B]", "axes=[0,1]", "2"},
        {GRAPH_OP_MEAN_VARIANCE_NORMALIZATION, "f32[37,B,19]", "axes=[0,2]", "1"},
        {GRAPH_OP_MEAN_VARIANCE_NORMALIZATION, "f32[B,2,3,3]", "", "mixed"},
        {GRAPH_OP_LAYER_NORMALIZATION, "f32[B,3,4] f32[4] f32[4]", "", "0"},
        {GRAPH_OP_LAYER_NORMALIZATION, "f32[3,B,4] f32[4]", "axis=1", "mixed"},
        {GRAPH_OP_GROUP_NORMALIZATION, "f32[B,4,3] f32[4] f32[4]", "num_groups=2", "0"},
        {GRAPH_OP_GROUP_NORMALIZATION, "f32[1,4,B] f32[4] f32[4]", "num_groups=2", "mixed"},
        {GRAPH_OP_INSTANCE_NORMALIZATION, "f32[B,4,3] f32[4] f32[4]", "", "0"},
        {GRAPH_OP_INSTANCE_NORMALIZATION, "f32[1,B*2,3] f32[B*2] f32[B*2]", "", "1"},
        {GRAPH_OP_INSTANCE_NORMALIZATION, "f32[1,2,B] f32[2] f32[2]", "", "mixed"},
        {GRAPH_OP_BATCH_NORMALIZATION, "f32[B,2,3] f32[2] f32[2] f32[2] f32[2]", "", "0"},
        {GRAPH_OP_BATCH_NORMALIZATION, "f32[3,2,B] f32[2] f32[2] f32[2] f32[2]", "", "2"},
        {GRAPH_OP_LRN, "f32[B,4,2]", "size=3", "0"},
        {GRAPH_OP_LRN, "f32[1,B,2]", "size=3", "mixed"},
    };
    ROW_CASES(rows);
}

Test(independence_rules, windows)
{
    static const row_case rows[] = {
        {GRAPH_OP_CONV, "f32[B,2,5] f32[3,2,3] f32[3]", "", "0"},
        {GRAPH_OP_CONV, "f32[2*B,2,5] f32[3,2,3]", "", "0/2"},
        {GRAPH_OP_CONV, "f32[1,2,B] f32[3,2,1]", "", "2"},
        {GRAPH_OP_CONV, "f32[1,2,B*4] f32[3,2,3]", "pads=[1,1]", "mixed"},
        {GRAPH_OP_CONV, "f32[1,2,B*4] f32[3,2,1]", "pads=[1,0]", "mixed"},
        {GRAPH_OP_CONV, "f32[B,2,5] f32[B,2,3]", "", "mixed"},
        {GRAPH_OP_CONV_TRANSPOSE, "f32[B,2,5] f32[2,3,2]", "strides=[2]", "0"},
        {GRAPH_OP_CONV_TRANSPOSE, "f32[1,2,B] f32[2,3,2]", "strides=[2]", "mixed"},
        {GRAPH_OP_CONV_INTEGER, "u8[B,2,5] i8[3,2,3] u8[]", "", "0"},
        {GRAPH_OP_MAX_POOL, "f32[B,2,5]", "kernel_shape=[2]", "0"},
        {GRAPH_OP_MAX_POOL, "f32[1,B,5]", "kernel_shape=[2]", "1"},
        {GRAPH_OP_MAX_POOL, "f32[1,2,B*3]", "kernel_shape=[3] strides=[3]", "mixed"},
        {GRAPH_OP_MAX_POOL, "f32[B,2,5]", "kernel_shape=[2]", "0 mixed"},
        {GRAPH_OP_AVERAGE_POOL, "f32[B,2,5]", "kernel_shape=[3] pads=[1,1]", "0"},
        {GRAPH_OP_GLOBAL_AVERAGE_POOL, "f32[B,2,5,5]", "", "0"},
        {GRAPH_OP_GLOBAL_MAX_POOL, "f32[1,2,B]", "", "mixed"},
        {GRAPH_OP_RESIZE, "f32[B,2,4] - - i64[3]={B,2,8}", "", "0"},
        {GRAPH_OP_RESIZE, "f32[B,2,4] - f32[3]={1,1,2}", "mode=linear", "0"},
        {GRAPH_OP_RESIZE, "f32[1,2,B] - f32[3]={1,1,2}", "mode=linear", "mixed"},
        {GRAPH_OP_RESIZE, "f32[B,4] - f32[1]={2}", "axes=[1]", "0"},
        {GRAPH_OP_RESIZE, "f32[B,4] - f32[2]={1,2}",
         "coordinate_transformation_mode=tf_half_pixel_for_nn", "undecided"},
        {GRAPH_OP_UPSAMPLE, "f32[B,2,4] f32[3]={1,1,2}", "", "0"},
        {GRAPH_OP_GRID_SAMPLE, "f32[B,2,4,4] f32[B,3,3,2]", "", "0"},
    };
    ROW_CASES(rows);
}

Test(independence_rules, sequences)
{
    static const row_case rows[] = {
        {GRAPH_OP_LSTM, "f32[4,B,2] f32[1,12,2] f32[1,12,3]", "hidden_size=3", "2 1 1"},
        {GRAPH_OP_LSTM, "f32[4,B,2] f32[2,12,2] f32[2,12,3] - - f32[2,B,3] f32[2,B,3]",
         "hidden_size=3 direction=bidirectional", "2 1 1"},
        {GRAPH_OP_LSTM, "f32[B,4,2] f32[1,12,2] f32[1,12,3]", "hidden_size=3", "mixed"},
        {GRAPH_OP_ROUNDED_LSTM, "f32[4,B,2] f32[1,12,2] f32[1,12,3]", "hidden_size=3", "mixed"},
        {GRAPH_OP_TREES,
         "f32[B,4] i32[1,5]={0,-1,-2,0,0} i32[3]={0,1,2} i32[2]={0,0} f32[2] i32[1]={0}",
         "targets=3", "0"},
        {GRAPH_OP_TREES,
         "f32[2,B] i32[1,5]={0,-1,-2,0,0} i32[3]={0,1,2} i32[2]={0,0} f32[2] i32[1]={0}",
         "targets=3", "mixed"},
        {GRAPH_OP_SQUARED_DISTANCE, "f32[B,4] f32[3,4]", "", "0"},
        {GRAPH_OP_SQUARED_DISTANCE, "f32[3,4] f32[B,4]", "", "mixed"},
        {GRAPH_OP_SQUARED_DISTANCE, "f32[B,4] f32[B,4]", "", "mixed"},
        {GRAPH_OP_COUPLE, "f32[B,3]", "classes=3", "0"},
        {GRAPH_OP_GRU, "f32[4,B,2] f32[1,9,2] f32[1,9,3] f32[1,18] i32[B]={2}", "hidden_size=3",
         "2 1"},
        {GRAPH_OP_RNN, "f32[4,2*B,2] f32[1,3,2] f32[1,3,3]", "hidden_size=3", "2/2"},
        {GRAPH_OP_DFT, "f32[B,8,1]", "", "0"},
        {GRAPH_OP_DFT, "f32[B,8,1] - i64[]={0}", "", "mixed"},
        {GRAPH_OP_STFT, "f32[B,16] i64[]={4} f32[8]", "", "0"},
    };
    ROW_CASES(rows);
}

/* Loop, Scan and sequences: graphs with them are never specialised, and so never batched. */
static bool has_shape_rule(graph_op op)
{
    graph_node node = {.op = op, .name = "n"};
    tensor none = {0};
    const tensor *input = NULL;
    return graph_infer_node(&node, &input, &none) == STATUS_OK ||
           strstr(status_message(), "not known before it has run") == NULL;
}

/* A new operator needs a rule, or its models are never batched. */
Test(independence_rules, every_operator_has_one)
{
    for (int op = 0; op < GRAPH_OP_COUNT; op++) {
        bool is_known = op == GRAPH_OP_SHAPE || op == GRAPH_OP_SIZE || op == GRAPH_OP_IF;
        bool is_late = strncmp(graph_op_name((graph_op)op), "penstock.", 9) == 0;
        cr_expect(is_known || is_late || !has_shape_rule((graph_op)op) ||
                      independence_rule_of((graph_op)op) != NULL,
                  "%s has no rule in graph/independence", graph_op_name((graph_op)op));
    }
}

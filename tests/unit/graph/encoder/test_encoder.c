#include <criterion/criterion.h>

#include "tests/unit/graph/encoder/build.h"
#include "tests/unit/graph/encoder/check.h"

/* One encoder, written in the ways people write it: each is recognised and computes the same. What
 * only resembles one is rejected, with the reason. */

static void expect(encoder_pattern pattern, const char *name)
{
    graph *g = build_encoder(&pattern);
    check_recognised(g, name, 2e-5, NULL);
    graph_destroy(g);
}

static void expect_rejected(encoder_pattern pattern, const char *words)
{
    graph *g = build_encoder(&pattern);
    check_rejected(g, words);
    graph_destroy(g);
}

Test(patterns, plain)
{
    expect((encoder_pattern){0}, "plain");
}

Test(patterns, normalisations)
{
    expect((encoder_pattern){.norm = NORM_POW}, "by Pow");
    expect((encoder_pattern){.norm = NORM_SQUARE}, "by Mul");
    expect((encoder_pattern){.norm = NORM_RECIPROCAL}, "by Reciprocal");
}

Test(patterns, activations)
{
    expect((encoder_pattern){.activation = ACTIVATION_DIV_FIRST}, "div first");
    expect((encoder_pattern){.activation = ACTIVATION_HALF_FIRST}, "half first");
    expect((encoder_pattern){.activation = ACTIVATION_HALF_LAST}, "half last");
    expect((encoder_pattern){.activation = ACTIVATION_TANH_POW}, "tanh by Pow");
    expect((encoder_pattern){.activation = ACTIVATION_TANH_SQUARE}, "tanh by Mul");
}

Test(patterns, dense_layers)
{
    expect((encoder_pattern){.dense = DENSE_BIAS_FIRST}, "bias first");
    expect((encoder_pattern){.dense = DENSE_GEMM}, "Gemm");
    expect((encoder_pattern){.dense = DENSE_GEMM_TRANSPOSED}, "Gemm, transposed");
}

Test(patterns, merged_queries_keys_values)
{
    for (int dense = DENSE_MATMUL; dense <= DENSE_GEMM_TRANSPOSED; dense++) {
        expect((encoder_pattern){.qkv = QKV_SPLIT, .dense = (dense_pattern)dense}, "split");
        expect((encoder_pattern){.qkv = QKV_BY_GATHER, .dense = (dense_pattern)dense}, "gathered");
        expect((encoder_pattern){.qkv = QKV_BY_HEAD, .dense = (dense_pattern)dense}, "by head");
    }
}

Test(patterns, scales)
{
    for (int scale = SCALE_DIV; scale <= SCALE_BOTH; scale++)
        expect((encoder_pattern){.scale = (scale_pattern)scale}, "scale");
}

Test(patterns, masks)
{
    expect((encoder_pattern){.mask = MASK_WHERE}, "where");
    expect((encoder_pattern){.mask = MASK_INFINITE}, "infinite");
    expect((encoder_pattern){.mask = MASK_BEFORE_SCALE}, "before the scale");
    expect((encoder_pattern){.mask = MASK_NONE}, "none");
}

Test(patterns, matmuls)
{
    expect((encoder_pattern){.matmul = MATMUL_EINSUM}, "Einsum");
    expect((encoder_pattern){.matmul = MATMUL_EINSUM_IN_PLACE}, "Einsum in place");
}

Test(patterns, outputs)
{
    expect((encoder_pattern){.output = OUTPUT_MEAN}, "mean");
    expect((encoder_pattern){.output = OUTPUT_MAX}, "max");
    expect((encoder_pattern){.output = OUTPUT_FIRST}, "first");
    expect((encoder_pattern){.output = OUTPUT_CLASSES}, "classes");
    expect((encoder_pattern){.output = OUTPUT_SPLIT_COLUMN}, "a column of classes, split off");
    expect((encoder_pattern){.output = OUTPUT_GATHERED_COLUMN}, "a column of classes, gathered");
    expect((encoder_pattern){.output = OUTPUT_MEAN_OF_ALL, .mask = MASK_NONE}, "mean of all");
}

Test(patterns, projected_embeddings)
{
    expect((encoder_pattern){.projects = true}, "a projection");
    expect((encoder_pattern){.projects = true, .dense = DENSE_GEMM_TRANSPOSED},
           "a projection, Gemm");
    expect((encoder_pattern){.projects = true, .norm = NORM_POW, .output = OUTPUT_CLASSES},
           "and classes");
}

Test(patterns, all_at_once)
{
    expect((encoder_pattern){.norm = NORM_RECIPROCAL,
                             .activation = ACTIVATION_TANH_POW,
                             .dense = DENSE_GEMM,
                             .qkv = QKV_BY_HEAD,
                             .scale = SCALE_BOTH,
                             .mask = MASK_INFINITE,
                             .matmul = MATMUL_EINSUM_IN_PLACE,
                             .output = OUTPUT_MEAN},
           "all at once");
}

Test(rejections, masks)
{
    static const char words[] = "not a softmax over the keys that the mask keeps";
    expect_rejected((encoder_pattern){.mask = MASK_CAUSAL}, words);
    expect_rejected((encoder_pattern){.mask = MASK_AFTER_SOFTMAX}, words);
    expect_rejected((encoder_pattern){.mask = MASK_SMALL}, words);
    expect_rejected((encoder_pattern){.mask = MASK_OF_QUERIES}, words);
    expect_rejected((encoder_pattern){.mask = MASK_FROM_IDS}, "computed from the token ids");
    expect_rejected((encoder_pattern){.forgets_mask = true}, "mask");
    expect_rejected((encoder_pattern){.mask = MASK_NONE, .output = OUTPUT_MEAN}, "mask");
}

Test(rejections, what_only_long_sequences_show)
{
    expect_rejected((encoder_pattern){.clips_positions = true},
                    "positions are not counted one by one");
    expect_rejected((encoder_pattern){.attends_in_window = true}, "depends on positions");
}

Test(rejections, layers)
{
    expect_rejected((encoder_pattern){.normalises_first = true}, "residual");
    expect_rejected((encoder_pattern){.adds_twice = true}, "residual");
    expect_rejected((encoder_pattern){.scales_unevenly = true}, "another layer");
    expect_rejected((encoder_pattern){.activation = ACTIVATION_SIGMOID}, "activation");
    expect_rejected((encoder_pattern){.activation = ACTIVATION_QUICK_GELU}, "activation");
}

Test(rejections, embeddings_and_outputs)
{
    expect_rejected((encoder_pattern){.finds_types = true}, "ids");
    expect_rejected((encoder_pattern){.output = OUTPUT_MEAN_OF_ALL}, "pooling");
    expect_rejected((encoder_pattern){.output = OUTPUT_LAST}, "pooling");
    expect_rejected((encoder_pattern){.output = OUTPUT_SOFTMAX}, "output \"output\"");
}

#include <criterion/criterion.h>

#include "build.h"
#include "check.h"

/* One encoder, written in the ways people write it: each is recognised and means the same; what
 * only looks like one is refused, with the reason. */

static void expect(encoder_form form, const char *name)
{
    graph *g = build_encoder(&form);
    check_recognised(g, name, 2e-5, NULL);
    graph_destroy(g);
}

static void expect_not(encoder_form form, const char *words)
{
    graph *g = build_encoder(&form);
    check_refused(g, words);
    graph_destroy(g);
}

Test(forms, plain)
{
    expect((encoder_form){0}, "plain");
}

Test(forms, normalisations)
{
    expect((encoder_form){.norm = NORM_POW}, "by Pow");
    expect((encoder_form){.norm = NORM_SQUARE}, "by Mul");
    expect((encoder_form){.norm = NORM_RECIPROCAL}, "by Reciprocal");
}

Test(forms, activations)
{
    expect((encoder_form){.activation = ACTIVATION_DIV_FIRST}, "div first");
    expect((encoder_form){.activation = ACTIVATION_HALF_FIRST}, "half first");
    expect((encoder_form){.activation = ACTIVATION_HALF_LAST}, "half last");
    expect((encoder_form){.activation = ACTIVATION_TANH_POW}, "tanh by Pow");
    expect((encoder_form){.activation = ACTIVATION_TANH_SQUARE}, "tanh by Mul");
}

Test(forms, dense_layers)
{
    expect((encoder_form){.dense = DENSE_BIAS_FIRST}, "bias first");
    expect((encoder_form){.dense = DENSE_GEMM}, "Gemm");
    expect((encoder_form){.dense = DENSE_GEMM_TRANSPOSED}, "Gemm, transposed");
}

Test(forms, merged_queries_keys_values)
{
    for (int dense = DENSE_MATMUL; dense <= DENSE_GEMM_TRANSPOSED; dense++) {
        expect((encoder_form){.qkv = QKV_SPLIT, .dense = (dense_form)dense}, "split");
        expect((encoder_form){.qkv = QKV_BY_GATHER, .dense = (dense_form)dense}, "gathered");
        expect((encoder_form){.qkv = QKV_BY_HEAD, .dense = (dense_form)dense}, "by head");
    }
}

Test(forms, scales)
{
    for (int scale = SCALE_DIV; scale <= SCALE_BOTH; scale++)
        expect((encoder_form){.scale = (scale_form)scale}, "scale");
}

Test(forms, masks)
{
    expect((encoder_form){.mask = MASK_WHERE}, "where");
    expect((encoder_form){.mask = MASK_INFINITE}, "infinite");
    expect((encoder_form){.mask = MASK_BEFORE_SCALE}, "before the scale");
    expect((encoder_form){.mask = MASK_NONE}, "none");
}

Test(forms, products)
{
    expect((encoder_form){.product = PRODUCT_EINSUM}, "Einsum");
    expect((encoder_form){.product = PRODUCT_EINSUM_IN_PLACE}, "Einsum in place");
}

Test(forms, tails)
{
    expect((encoder_form){.tail = TAIL_MEAN}, "mean");
    expect((encoder_form){.tail = TAIL_MAX}, "max");
    expect((encoder_form){.tail = TAIL_FIRST}, "first");
    expect((encoder_form){.tail = TAIL_CLASSES}, "classes");
    expect((encoder_form){.tail = TAIL_SPLIT_COLUMN}, "a column of classes, split off");
    expect((encoder_form){.tail = TAIL_GATHERED_COLUMN}, "a column of classes, gathered");
    expect((encoder_form){.tail = TAIL_MEAN_OF_ALL, .mask = MASK_NONE}, "mean of all");
}

Test(forms, projected_embeddings)
{
    expect((encoder_form){.projects = true}, "a projection");
    expect((encoder_form){.projects = true, .dense = DENSE_GEMM_TRANSPOSED}, "a projection, Gemm");
    expect((encoder_form){.projects = true, .norm = NORM_POW, .tail = TAIL_CLASSES}, "and classes");
}

Test(forms, all_at_once)
{
    expect((encoder_form){.norm = NORM_RECIPROCAL,
                          .activation = ACTIVATION_TANH_POW,
                          .dense = DENSE_GEMM,
                          .qkv = QKV_BY_HEAD,
                          .scale = SCALE_BOTH,
                          .mask = MASK_INFINITE,
                          .product = PRODUCT_EINSUM_IN_PLACE,
                          .tail = TAIL_MEAN},
           "all at once");
}

Test(refusals, masks)
{
    static const char words[] = "not a softmax over the keys that the mask keeps";
    expect_not((encoder_form){.mask = MASK_CAUSAL}, words);
    expect_not((encoder_form){.mask = MASK_AFTER_SOFTMAX}, words);
    expect_not((encoder_form){.mask = MASK_SMALL}, words);
    expect_not((encoder_form){.mask = MASK_OF_QUERIES}, words);
    expect_not((encoder_form){.mask = MASK_FROM_IDS}, "computed from the token ids");
    expect_not((encoder_form){.forgets_mask = true}, "mask");
    expect_not((encoder_form){.mask = MASK_NONE, .tail = TAIL_MEAN}, "mask");
}

Test(refusals, what_only_long_sequences_show)
{
    expect_not((encoder_form){.clips_positions = true}, "positions are not counted one by one");
    expect_not((encoder_form){.attends_in_window = true}, "depends on positions");
}

Test(refusals, layers)
{
    expect_not((encoder_form){.normalises_first = true}, "residual");
    expect_not((encoder_form){.adds_twice = true}, "residual");
    expect_not((encoder_form){.scales_unevenly = true}, "another layer");
    expect_not((encoder_form){.activation = ACTIVATION_SIGMOID}, "activation");
    expect_not((encoder_form){.activation = ACTIVATION_QUICK_GELU}, "activation");
}

Test(refusals, embeddings_and_tails)
{
    expect_not((encoder_form){.finds_types = true}, "ids");
    expect_not((encoder_form){.tail = TAIL_MEAN_OF_ALL}, "pooling");
    expect_not((encoder_form){.tail = TAIL_LAST}, "pooling");
    expect_not((encoder_form){.tail = TAIL_SOFTMAX}, "output \"output\"");
}

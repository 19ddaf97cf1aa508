/* The text that compilers are given: weights as arguments, conservative operators, s8 products.
 * That it computes the right numbers is tests/pjrt's to show. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "graph/stablehlo/emit.h"

#define K 64
#define N 48

static void set_type(graph *g, graph_value_index v, dtype type, int rank, const int64_t *dims)
{
    g->values[v].dtype = type;
    g->values[v].has_dtype = true;
    g->values[v].shape.rank = rank;
    for (int i = 0; i < rank; i++)
        g->values[v].shape.dims[i] = graph_dim_constant(dims[i]);
}

/* y = last(x . w + b), x [4,K], w [K,N], b [N]: specialised as it stands. With `is_transposed` the
 * weight is stored [N,K] and a node transposes it, as in Hugging Face's models. */
static graph *make_layer(graph_op last, bool is_transposed)
{
    graph *g = graph_create("dense");
    graph_dim dims[] = {graph_dim_constant(4), graph_dim_constant(K)};
    graph_value_index x = graph_add_input(g, "x", DTYPE_F32, 2, dims);
    float w[K * N], b[N];
    for (int i = 0; i < K * N; i++)
        w[i] = (float)(i % 17 - 8) / 16;
    for (int i = 0; i < N; i++)
        b[i] = (float)i;
    int64_t w_dims[] = {K, N}, b_dims[] = {N}, y_dims[] = {4, N}, stored_dims[] = {N, K};
    graph_value_index weight =
        graph_add_constant_f32(g, "w", 2, is_transposed ? stored_dims : w_dims, w);
    if (is_transposed) {
        weight = graph_add(g, GRAPH_OP_TRANSPOSE, 1, &weight, 0, NULL);
        set_type(g, weight, DTYPE_F32, 2, w_dims);
    }
    graph_value_index bias = graph_add_constant_f32(g, "b", 1, b_dims, b);
    graph_value_index product =
        graph_add(g, GRAPH_OP_MATMUL, 2, (graph_value_index[]){x, weight}, 0, NULL);
    graph_value_index sum =
        graph_add(g, GRAPH_OP_ADD, 2, (graph_value_index[]){product, bias}, 0, NULL);
    graph_value_index y = graph_add(g, last, 1, &sum, 0, NULL);
    set_type(g, product, DTYPE_F32, 2, y_dims);
    set_type(g, sum, DTYPE_F32, 2, y_dims);
    set_type(g, y, DTYPE_F32, 2, y_dims);
    graph_add_output(g, y, "y");
    return g;
}

static graph *make_dense(graph_op last)
{
    return make_layer(last, false);
}

static int count_of(const stablehlo_program *p, const char *words)
{
    int count = 0;
    for (const char *at = p->text; (at = strstr(at, words)) != NULL; at += strlen(words))
        count++;
    return count;
}

static void check_common(const stablehlo_program *p)
{
    cr_assert_eq(strlen(p->text), p->bytes);
    cr_assert_eq(count_of(p, "chlo."), 0);
    cr_assert_eq(count_of(p, "func.func public @main("), 1);
    cr_assert_eq(count_of(p, "stablehlo.dot_general"), 1);
    cr_assert_eq(p->output_count, 1);
    cr_assert_eq(p->dense_count, 1);
    cr_assert_float_eq(p->flops, 2.0 * 4 * K * N, 0.5);
    cr_assert_eq(p->arguments[0].input, 0);
}

Test(emit_stablehlo, fp32_takes_weights_as_arguments, .timeout = 300)
{
    graph *g = make_dense(GRAPH_OP_TANH);
    stablehlo_program p;
    cr_assert_eq(graph_emit_stablehlo(g, &(stablehlo_options){.precision = STABLEHLO_FP32}, &p),
                 STATUS_OK);
    check_common(&p);
    cr_assert_eq(p.argument_count, 2); /* x and w; b is short enough for the text */
    cr_assert_eq(p.arguments[1].transform, STABLEHLO_AS_IS);
    cr_assert_eq(count_of(&p, "bf16"), 0);
    cr_assert_eq(count_of(&p, "stablehlo.tanh"), 1);
    stablehlo_program_dispose(&p);
    graph_destroy(g);
}

Test(emit_stablehlo, bf16_multiplies_rounded_operands_and_adds_in_f32, .timeout = 300)
{
    graph *g = make_dense(GRAPH_OP_ERF);
    stablehlo_program p;
    cr_assert_eq(graph_emit_stablehlo(g, &(stablehlo_options){.precision = STABLEHLO_BF16}, &p),
                 STATUS_OK);
    check_common(&p);
    cr_assert_eq(p.arguments[1].dtype, DTYPE_BF16);
    cr_assert_eq(count_of(&p, "(tensor<4x64xbf16>, tensor<64x48xbf16>) -> tensor<4x48xf32>"), 1);
    cr_assert_eq(count_of(&p, "stablehlo.exponential"), 1); /* erf from what there is */
    stablehlo_program_dispose(&p);
    graph_destroy(g);
}

Test(emit_stablehlo, int8_scales_each_row_and_each_channel, .timeout = 300)
{
    graph *g = make_dense(GRAPH_OP_TANH);
    stablehlo_program p;
    cr_assert_eq(graph_emit_stablehlo(g, &(stablehlo_options){.precision = STABLEHLO_INT8}, &p),
                 STATUS_OK);
    check_common(&p);
    cr_assert_eq(p.dense_int8_count, 1);
    cr_assert_eq(count_of(&p, "(tensor<4x64xi8>, tensor<64x48xi8>) -> tensor<4x48xi32>"), 1);
    cr_assert_eq(p.argument_count, 3);
    arena a = {0};
    tensor s8, scales;
    cr_assert_eq(stablehlo_argument_data(&p.arguments[1], &a, &s8), STATUS_OK);
    cr_assert_eq(stablehlo_argument_data(&p.arguments[2], &a, &scales), STATUS_OK);
    cr_assert(s8.dtype == DTYPE_I8 && scales.dtype == DTYPE_F32 && scales.dims[0] == N);
    const float *w = p.arguments[1].constant->data;
    for (int n = 0; n < N; n++) {
        float scale = ((const float *)scales.data)[n];
        for (int k = 0; k < K; k++) {
            float back = (float)((const int8_t *)s8.data)[k * N + n] * scale;
            cr_assert_float_eq(back, w[k * N + n], scale * 0.5001f);
        }
    }
    arena_dispose(&a);
    stablehlo_program_dispose(&p);
    graph_destroy(g);
}

Test(emit_stablehlo, a_transposed_weight_is_multiplied_as_it_is_stored, .timeout = 300)
{
    static const struct {
        stablehlo_precision precision;
        int int8_count;
        const char *product;
    } table[] = {
        {STABLEHLO_FP32, 0, "(tensor<4x64xf32>, tensor<48x64xf32>) -> tensor<4x48xf32>"},
        {STABLEHLO_BF16, 0, "(tensor<4x64xbf16>, tensor<48x64xbf16>) -> tensor<4x48xf32>"},
        {STABLEHLO_INT8, 1, "(tensor<4x64xi8>, tensor<48x64xi8>) -> tensor<4x48xi32>"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        graph *g = make_layer(GRAPH_OP_TANH, true);
        stablehlo_program p;
        cr_assert_eq(
            graph_emit_stablehlo(g, &(stablehlo_options){.precision = table[i].precision}, &p),
            STATUS_OK);
        check_common(&p);
        cr_assert_eq(p.dense_int8_count, table[i].int8_count);
        cr_assert_eq(count_of(&p, table[i].product), 1, "%s", p.text);
        cr_assert_eq(count_of(&p, "stablehlo.transpose"), 0);
        stablehlo_program_dispose(&p);
        graph_destroy(g);
    }
}

Test(emit_stablehlo, a_transposed_weight_that_something_else_reads_is_made, .timeout = 300)
{
    graph *g = make_layer(GRAPH_OP_TANH, true);
    graph_add_output(g, g->nodes[0].outputs[0], "transposed");
    stablehlo_program p;
    cr_assert_eq(graph_emit_stablehlo(g, &(stablehlo_options){.precision = STABLEHLO_INT8}, &p),
                 STATUS_OK);
    cr_assert_eq(p.dense_int8_count, 1);
    cr_assert_eq(count_of(&p, "stablehlo.transpose"), 1);
    stablehlo_program_dispose(&p);
    graph_destroy(g);
}

Test(emit_stablehlo, an_operator_without_a_form_is_named, .timeout = 300)
{
    graph *g = make_dense(GRAPH_OP_NON_ZERO);
    stablehlo_program p;
    cr_assert_eq(graph_emit_stablehlo(g, &(stablehlo_options){.precision = STABLEHLO_FP32}, &p),
                 STATUS_UNSUPPORTED);
    cr_assert_not_null(strstr(status_message(), "NonZero"));
    graph_destroy(g);
}

/* The text that compilers are given: weights as arguments, conservative operators, s8 products.
 * That it computes the right numbers is tests/pjrt's to show. */
#include <criterion/criterion.h>
#include <math.h>
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

static tensor vector_of(float *data)
{
    return (tensor){.dtype = DTYPE_F32, .rank = 1, .dims = {K}, .data = data};
}

/* What the program computes for one row x: q = round(x * factors - offsets), the product in
 * integers, scales and shifts. */
static void check_static_row(const stablehlo_program *p, const tensor data[], const float *x,
                             const float *factors, const float *offsets)
{
    const tensor *s8 = NULL, *scales = NULL, *shifts = NULL;
    const float *w = NULL;
    for (int i = 1; i < p->argument_count; i++) {
        const stablehlo_argument *a = &p->arguments[i];
        if (a->transform == STABLEHLO_TO_S8)
            s8 = &data[i], w = a->constant->data;
        if (a->transform == STABLEHLO_TO_S8_SCALES)
            scales = &data[i];
        if (a->transform == STABLEHLO_TO_S8_SHIFTS)
            shifts = &data[i];
    }
    cr_assert(s8 != NULL && scales != NULL && shifts != NULL);
    for (int n = 0; n < N; n++) {
        double exact = 0, size = 0;
        int32_t sum = 0;
        for (int k = 0; k < K; k++) {
            float q = nearbyintf(x[k] * factors[k] - offsets[k]);
            cr_assert(fabsf(q) <= 127);
            sum += (int32_t)q * ((const int8_t *)s8->data)[k * N + n];
            exact += (double)x[k] * w[k * N + n];
            size += fabs((double)x[k] * w[k * N + n]);
        }
        double got =
            (double)sum * ((const float *)scales->data)[n] + ((const float *)shifts->data)[n];
        cr_assert_float_eq(got, exact, 0.01 * size, "%d: %g, not %g", n, got, exact);
    }
}

Test(emit_stablehlo, int8_with_static_scales_reduces_nothing, .timeout = 300)
{
    graph *g = make_dense(GRAPH_OP_TANH);
    float factors[K], offsets[K], x[K];
    const tensor vectors[] = {vector_of(factors), vector_of(offsets)};
    const quantise_channels channels[] = {{0}, {&vectors[0], &vectors[1]}};
    const stablehlo_options options = {
        .precision = STABLEHLO_BF16, .channels = channels, .channels_count = 2};
    graph_attribute number = graph_make_int(GRAPH_LINEAR_NUMBER, 1);
    g->nodes[0].attributes = &number;
    g->nodes[0].attribute_count = 1;
    stablehlo_program p;
    cr_assert_eq(graph_emit_stablehlo(g, &options, &p), STATUS_OK);
    check_common(&p);
    cr_assert(p.dense_int8_count == 1 && p.dense_static_count == 1);
    cr_assert_eq(count_of(&p, "(tensor<4x64xi8>, tensor<64x48xi8>) -> tensor<4x48xi32>"), 1);
    cr_assert_eq(count_of(&p, "stablehlo.abs"), 0);
    cr_assert_eq(count_of(&p, "stablehlo.reduce"), 0);
    /* The channels become known after the program. */
    for (int k = 0; k < K; k++) {
        factors[k] = k % 2 ? 20.0f : 300.0f;
        x[k] = (k % 2 ? 2.0f : 0.2f) + (float)(k % 5) / (k % 2 ? 1.0f : 20.0f);
        offsets[k] = 2 * factors[k] / (k % 2 ? 1.0f : 10.0f);
    }
    arena a = {0};
    tensor data[16];
    cr_assert_leq(p.argument_count, 16);
    for (int i = 1; i < p.argument_count; i++)
        cr_assert_eq(stablehlo_argument_data(&p.arguments[i], &a, &data[i]), STATUS_OK);
    check_static_row(&p, data, x, factors, offsets);
    arena_dispose(&a);
    stablehlo_program_dispose(&p);
    /* Another linear layer keeps the precision. */
    number = graph_make_int(GRAPH_LINEAR_NUMBER, 0);
    cr_assert_eq(graph_emit_stablehlo(g, &options, &p), STATUS_OK);
    cr_assert_eq(p.dense_int8_count, 0);
    cr_assert_eq(p.arguments[1].dtype, DTYPE_BF16);
    stablehlo_program_dispose(&p);
    g->nodes[0].attribute_count = 0;
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

Test(emit_stablehlo, a_transposed_weight_is_turned_before_it_is_uploaded, .timeout = 300)
{
    graph *g = make_layer(GRAPH_OP_TANH, true);
    stablehlo_program p;
    arena a = {0};
    tensor turned;
    const stablehlo_options o = {.precision = STABLEHLO_BF16, .are_weights_turned = true};
    cr_assert_eq(graph_emit_stablehlo(g, &o, &p), STATUS_OK);
    check_common(&p);
    cr_assert_eq(count_of(&p, "(tensor<4x64xbf16>, tensor<64x48xbf16>) -> tensor<4x48xf32>"), 1);
    const stablehlo_argument *w = &p.arguments[1];
    cr_assert_eq(stablehlo_argument_data(w, &a, &turned), STATUS_OK);
    cr_assert(turned.dims[0] == K && turned.dims[1] == N && turned.dtype == DTYPE_BF16);
    const float *stored = w->constant->data;
    for (int n = 0; n < N; n++)
        for (int k = 0; k < K; k++)
            cr_assert_eq(((const uint16_t *)turned.data)[k * N + n],
                         dtype_f32_to_bf16(stored[n * K + k]));
    arena_dispose(&a);
    stablehlo_program_dispose(&p);
    graph_destroy(g);
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

/* --- forms of what lies between the matrix multiplications --- */

static graph_value_index typed(graph *g, graph_value_index v, int rank, const int64_t *dims)
{
    set_type(g, v, DTYPE_F32, rank, dims);
    return v;
}

/* norm(gelu(x . w)), and softmax(x) times x, x [2,8,8]. */
static graph *make_block(void)
{
    graph *g = graph_create("block");
    graph_dim dims[] = {graph_dim_constant(2), graph_dim_constant(8), graph_dim_constant(8)};
    const int64_t whole[] = {2, 8, 8}, row[] = {8};
    graph_value_index x = graph_add_input(g, "x", DTYPE_F32, 3, dims);
    float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    graph_attribute approximate = graph_make_string("approximate", "none");
    graph_attribute axis = graph_make_int("axis", -1);
    graph_value_index y = typed(g, graph_add(g, GRAPH_OP_GELU, 1, &x, 1, &approximate), 3, whole);
    graph_value_index scale = graph_add_constant_f32(g, "s", 1, row, ones);
    graph_value_index norm_inputs[] = {y, scale};
    y = typed(g, graph_add(g, GRAPH_OP_LAYER_NORMALIZATION, 2, norm_inputs, 1, &axis), 3, whole);
    graph_add_output(g, y, "y");
    graph_value_index parts = typed(g, graph_add(g, GRAPH_OP_SOFTMAX, 1, &x, 1, &axis), 3, whole);
    graph_value_index product_inputs[] = {parts, x};
    graph_value_index z =
        typed(g, graph_add(g, GRAPH_OP_MATMUL, 2, product_inputs, 0, NULL), 3, whole);
    graph_add_output(g, z, "z");
    return g;
}

/* How often `words` is in the text of make_block() with these options. */
static int count_in_block(stablehlo_options options, const char *words)
{
    graph *g = make_block();
    stablehlo_program p;
    cr_assert_eq(graph_emit_stablehlo(g, &options, &p), STATUS_OK, "%s", status_message());
    int count = count_of(&p, words);
    stablehlo_program_dispose(&p);
    graph_destroy(g);
    return count;
}

Test(emit_stablehlo, forms_are_chosen_and_fp32_has_none, .timeout = 300)
{
    const stablehlo_options plain = {.precision = STABLEHLO_BF16};
    stablehlo_options o = plain;
    cr_assert_eq(count_in_block(plain, "stablehlo.tanh"), 0);
    o.gelu = STABLEHLO_GELU_TANH;
    cr_assert_eq(count_in_block(o, "stablehlo.tanh %"), 1);
    cr_assert_eq(count_in_block(o, "stablehlo.sign"), 0, "erf is gone");
    o.gelu = STABLEHLO_GELU_TANH_BF16;
    graph *g = make_block();
    stablehlo_program p;
    cr_assert_eq(graph_emit_stablehlo(g, &o, &p), STATUS_OK);
    const char *bent = strstr(p.text, "stablehlo.tanh");
    cr_assert_not_null(bent);
    cr_assert_eq(strncmp(strchr(bent, ':'), ": tensor<2x8x8xbf16>", 20), 0, "%.60s", bent);
    stablehlo_program_dispose(&p);
    graph_destroy(g);

    o = plain;
    int maxima = count_in_block(o, "stablehlo.maximum %");
    o.is_norm_one_pass = true;
    cr_assert_eq(count_in_block(o, "stablehlo.maximum %"), maxima + 1, "of the variance and 0");
    o = plain;
    o.is_softmax_late = true;
    const char *late = "stablehlo.divide";
    cr_assert_eq(count_in_block(o, late), count_in_block(plain, late));
    g = make_block();
    cr_assert_eq(graph_emit_stablehlo(g, &o, &p), STATUS_OK);
    cr_assert(strstr(strstr(p.text, "dot_general"), late) != NULL, "it divides after the product");
    stablehlo_program_dispose(&p);
    graph_destroy(g);

    const char *barrier = "stablehlo.optimization_barrier";
    cr_assert_eq(count_in_block(plain, barrier), 0);
    o = plain;
    o.is_gelu_apart = o.is_norm_apart = true;
    cr_assert_eq(count_in_block(o, barrier), 2);
    o = plain;
    o.is_stream_bf16 = true;
    cr_assert_gt(count_in_block(o, "xbf16>"), count_in_block(plain, "xbf16>"));

    stablehlo_options all = {.precision = STABLEHLO_FP32,
                             .gelu = STABLEHLO_GELU_TANH_BF16,
                             .is_norm_one_pass = true,
                             .is_softmax_late = true,
                             .is_stream_bf16 = true,
                             .is_gelu_apart = true,
                             .is_norm_apart = true};
    cr_assert_eq(count_in_block(all, "bf16"), 0);
    cr_assert_eq(count_in_block(all, "stablehlo.tanh"), 0);
    cr_assert_eq(count_in_block(all, barrier), 0);
}

/* x [4,8] normalised, that times a weight, and the two added; `is_by_product` as the builder of an
 * encoder asks for it. */
static graph *make_normalised_layer(bool is_by_product)
{
    graph *g = graph_create("norm");
    graph_dim dims[] = {graph_dim_constant(4), graph_dim_constant(8)};
    const int64_t whole[] = {4, 8}, row[] = {8}, square[] = {8, 8};
    float ones[64];
    for (int i = 0; i < 64; i++)
        ones[i] = 1;
    graph_value_index x = graph_add_input(g, "x", DTYPE_F32, 2, dims);
    graph_attribute attributes[] = {graph_make_int("axis", -1),
                                    graph_make_int("sums_by_product", 1)};
    graph_value_index inputs[] = {x, graph_add_constant_f32(g, "s", 1, row, ones)};
    x = typed(g,
              graph_add(g, GRAPH_OP_LAYER_NORMALIZATION, 2, inputs, 1 + is_by_product, attributes),
              2, whole);
    graph_value_index weight[] = {x, graph_add_constant_f32(g, "w", 2, square, ones)};
    graph_value_index y = typed(g, graph_add(g, GRAPH_OP_GEMM, 2, weight, 0, NULL), 2, whole);
    y = typed(g, graph_add(g, GRAPH_OP_ADD, 2, (graph_value_index[]){x, y}, 0, NULL), 2, whole);
    graph_add_output(g, y, "y");
    return g;
}

static int count_in_normalised_layer(stablehlo_options options, bool is_by_product,
                                     const char *words)
{
    graph *g = make_normalised_layer(is_by_product);
    stablehlo_program p;
    cr_assert_eq(graph_emit_stablehlo(g, &options, &p), STATUS_OK, "%s", status_message());
    int count = count_of(&p, words);
    stablehlo_program_dispose(&p);
    graph_destroy(g);
    return count;
}

Test(emit_stablehlo, sums_of_a_normalisation_are_products_where_asked, .timeout = 300)
{
    const stablehlo_options bf16 = {.precision = STABLEHLO_BF16, .is_norm_one_pass = true};
    const stablehlo_options fp32 = {.precision = STABLEHLO_FP32};
    const char *sum = "stablehlo.reduce", *product = "(tensor<4x8xbf16>, tensor<8x128xbf16>)";
    cr_assert_eq(count_in_normalised_layer(bf16, false, sum), 2);
    cr_assert_eq(count_in_normalised_layer(bf16, false, product), 0);
    cr_assert_eq(count_in_normalised_layer(bf16, true, sum), 0);
    cr_assert_eq(count_in_normalised_layer(bf16, true, product), 2);
    cr_assert_eq(count_in_normalised_layer(fp32, true, sum), 2);
    cr_assert_eq(count_in_normalised_layer(fp32, true, "bf16"), 0);
}

Test(emit_stablehlo, a_norm_of_one_layer_and_a_residual_can_be_kept, .timeout = 300)
{
    stablehlo_options o = {.precision = STABLEHLO_BF16, .is_norm_kept = true};
    const char *any = "optimization_barrier";
    cr_assert_eq(count_in_normalised_layer(o, false, any), 1);
    cr_assert_eq(count_in_block(o, any), 0, "a result of the graph is computed once anyway");
    graph *g = make_normalised_layer(false);
    stablehlo_program p;
    o.is_stream_bf16 = true;
    cr_assert_eq(graph_emit_stablehlo(g, &o, &p), STATUS_OK);
    const char *kept = strchr(strstr(p.text, any), ':');
    cr_assert_eq(strncmp(kept, ": tensor<4x8xbf16>", 18), 0, "%.40s", kept);
    stablehlo_program_dispose(&p);
    graph_destroy(g);
    o.precision = STABLEHLO_FP32;
    cr_assert_eq(count_in_normalised_layer(o, false, any), 0);
}

/* x "abc", y "adc" to "out", as one product. */
static status emit_product_as(const char *equation, bool is_kept, stablehlo_precision precision,
                              const int64_t *result, stablehlo_program *out)
{
    graph *g = graph_create("einsum");
    graph_dim x_dims[] = {graph_dim_constant(2), graph_dim_constant(3), graph_dim_constant(4)};
    graph_dim y_dims[] = {graph_dim_constant(2), graph_dim_constant(5), graph_dim_constant(4)};
    graph_value_index inputs[] = {graph_add_input(g, "x", DTYPE_F32, 3, x_dims),
                                  graph_add_input(g, "y", DTYPE_F32, 3, y_dims)};
    graph_attribute a[] = {graph_make_string("equation", equation), graph_make_int("is_kept", 1)};
    graph_value_index z =
        typed(g, graph_add(g, GRAPH_OP_EINSUM, 2, inputs, 1 + is_kept, a), 3, result);
    graph_add_output(g, z, "z");
    status s = graph_emit_stablehlo(g, &(stablehlo_options){.precision = precision}, out);
    graph_destroy(g);
    return s;
}

static status emit_product(const char *equation, const int64_t *result, stablehlo_program *out)
{
    return emit_product_as(equation, false, STABLEHLO_FP32, result, out);
}

Test(emit_stablehlo, a_product_can_be_kept_apart_from_what_reads_it, .timeout = 300)
{
    const int64_t dims[] = {2, 3, 5};
    stablehlo_program p;
    cr_assert_eq(emit_product_as("abc,adc->abd", true, STABLEHLO_BF16, dims, &p), STATUS_OK);
    cr_assert_eq(count_of(&p, "optimization_barrier"), 1);
    stablehlo_program_dispose(&p);
    cr_assert_eq(emit_product_as("abc,adc->abd", false, STABLEHLO_BF16, dims, &p), STATUS_OK);
    cr_assert_eq(count_of(&p, "optimization_barrier"), 0);
    stablehlo_program_dispose(&p);
}

Test(emit_stablehlo, an_einsum_of_two_operands_is_one_product, .timeout = 300)
{
    stablehlo_program p;
    cr_assert_eq(emit_product("abc,adc->abd", (int64_t[]){2, 3, 5}, &p), STATUS_OK);
    cr_assert_eq(count_of(&p, "batching_dims = [0] x [0], contracting_dims = [2] x [2]"), 1);
    cr_assert_eq(count_of(&p, "stablehlo.transpose"), 0);
    stablehlo_program_dispose(&p);
    cr_assert_eq(emit_product("abc,adc->dba", (int64_t[]){5, 3, 2}, &p), STATUS_OK);
    cr_assert_eq(count_of(&p, "stablehlo.transpose"), 1);
    cr_assert_float_eq(p.flops, 2.0 * 2 * 3 * 4 * 5, 0.5);
    stablehlo_program_dispose(&p);
    cr_assert_eq(emit_product("abc,ade->abd", (int64_t[]){2, 3, 5}, &p), STATUS_UNSUPPORTED);
    cr_assert_eq(emit_product("a...,a...->abd", (int64_t[]){2, 3, 5}, &p), STATUS_UNSUPPORTED);
}

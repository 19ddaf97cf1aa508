/* Products with matrices, and what their dims leave idle on a systolic array. */
#include <criterion/criterion.h>

#include "graph/dense_layers.h"

static graph_value_index add_matrix(graph *g, int64_t rows, int64_t columns)
{
    float data[64] = {0};
    cr_assert(rows * columns <= 64);
    return graph_add_constant_f32(g, NULL, 2, (int64_t[]){rows, columns}, data);
}

Test(dense_layers, rows_are_all_leading_dims, .timeout = 300)
{
    graph *g = graph_create("g");
    graph_dim dims[] = {graph_dim_constant(2), graph_dim_constant(5), graph_dim_constant(4)};
    graph_value_index x = graph_add_input(g, "x", DTYPE_F32, 3, dims);
    graph_value_index product[] = {x, add_matrix(g, 4, 3)};
    graph_add_output(g, graph_add(g, GRAPH_OP_MATMUL, 2, product, 0, NULL), "y");
    graph_value_index batched[] = {x, x}; /* no matrix: attention's own products */
    graph_add_output(g, graph_add(g, GRAPH_OP_MATMUL, 2, batched, 0, NULL), "z");
    graph_value_index flat = graph_add_input(g, "f", DTYPE_F32, 2, dims);
    graph_value_index gemm[] = {flat, add_matrix(g, 6, 5)};
    graph_attribute transposed = graph_make_int("transB", 1);
    graph_add_output(g, graph_add(g, GRAPH_OP_GEMM, 2, gemm, 1, &transposed), "w");
    graph_dense_layer found[2];
    cr_assert_eq(graph_find_dense_layers(g, found, 2), 2);
    cr_assert(found[0].rows == 10 && found[0].depth == 4 && found[0].width == 3);
    cr_assert(found[1].rows == 2 && found[1].depth == 5 && found[1].width == 6);
    cr_assert_eq(graph_find_dense_layers(g, found, 1), 2);
    graph_destroy(g);
}

Test(dense_layers, waste_is_what_padding_adds, .timeout = 300)
{
    graph_dense_layer l = {.rows = 128, .depth = 384, .width = 1536};
    cr_assert_float_eq(graph_dense_waste(&l, 128), 0, 1e-12);
    /* 128 of 256 rows, 384 of 512. */
    cr_assert_float_eq(graph_dense_waste(&l, 256), 1 - 0.5 * 0.75, 1e-12);
    l.rows = 16;
    cr_assert_float_eq(graph_dense_waste(&l, 128), 0.875, 1e-12);
}

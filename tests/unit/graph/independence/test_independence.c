#include <criterion/criterion.h>
#include <string.h>

#include "devices/cpu/evaluate.h"
#include "graph/independence/independence.h"

static const graph_dim batch = {.batch = 1}, sequence = {.sequence = 1};

static graph_value_index apply(graph *g, graph_op op, graph_value_index a, graph_value_index b)
{
    return graph_add(g, op, b == GRAPH_NO_VALUE ? 1 : 2, (graph_value_index[]){a, b}, 0, NULL);
}

static graph_value_index list(graph *g, int64_t n)
{
    return graph_add_constant_i64(g, NULL, 1, (int64_t[]){1}, &n);
}

static graph_value_index add_x(graph *g)
{
    return graph_add_input(g, "x", DTYPE_F32, 3,
                           (graph_dim[]){batch, sequence, graph_dim_constant(8)});
}

static graph_independence examine(graph *g, int64_t rows)
{
    graph_independence found = {0};
    cr_assert_eq(graph_examine_independence(g, rows, 5, NULL, cpu_evaluate_node, &found), STATUS_OK,
                 "%s", status_message());
    return found;
}

Test(independence, names_the_node_that_mixes_rows)
{
    char text[512];
    graph *g = graph_create("test");
    graph_value_index x = add_x(g), first = list(g, 0);
    graph_value_index most = graph_add_value(g, "most");
    graph_add_node_to(g, GRAPH_OP_REDUCE_MAX, "peak", 2, (graph_value_index[]){x, first}, 1, &most,
                      0, NULL);
    graph_add_output(g, apply(g, GRAPH_OP_SUB, x, most), "y");
    graph_independence found = examine(g, 2);
    cr_expect_eq(found.verdict, GRAPH_MIXED);
    cr_expect_str_eq(found.node, "peak");
    cr_expect_eq(found.op, GRAPH_OP_REDUCE_MAX);
    cr_expect_str_eq(graph_independence_text(text, &found),
                     "node \"peak\" (ReduceMax) reduces over the rows");
    graph_destroy(g);
}

Test(independence, what_no_output_needs_does_not_count)
{
    char text[512];
    graph *g = graph_create("test");
    graph_value_index x = add_x(g);
    apply(g, GRAPH_OP_REDUCE_SUM, x, list(g, 0));
    graph_add_output(g, apply(g, GRAPH_OP_RELU, x, GRAPH_NO_VALUE), "y");
    graph_independence found = examine(g, 3);
    cr_expect_eq(found.verdict, GRAPH_INDEPENDENT);
    cr_expect_str_eq(graph_independence_text(text, &found), "");
    graph_destroy(g);
}

/* scikit-learn's converter leaves such remains. */
Test(independence, what_no_output_needs_may_lack_shapes)
{
    graph *g = graph_create("test");
    graph_value_index x = add_x(g), shape = apply(g, GRAPH_OP_SHAPE, x, GRAPH_NO_VALUE);
    graph_value_index rows = apply(g, GRAPH_OP_GATHER, shape, list(g, 0));
    graph_attribute first = graph_make_int("axis", 0);
    graph_add(g, GRAPH_OP_CONCAT, 2, (graph_value_index[]){rows, list(g, -1)}, 1, &first);
    graph_add_output(g, apply(g, GRAPH_OP_RELU, x, GRAPH_NO_VALUE), "y");
    cr_expect_eq(examine(g, 3).verdict, GRAPH_INDEPENDENT);
    graph_destroy(g);
}

Test(independence, an_output_must_be_rows)
{
    graph *g = graph_create("test");
    graph_value_index x = add_x(g);
    int64_t perm[] = {1, 0, 2};
    graph_attribute a = graph_make_ints(g, "perm", 3, perm);
    graph_add_output(g, graph_add(g, GRAPH_OP_TRANSPOSE, 1, &x, 1, &a), "y");
    graph_independence found = examine(g, 2);
    cr_expect_eq(found.verdict, GRAPH_UNDECIDED);
    graph_destroy(g);
}

Test(independence, an_input_must_be_rows)
{
    graph *g = graph_create("test");
    graph_value_index x = add_x(g), scale = graph_add_input(g, "scale", DTYPE_F32, 0, NULL);
    graph_add_output(g, apply(g, GRAPH_OP_MUL, x, scale), "y");
    graph_independence found = examine(g, 2);
    cr_expect_eq(found.verdict, GRAPH_UNDECIDED);
    cr_expect_null(found.node);
    graph_destroy(g);
}

/* A static size that happens to be the number of rows. */
Test(independence, a_size_of_the_graph_is_no_number_of_rows)
{
    graph *g = graph_create("test");
    graph_value_index x = graph_add_input(g, "x", DTYPE_F32, 1, (graph_dim[]){batch});
    graph_value_index three =
        graph_add_constant_f32(g, NULL, 1, (int64_t[]){3}, (float[]){1, 2, 3});
    graph_add_output(g, apply(g, GRAPH_OP_ADD, x, three), "y");
    cr_expect_eq(examine(g, 3).verdict, GRAPH_MIXED);
    graph_destroy(g);
}

Test(independence, too_many_rows_for_the_graph_are_an_error)
{
    graph *g = graph_create("test");
    graph_value_index x = add_x(g);
    int64_t dims[] = {1, -1, 8};
    graph_value_index to = graph_add_constant_i64(g, NULL, 1, (int64_t[]){3}, dims);
    graph_value_index one = apply(g, GRAPH_OP_SQUEEZE, x, list(g, 0));
    graph_add_output(g, apply(g, GRAPH_OP_RESHAPE, one, to), "y");
    graph_independence found;
    cr_expect_neq(graph_examine_independence(g, 2, 5, NULL, cpu_evaluate_node, &found), STATUS_OK);
    graph_destroy(g);
}

static graph_independence examine_tokens(graph *g)
{
    graph_independence found = {0};
    cr_assert_eq(graph_examine_tokens(g, 5, NULL, cpu_evaluate_node, &found), STATUS_OK, "%s",
                 status_message());
    return found;
}

Test(independence, tokens_of_a_row)
{
    char text[512];
    graph *g = graph_create("test");
    graph_value_index x = add_x(g);
    graph_value_index w =
        graph_add_constant_f32(g, NULL, 2, (int64_t[]){8, 1}, (float[]){1, 2, 3, 4, 5, 6, 7, 8});
    graph_add_output(g, apply(g, GRAPH_OP_MATMUL, x, w), "y");
    cr_expect_eq(examine_tokens(g).verdict, GRAPH_INDEPENDENT);
    graph_value_index most = graph_add_value(g, "most");
    graph_add_node_to(g, GRAPH_OP_REDUCE_MAX, "pool", 2, (graph_value_index[]){x, list(g, 1)}, 1,
                      &most, 0, NULL);
    graph_add_output(g, most, "z");
    graph_independence found = examine_tokens(g);
    cr_expect_eq(found.verdict, GRAPH_MIXED);
    cr_expect_str_eq(graph_independence_text(text, &found),
                     "node \"pool\" (ReduceMax) reduces over the tokens");
    graph_destroy(g);
}

/* A position is the token's number: another one in a longer row. */
Test(independence, positions_of_tokens_do_not_move)
{
    graph *g = graph_create("test");
    graph_value_index x = add_x(g), shape = apply(g, GRAPH_OP_SHAPE, x, GRAPH_NO_VALUE);
    graph_value_index zeros = apply(g, GRAPH_OP_CONSTANT_OF_SHAPE, shape, GRAPH_NO_VALUE);
    graph_add_output(g, apply(g, GRAPH_OP_ADD, x, zeros), "y");
    cr_expect_eq(examine_tokens(g).verdict, GRAPH_INDEPENDENT);
    int64_t one = 1;
    graph_value_index axis = graph_add_constant_i64(g, NULL, 0, NULL, &one);
    graph_value_index ones = apply(g, GRAPH_OP_COS, zeros, GRAPH_NO_VALUE);
    graph_value_index positions = apply(g, GRAPH_OP_CUM_SUM, ones, axis);
    graph_add_output(g, apply(g, GRAPH_OP_ADD, x, positions), "z");
    cr_expect_eq(examine_tokens(g).verdict, GRAPH_MIXED);
    graph_destroy(g);
}

#include <criterion/criterion.h>

#include "tests/unit/devices/cpu/case.h"

/* The operators whose work grows faster than their tensors end when their load is cancelled. */

static void expect_cancelled(cpu_case *c, graph_op op)
{
    cancel_token cancel = {0};
    c->cancel = &cancel;
    cr_expect_eq(cpu_case_run(c, op, 1), STATUS_OK, "%s: %s", graph_op_name(op), status_message());
    cancel_request(&cancel);
    cr_expect_eq(cpu_case_run(c, op, 1), STATUS_CANCELLED, "%s", graph_op_name(op));
    cpu_case_dispose(c);
}

static void expect_pair_cancelled(graph_op op, dtype type, const int64_t *a, const int64_t *b,
                                  int64_t groups)
{
    cpu_case c = {.attributes = {graph_make_int("group", groups)}, .attribute_count = 1};
    cpu_case_random(&c, type, a);
    cpu_case_random(&c, type, b);
    expect_cancelled(&c, op);
}

Test(evaluate, matrix_multiplications_end_when_they_are_cancelled)
{
    expect_pair_cancelled(GRAPH_OP_MATMUL, DTYPE_F32, DIMS(2, 3), DIMS(3, 4), 1);
    expect_pair_cancelled(GRAPH_OP_MATMUL, DTYPE_F64, DIMS(2, 3), DIMS(3, 4), 1);
    expect_pair_cancelled(GRAPH_OP_MATMUL_INTEGER, DTYPE_U8, DIMS(2, 3), DIMS(3, 4), 1);
    expect_pair_cancelled(GRAPH_OP_GEMM, DTYPE_F32, DIMS(2, 3), DIMS(3, 4), 1);
}

Test(evaluate, convolutions_end_when_they_are_cancelled)
{
    expect_pair_cancelled(GRAPH_OP_CONV, DTYPE_F32, DIMS(1, 2, 5, 5), DIMS(2, 2, 3, 3), 1);
    expect_pair_cancelled(GRAPH_OP_CONV, DTYPE_F32, DIMS(1, 2, 5, 5), DIMS(2, 1, 3, 3), 2);
    expect_pair_cancelled(GRAPH_OP_CONV_INTEGER, DTYPE_U8, DIMS(1, 2, 5, 5), DIMS(2, 2, 3, 3), 1);
    expect_pair_cancelled(GRAPH_OP_CONV_TRANSPOSE, DTYPE_F32, DIMS(1, 2, 5, 5), DIMS(2, 2, 3, 3),
                          1);
}

Test(evaluate, sums_over_many_labels_end_when_they_are_cancelled)
{
    cpu_case c = {.attributes = {graph_make_string("equation", "ab,cd->")}, .attribute_count = 1};
    cpu_case_random(&c, DTYPE_F32, DIMS(64, 64));
    cpu_case_random(&c, DTYPE_F32, DIMS(64, 64));
    expect_cancelled(&c, GRAPH_OP_EINSUM);
}

Test(evaluate, windows_end_when_they_are_cancelled)
{
    cpu_case pool = {.attributes = {{.name = "kernel_shape",
                                     .kind = GRAPH_ATTRIBUTE_INTS,
                                     .count = 2,
                                     .ints = (int64_t[]){3, 3}}},
                     .attribute_count = 1};
    cpu_case_random(&pool, DTYPE_F32, DIMS(1, 2, 5, 5));
    expect_cancelled(&pool, GRAPH_OP_AVERAGE_POOL);

    cpu_case resize = {.attributes = {graph_make_string("mode", "cubic")}, .attribute_count = 1};
    cpu_case_random(&resize, DTYPE_F32, DIMS(1, 1, 5, 5));
    cpu_case_input(&resize, DTYPE_F32, DIMS(0), NULL);
    cpu_case_input(&resize, DTYPE_F32, DIMS(4), (const double[]){1, 1, 2, 2});
    expect_cancelled(&resize, GRAPH_OP_RESIZE);
}

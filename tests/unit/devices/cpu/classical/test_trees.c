/* penstock.Trees on trees drawn by hand. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/unit/devices/cpu/case.h"

enum { LEQ, LT, GTE, GT, EQ, NEQ, MISSING = 8 };

/* Adds a node of NODE_INTS ints, as graph/onnx/rewrite/forest.h has them. */
static void set_node(double *ints, int what, int column, double split, int where_true,
                     int where_false)
{
    int32_t halves[2];
    memcpy(halves, &split, sizeof halves);
    const double all[] = {what | column << 4, where_true, where_false, halves[0], halves[1]};
    memcpy(ints, all, sizeof all);
}

/* One node over two leaves of 10 and 20, at column 1. */
static void begin(cpu_case *c, dtype type, const double *x, int rows, int what, double split)
{
    double ints[5];
    set_node(ints, what, 1, split, ~0, ~1);
    cpu_case_input(c, type, DIMS(rows, 2), x);
    cpu_case_input(c, DTYPE_I32, DIMS(1, 5), ints);
    cpu_case_input(c, DTYPE_I32, DIMS(3), (double[]){0, 1, 2});
    cpu_case_input(c, DTYPE_I32, DIMS(2), (double[]){0, 0});
    cpu_case_input(c, DTYPE_F32, DIMS(2), (double[]){10, 20});
    cpu_case_input(c, DTYPE_I32, DIMS(1), (double[]){0});
}

Test(cpu_trees, a_node_compares_in_its_own_way)
{
    static const double expected[6][3] = {{10, 10, 20}, {10, 20, 20}, {20, 10, 10},
                                          {20, 20, 10}, {20, 10, 20}, {10, 20, 10}};
    for (int mode = LEQ; mode <= NEQ; mode++)
        for (int type = 0; type < 3; type++) {
            cpu_case c = {0};
            begin(&c, (dtype[]){DTYPE_F32, DTYPE_F64, DTYPE_I64}[type],
                  (double[]){9, 1, 9, 2, 9, 3}, 3, mode, 2);
            cr_assert_eq(cpu_case_run(&c, GRAPH_OP_TREES, 1), STATUS_OK);
            cr_assert_eq(c.outputs[0].dtype, type == 1 ? DTYPE_F64 : DTYPE_F32);
            for (int row = 0; row < 3; row++)
                cr_assert_eq(cpu_case_get(&c.outputs[0], row), expected[mode][row]);
            cpu_case_dispose(&c);
        }
}

Test(cpu_trees, a_number_that_is_missing_goes_where_the_node_says)
{
    for (int missing = 0; missing < 2; missing++) {
        cpu_case c = {0};
        begin(&c, DTYPE_F32, (double[]){1, NAN}, 1, GT | (missing ? MISSING : 0), 2);
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_TREES, 1), STATUS_OK);
        cr_assert_eq(cpu_case_get(&c.outputs[0], 0), missing ? 10 : 20);
        cpu_case_dispose(&c);
    }
}

/* Two trees of two targets: a branch below a branch, and a leaf alone with two weights. */
Test(cpu_trees, leaves_are_gathered_by_target)
{
    static const struct {
        const char *aggregate;
        double expected[6];
    } cases[] = {{"SUM", {-3 + 5, 7, 5 + 2, 7, 5, 7 + 4}},
                 {"MIN", {-3, 7, 2, 7, 5, 4}},
                 {"MAX", {5, 7, 5, 7, 5, 7}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double ints[10];
        set_node(ints, LEQ, 0, 0.5, 1, ~2);
        set_node(ints + 5, LEQ, 1, 0.5, ~0, ~1);
        cpu_case c = {.attributes = {graph_make_string("aggregate", cases[i].aggregate),
                                     graph_make_int("targets", 2), graph_make_int("columns", 2)},
                      .attribute_count = 3};
        cpu_case_input(&c, DTYPE_F32, DIMS(3, 2), (double[]){0, 0, 0, 1, 1, 0});
        cpu_case_input(&c, DTYPE_I32, DIMS(2, 5), ints);
        cpu_case_input(&c, DTYPE_I32, DIMS(5), (double[]){0, 1, 2, 3, 5});
        cpu_case_input(&c, DTYPE_I32, DIMS(5), (double[]){0, 0, 1, 0, 1});
        cpu_case_input(&c, DTYPE_F32, DIMS(5), (double[]){-3, 2, 4, 5, 7});
        cpu_case_input(&c, DTYPE_I32, DIMS(2), (double[]){0, ~3});
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_TREES, 1), STATUS_OK);
        for (int k = 0; k < 6; k++)
            cr_assert_eq(cpu_case_get(&c.outputs[0], k), cases[i].expected[k], "%s %d",
                         cases[i].aggregate, k);
        cpu_case_dispose(&c);
    }
}

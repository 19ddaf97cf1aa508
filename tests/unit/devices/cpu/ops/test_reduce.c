/* Reductions against plain loops in double. */
#include <criterion/criterion.h>
#include <math.h>

#include "tests/unit/devices/cpu/case.h"

Test(cpu_reduce, reduce_mean_over_inner_and_outer_axes)
{
    for (int64_t axis = 0; axis < 3; axis++) {
        cpu_case c = {.attributes = {graph_make_int("keepdims", 0)}, .attribute_count = 1};
        cpu_case_random(&c, DTYPE_F32, DIMS(4, 11, 300));
        cpu_case_input(&c, DTYPE_I64, DIMS(1), (double[]){(double)axis});
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_REDUCE_MEAN, 1), STATUS_OK);
        const int64_t dims[] = {4, 11, 300}, strides[] = {3300, 300, 1};
        int64_t inner = strides[axis], n = dims[axis];
        for (int64_t i = 0; i < tensor_count(&c.outputs[0]); i++) {
            double sum = 0;
            for (int64_t k = 0; k < n; k++)
                sum += cpu_case_get(&c.inputs[0], (i / inner * n + k) * inner + i % inner);
            cpu_case_expect_near(cpu_case_get(&c.outputs[0], i), sum / (double)n, 1e-6, i);
        }
        cpu_case_dispose(&c);
    }
}

/* Every kind, along neighbours and beside them, in rows of any length. */
Test(cpu_reduce, sums_squares_and_extremes_along_every_axis)
{
    static const graph_op ops[] = {GRAPH_OP_REDUCE_SUM, GRAPH_OP_REDUCE_SUM_SQUARE,
                                   GRAPH_OP_REDUCE_MAX, GRAPH_OP_REDUCE_MIN, GRAPH_OP_REDUCE_L2};
    static const int64_t shapes[][3] = {{5, 70, 300}, {3, 40, 3}, {600, 2, 33}};
    for (int turn = 0; turn < 45; turn++) {
        const int64_t *dims = shapes[turn / 15], axis = turn % 3;
        graph_op op = ops[turn / 3 % 5];
        const int64_t strides[] = {dims[1] * dims[2], dims[2], 1};
        cpu_case c = {.attributes = {graph_make_int("keepdims", 0)}, .attribute_count = 1};
        cpu_case_random(&c, DTYPE_F32, DIMS(dims[0], dims[1], dims[2]));
        cpu_case_input(&c, DTYPE_I64, DIMS(1), (double[]){(double)axis});
        cr_assert_eq(cpu_case_run(&c, op, 1), STATUS_OK);
        int64_t inner = strides[axis], n = dims[axis];
        for (int64_t i = 0; i < tensor_count(&c.outputs[0]); i++) {
            double sum = 0, low = INFINITY, high = -INFINITY, squares = 0;
            for (int64_t k = 0; k < n; k++) {
                double x = cpu_case_get(&c.inputs[0], (i / inner * n + k) * inner + i % inner);
                sum += x;
                squares += x * x;
                low = x < low ? x : low;
                high = x > high ? x : high;
            }
            double expected = op == GRAPH_OP_REDUCE_SUM          ? sum
                              : op == GRAPH_OP_REDUCE_SUM_SQUARE ? squares
                              : op == GRAPH_OP_REDUCE_MAX        ? high
                              : op == GRAPH_OP_REDUCE_MIN        ? low
                                                                 : sqrt(squares);
            cpu_case_expect_near(cpu_case_get(&c.outputs[0], i), expected, 1e-3, i);
        }
        cpu_case_dispose(&c);
    }
}

Test(cpu_reduce, logarithms_of_sums_of_exponentials)
{
    for (int64_t axis = 0; axis < 2; axis++) {
        cpu_case c = {.attributes = {graph_make_int("keepdims", 0)}, .attribute_count = 1};
        cpu_case_random(&c, DTYPE_F32, DIMS(30, 40));
        cpu_case_input(&c, DTYPE_I64, DIMS(1), (double[]){(double)axis});
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_REDUCE_LOG_SUM_EXP, 1), STATUS_OK);
        int64_t n = axis ? 40 : 30, inner = axis ? 1 : 40;
        for (int64_t i = 0; i < tensor_count(&c.outputs[0]); i++) {
            double sum = 0;
            for (int64_t k = 0; k < n; k++)
                sum += exp(cpu_case_get(&c.inputs[0], axis ? i * n + k : k * inner + i));
            cpu_case_expect_near(cpu_case_get(&c.outputs[0], i), log(sum), 1e-5, i);
        }
        cpu_case_dispose(&c);
    }
}

/* The bits of an output are the same whatever stands beside it. */
Test(cpu_reduce, outputs_do_not_depend_on_their_neighbours)
{
    float alone[2];
    for (int count = 1; count <= 40; count += 39) {
        cpu_case c = {.attributes = {graph_make_int("keepdims", 0)}, .attribute_count = 1};
        tensor *x = cpu_case_random(&c, DTYPE_F32, DIMS(count, 9));
        for (int i = 0; i < 9; i++)
            ((float *)x->data)[i] = 1.0f / (float)(i + 3);
        cpu_case_input(&c, DTYPE_I64, DIMS(1), (double[]){1});
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_REDUCE_SUM, 1), STATUS_OK);
        alone[count > 1] = ((float *)c.outputs[0].data)[0];
        cpu_case_dispose(&c);
    }
    cr_expect_eq(alone[0], alone[1]);
}

/* NaN wins, then the first of equals, or the last where asked for. */
Test(cpu_reduce, places_of_extremes)
{
    for (int turn = 0; turn < 8; turn++) {
        bool is_last = turn & 1, is_beside = turn & 2;
        double numbers[] = {1, 5, 3, 5, turn & 4 ? (double)NAN : 2, 5, 0, (double)NAN};
        int64_t count = turn & 4 ? 8 : 7;
        cpu_case c = {
            .attributes = {graph_make_int("axis", 0), graph_make_int("select_last_index", is_last)},
            .attribute_count = 2};
        double both[16];
        for (int i = 0; i < 16; i++)
            both[i] = numbers[i / 2];
        cpu_case_input(&c, DTYPE_F32, is_beside ? DIMS(count, 2) : DIMS(count),
                       is_beside ? both : numbers);
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_ARG_MAX, 1), STATUS_OK);
        for (int64_t i = 0; i < tensor_count(&c.outputs[0]); i++)
            cr_expect_eq(((int64_t *)c.outputs[0].data)[i],
                         turn & 4  ? 4
                         : is_last ? 5
                                   : 1,
                         "turn %d", turn);
        cpu_case_dispose(&c);
    }
}

Test(cpu_reduce, running_sums_along_every_axis)
{
    static const int64_t dims[] = {3, 20, 300}, strides[] = {6000, 300, 1};
    for (int turn = 0; turn < 12; turn++) {
        int64_t axis = turn % 3, inner = strides[axis], n = dims[axis];
        bool is_exclusive = turn / 3 & 1, is_reverse = turn / 6 & 1;
        cpu_case c = {.attributes = {graph_make_int("exclusive", is_exclusive),
                                     graph_make_int("reverse", is_reverse)},
                      .attribute_count = 2};
        cpu_case_random(&c, DTYPE_F32, DIMS(3, 20, 300));
        cpu_case_input(&c, DTYPE_I64, DIMS(), (double[]){(double)axis});
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_CUM_SUM, 1), STATUS_OK);
        for (int64_t i = 0; i < tensor_count(&c.outputs[0]); i++) {
            int64_t place = i / inner % n, first = i - place * inner;
            int64_t from = is_reverse ? place + is_exclusive : 0;
            int64_t end = is_reverse ? n : place + !is_exclusive;
            double sum = 0;
            for (int64_t k = from; k < end; k++)
                sum += cpu_case_get(&c.inputs[0], first + k * inner);
            cpu_case_expect_near(cpu_case_get(&c.outputs[0], i), sum, 1e-5, i);
        }
        cpu_case_dispose(&c);
    }
}

/* The largest or smallest few, in order; the first of equals first. */
Test(cpu_reduce, the_first_few_in_order)
{
    for (int turn = 0; turn < 6; turn++) {
        static const double counts[] = {1, 5, 40};
        bool is_largest = turn & 1;
        int64_t k = (int64_t)counts[turn / 2];
        cpu_case c = {.attributes = {graph_make_int("largest", is_largest)}, .attribute_count = 1};
        tensor *x = cpu_case_random(&c, DTYPE_F32, DIMS(2, 40));
        for (int64_t i = 0; i < 80; i++)
            ((float *)x->data)[i] = (float)(i * 37 % 11);
        cpu_case_input(&c, DTYPE_I64, DIMS(1), (double[]){(double)k});
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_TOP_K, 2), STATUS_OK);
        const int64_t *places = c.outputs[1].data;
        for (int64_t i = 0; i < 2 * k; i++) {
            double is = cpu_case_get(&c.outputs[0], i);
            int64_t row = i / k, better = 0;
            cr_expect_eq(is, cpu_case_get(x, row * 40 + places[i]));
            for (int64_t j = 0; j < 40; j++) {
                double other = cpu_case_get(x, row * 40 + j);
                better += other == is ? j < places[i] : is_largest ? other > is : other < is;
            }
            cr_expect_eq(better, i % k, "turn %d", turn);
        }
        cpu_case_dispose(&c);
    }
}

/* Rows of neighbours of integers and doubles have kernels; other axes and short rows have not. */
Test(cpu_reduce, extremes_and_their_places_of_every_type)
{
    static const dtype types[] = {DTYPE_U8,  DTYPE_I8,  DTYPE_U16, DTYPE_I16,
                                  DTYPE_I32, DTYPE_U32, DTYPE_I64, DTYPE_F64};
    for (int turn = 0; turn < 96; turn++) {
        bool is_max = turn & 1, is_along = turn & 2, is_arg = turn & 4;
        int64_t n = turn / 8 % 3 == 1 ? 5 : 70 + turn, rows = 6;
        cpu_case c = {.attributes = {graph_make_int("keepdims", 0)}, .attribute_count = 1};
        if (is_arg)
            c.attributes[c.attribute_count++] = graph_make_int("axis", is_along);
        tensor *x = is_along ? cpu_case_random(&c, types[turn / 8 % 8], DIMS(rows, n))
                             : cpu_case_random(&c, types[turn / 8 % 8], DIMS(n, rows));
        if (dtype_is_integer(x->dtype))
            for (size_t i = 0; i < tensor_bytes(x); i++)
                ((uint8_t *)x->data)[i] = (uint8_t)(i * 197 + i * i * 11);
        if (!is_arg)
            cpu_case_input(&c, DTYPE_I64, DIMS(1), (double[]){(double)is_along});
        cr_assert_eq(cpu_case_run(&c,
                                  is_arg   ? is_max ? GRAPH_OP_ARG_MAX : GRAPH_OP_ARG_MIN
                                  : is_max ? GRAPH_OP_REDUCE_MAX
                                           : GRAPH_OP_REDUCE_MIN,
                                  1),
                     STATUS_OK);
        for (int64_t row = 0; row < rows; row++) {
            int64_t best = 0;
            for (int64_t i = 1; i < n; i++) {
                double one = cpu_case_get(x, is_along ? row * n + i : i * rows + row);
                double other = cpu_case_get(x, is_along ? row * n + best : best * rows + row);
                best = (is_max ? one > other : one < other) ? i : best;
            }
            double want = cpu_case_get(x, is_along ? row * n + best : best * rows + row);
            cpu_case_expect_near(cpu_case_get(&c.outputs[0], row), is_arg ? (double)best : want, 0,
                                 turn);
        }
        cpu_case_dispose(&c);
    }
}

/* Of rows that lie apart, too: the axis between is kept. */
Test(cpu_reduce, sums_and_means_of_doubles)
{
    for (int turn = 0; turn < 4; turn++) {
        bool is_mean = turn & 1;
        cpu_case c = {.attributes = {graph_make_int("keepdims", 0)}, .attribute_count = 1};
        tensor *x = cpu_case_random(&c, DTYPE_F64, DIMS(3, 4, 50));
        cpu_case_input(&c, DTYPE_I64, turn & 2 ? DIMS(2) : DIMS(1), (double[]){2, 0});
        cr_assert_eq(cpu_case_run(&c, is_mean ? GRAPH_OP_REDUCE_MEAN : GRAPH_OP_REDUCE_SUM, 1),
                     STATUS_OK);
        int64_t outer = turn & 2 ? 3 : 1, outputs = turn & 2 ? 4 : 12;
        for (int64_t i = 0; i < outputs; i++) {
            double sum = 0;
            for (int64_t j = 0; j < outer * 50; j++)
                sum += cpu_case_get(x, (j / 50 * 4 + i) * 50 + j % 50);
            cpu_case_expect_near(cpu_case_get(&c.outputs[0], i),
                                 is_mean ? sum / (double)(outer * 50) : sum, 1e-13, i);
        }
        cpu_case_dispose(&c);
    }
}

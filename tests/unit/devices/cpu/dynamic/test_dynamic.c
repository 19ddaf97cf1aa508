/* Programs whose shapes or ways depend on values. */
#include <criterion/criterion.h>

#include "devices/cpu/dynamic/dynamic.h"

static graph *begin(dtype type, int64_t size)
{
    graph *g = graph_create("g");
    graph_dim dim = graph_dim_constant(size);
    graph_add_input(g, "x", type, 1, &dim);
    return g;
}

static graph_value_index unary(graph *g, graph_op op, graph_value_index x)
{
    return graph_add(g, op, 1, &x, 0, NULL);
}

static graph_value_index binary(graph *g, graph_op op, graph_value_index a, graph_value_index b)
{
    return graph_add(g, op, 2, (graph_value_index[]){a, b}, 0, NULL);
}

/* Runs the graph on `data`, and destroys it. */
static status run(graph *g, dtype type, int64_t size, void *data, tensor *output, arena *memory)
{
    cpu_dynamic program = {.graph = g, .budget = graph_budget_default};
    tensor input = {.dtype = type, .rank = 1, .dims = {size}, .data = data};
    cr_assert_eq(kernels_select(NULL, &program.kernels), STATUS_OK);
    cr_assert_eq(cpu_dynamic_check(g), STATUS_OK);
    program.weights = cpu_weights_create(g);
    status s = cpu_dynamic_run(&program, &input, output, memory);
    cpu_weights_release(program.weights);
    graph_destroy(g);
    return s;
}

Test(cpu_dynamic, the_answer_carries_its_shape)
{
    for (int64_t zeros = 0; zeros <= 4; zeros += 2) {
        float x[4] = {1, 2, 3, 4};
        for (int64_t i = 0; i < zeros; i++)
            x[i] = 0;
        graph *g = begin(DTYPE_F32, 4);
        graph_add_output(g, unary(g, GRAPH_OP_NON_ZERO, g->inputs[0]), "y");
        arena memory = {0};
        tensor y;
        cr_assert_eq(run(g, DTYPE_F32, 4, x, &y, &memory), STATUS_OK);
        cr_assert_eq(y.rank, 2);
        cr_assert_eq(y.dims[1], 4 - zeros);
        for (int64_t i = 0; i < y.dims[1]; i++)
            cr_assert_eq(((int64_t *)y.data)[i], zeros + i);
        arena_dispose(&memory);
    }
}

/* x < 0 selects a branch that reads beyond its input. */
static graph *make_branches(void)
{
    graph *g = begin(DTYPE_F32, 1);
    graph_value_index x = g->inputs[0];
    graph_value_index zero = graph_add_constant_f32(g, "zero", 1, (int64_t[]){1}, &(float){0});
    graph_value_index far = graph_add_constant_i64(g, "far", 1, (int64_t[]){1}, &(int64_t){7});
    graph_value_index inputs[] = {binary(g, GRAPH_OP_LESS, x, zero),
                                  binary(g, GRAPH_OP_GATHER, x, far), unary(g, GRAPH_OP_SQRT, x)};
    graph_add_output(g, graph_add(g, GRAPH_OP_IF, 3, inputs, 0, NULL), "y");
    return g;
}

Test(cpu_dynamic, only_the_selected_branch_runs)
{
    arena memory = {0};
    tensor y;
    cr_assert_eq(run(make_branches(), DTYPE_F32, 1, &(float){9}, &y, &memory), STATUS_OK);
    cr_assert_eq(*(float *)y.data, 3);
    cr_assert_eq(run(make_branches(), DTYPE_F32, 1, &(float){-9}, &y, &memory),
                 STATUS_INVALID_ARGUMENT);
    arena_dispose(&memory);
}

/* A body of (step, condition, state): the state becomes state + state, until it is over 100; the
 * states are collected. */
static graph *make_doubling(void)
{
    graph *g = graph_create("body");
    graph_dim one = graph_dim_constant(1);
    graph_add_input(g, "i", DTYPE_I64, 0, NULL);
    graph_add_input(g, "c", DTYPE_BOOL, 0, NULL);
    graph_value_index s = graph_add_input(g, "s", DTYPE_F32, 1, &one);
    graph_value_index limit = graph_add_constant_f32(g, NULL, 1, (int64_t[]){1}, &(float){100});
    graph_value_index twice = binary(g, GRAPH_OP_ADD, s, s);
    graph_value_index goes_on = binary(g, GRAPH_OP_LESS, twice, limit);
    graph_value_index axes = graph_add_constant_i64(g, NULL, 1, (int64_t[]){1}, &(int64_t){0});
    graph_add_output(g, binary(g, GRAPH_OP_SQUEEZE, goes_on, axes), NULL);
    graph_add_output(g, twice, NULL);
    graph_add_output(g, twice, NULL);
    return g;
}

static graph *make_loop(int64_t steps)
{
    graph *g = begin(DTYPE_F32, 1), *body = make_doubling();
    graph_own_body(g, body);
    graph_attribute attribute = {.name = "body", .kind = GRAPH_ATTRIBUTE_GRAPH, .graph = body};
    graph_value_index most = graph_add_constant_i64(g, "most", 0, NULL, &steps);
    graph_value_index inputs[] = {most, GRAPH_NO_VALUE, g->inputs[0]};
    int32_t n = graph_add_node(g, GRAPH_OP_LOOP, "loop", 3, inputs, 2, 1, &attribute);
    graph_add_output(g, g->nodes[n].outputs[1], "all");
    return g;
}

Test(cpu_dynamic, a_loop_ends_by_its_condition_or_its_count)
{
    const struct {
        int64_t most, expected;
    } cases[] = {{1000, 7}, {3, 3}, {0, 0}};
    for (int i = 0; i < 3; i++) {
        arena memory = {0};
        tensor y;
        cr_assert_eq(run(make_loop(cases[i].most), DTYPE_F32, 1, &(float){1}, &y, &memory),
                     STATUS_OK, "%s", status_message());
        cr_assert_eq(y.dims[0], cases[i].expected);
        for (int64_t k = 0; k < y.dims[0]; k++)
            cr_assert_eq(((float *)y.data)[k], (float)(2 << k));
        arena_dispose(&memory);
    }
}

Test(cpu_dynamic, a_run_stays_within_its_budget)
{
    graph *g = make_loop(1000);
    cpu_dynamic program = {.graph = g,
                           .budget = {.activation_bytes_max = 1 << 20, .operations_max = 10}};
    tensor input = {.dtype = DTYPE_F32, .rank = 1, .dims = {1}, .data = &(float){1}}, y;
    arena memory = {0};
    cr_assert_eq(kernels_select(NULL, &program.kernels), STATUS_OK);
    cr_assert_eq(cpu_dynamic_run(&program, &input, &y, &memory), STATUS_TOO_LARGE);
    arena_dispose(&memory);
    graph_destroy(g);
}

Test(cpu_dynamic, sequences_grow_shrink_and_join)
{
    graph *g = begin(DTYPE_I64, 5);
    graph_value_index two = graph_add_constant_i64(g, "two", 0, NULL, &(int64_t){2});
    graph_value_index first = graph_add_constant_i64(g, "first", 0, NULL, &(int64_t){0});
    graph_value_index last = graph_add_constant_i64(g, "last", 0, NULL, &(int64_t){-1});
    graph_value_index parts = binary(g, GRAPH_OP_SPLIT_TO_SEQUENCE, g->inputs[0], two);
    graph_value_index end = binary(g, GRAPH_OP_SEQUENCE_AT, parts, last);
    graph_value_index inputs[] = {parts, end, first};
    graph_value_index more = graph_add(g, GRAPH_OP_SEQUENCE_INSERT, 3, inputs, 0, NULL);
    graph_value_index less = unary(g, GRAPH_OP_SEQUENCE_ERASE, more);
    graph_attribute axis = graph_make_int("axis", 0);
    graph_add_output(g, graph_add(g, GRAPH_OP_CONCAT_FROM_SEQUENCE, 1, &less, 1, &axis), "y");
    arena memory = {0};
    tensor y;
    int64_t x[] = {10, 11, 12, 13, 14}, expected[] = {14, 10, 11, 12, 13};
    cr_assert_eq(run(g, DTYPE_I64, 5, x, &y, &memory), STATUS_OK, "%s", status_message());
    cr_assert_eq(tensor_count(&y), 5);
    cr_assert_arr_eq(y.data, expected, sizeof expected);
    arena_dispose(&memory);
}

Test(cpu_dynamic, a_sequence_is_no_answer)
{
    graph *g = begin(DTYPE_F32, 2);
    graph_add_output(g, unary(g, GRAPH_OP_SEQUENCE_CONSTRUCT, g->inputs[0]), "y");
    arena memory = {0};
    tensor y;
    cr_assert_eq(run(g, DTYPE_F32, 2, (float[]){1, 2}, &y, &memory), STATUS_UNSUPPORTED);
    arena_dispose(&memory);
}

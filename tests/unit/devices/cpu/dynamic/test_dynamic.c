/* Programs whose shapes or ways depend on values. */
#include <criterion/criterion.h>

#include "devices/cpu/dynamic/dynamic.h"
#include "devices/cpu/evaluate.h"
#include "kernels/gemm_scaled.h"

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
    cpu_dynamic_options options = {.graph = g, .threads = 1, .evaluate = cpu_evaluate_node};
    cpu_dynamic_memory workspace = {0};
    cpu_dynamic *program;
    tensor input = {.dtype = type, .rank = 1, .dims = {size}, .data = data};
    cr_assert_eq(kernels_select(NULL, &options.kernels), STATUS_OK);
    options.weights = cpu_weights_create(g);
    cr_assert_eq(cpu_dynamic_create(&options, &program), STATUS_OK);
    status s = cpu_dynamic_run(program, &input, output, memory,
                               &(cpu_dynamic_caller){.memory = &workspace});
    cpu_dynamic_memory_trim(&workspace, 0);
    cpu_dynamic_destroy(program);
    cpu_weights_release(options.weights);
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
    const graph_budget budget = {.activation_bytes_max = 1 << 20, .operations_max = 10};
    cpu_dynamic_options options = {
        .graph = g, .budget = &budget, .threads = 1, .evaluate = cpu_evaluate_node};
    cpu_dynamic_memory workspace = {0};
    cpu_dynamic *program;
    tensor input = {.dtype = DTYPE_F32, .rank = 1, .dims = {1}, .data = &(float){1}}, y;
    arena memory = {0};
    cr_assert_eq(kernels_select(NULL, &options.kernels), STATUS_OK);
    cr_assert_eq(cpu_dynamic_create(&options, &program), STATUS_OK);
    cr_assert_eq(
        cpu_dynamic_run(program, &input, &y, &memory, &(cpu_dynamic_caller){.memory = &workspace}),
        STATUS_TOO_LARGE);
    cpu_dynamic_memory_trim(&workspace, 0);
    cpu_dynamic_destroy(program);
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

/* Joins what a split of five elements makes: `lengths` as a list, or one for all where `count` is
 * 0. */
static status split_and_join(int64_t count, const int64_t *lengths)
{
    graph *g = begin(DTYPE_I64, 5);
    graph_value_index by = graph_add_constant_i64(g, "by", count > 0, &count, lengths);
    graph_value_index parts = binary(g, GRAPH_OP_SPLIT_TO_SEQUENCE, g->inputs[0], by);
    graph_attribute axis = graph_make_int("axis", 0);
    graph_add_output(g, graph_add(g, GRAPH_OP_CONCAT_FROM_SEQUENCE, 1, &parts, 1, &axis), "y");
    arena memory = {0};
    tensor y;
    int64_t x[] = {10, 11, 12, 13, 14};
    status s = run(g, DTYPE_I64, 5, x, &y, &memory);
    if (!s) {
        cr_assert_eq(tensor_count(&y), 5);
        cr_assert_arr_eq(y.data, x, sizeof x);
    }
    arena_dispose(&memory);
    return s;
}

Test(cpu_dynamic, lengths_of_a_split_fill_the_axis)
{
    cr_assert_eq(split_and_join(3, (int64_t[]){2, 0, 3}), STATUS_OK);
    cr_assert_eq(split_and_join(0, (int64_t[]){INT64_MAX - 1}), STATUS_OK);
    cr_assert_eq(split_and_join(0, (int64_t[]){0}), STATUS_INVALID_ARGUMENT);
    cr_assert_eq(split_and_join(2, (int64_t[]){2, 2}), STATUS_INVALID_ARGUMENT);
    cr_assert_eq(split_and_join(2, (int64_t[]){2, 4}), STATUS_INVALID_ARGUMENT);
    cr_assert_eq(split_and_join(2, (int64_t[]){6, -1}), STATUS_INVALID_ARGUMENT);
    cr_assert_eq(split_and_join(3, (int64_t[]){1, INT64_MAX, 5}), STATUS_INVALID_ARGUMENT);
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

static cpu_dynamic_facts describe(const graph *g, int64_t size)
{
    cpu_dynamic_options options = {.graph = g, .threads = 1, .evaluate = cpu_evaluate_node};
    cpu_dynamic_facts facts;
    cpu_dynamic *program;
    cr_assert_eq(kernels_select(NULL, &options.kernels), STATUS_OK);
    cr_assert_eq(cpu_dynamic_create(&options, &program), STATUS_OK);
    cr_assert_eq(cpu_dynamic_describe(
                     program, &(tensor){.dtype = DTYPE_F32, .rank = 1, .dims = {size}}, &facts),
                 STATUS_OK);
    cpu_dynamic_destroy(program);
    return facts;
}

/* What lies before an If on values, each branch, and what follows. */
Test(cpu_dynamic, straight_parts_run_as_plans)
{
    graph *g = begin(DTYPE_F32, 1);
    graph_value_index zero = graph_add_constant_f32(g, "zero", 1, (int64_t[]){1}, &(float){0});
    graph_value_index x = binary(g, GRAPH_OP_ADD, g->inputs[0], g->inputs[0]);
    graph_value_index less = binary(g, GRAPH_OP_LESS, x, zero);
    graph_value_index then =
        unary(g, GRAPH_OP_NEG, unary(g, GRAPH_OP_SQRT, unary(g, GRAPH_OP_ABS, x)));
    graph_value_index other = unary(g, GRAPH_OP_SQRT, x);
    graph_value_index y =
        graph_add(g, GRAPH_OP_IF, 3, (graph_value_index[]){less, then, other}, 0, NULL);
    y = binary(g, GRAPH_OP_ADD, y, x);
    graph_add_output(g, unary(g, GRAPH_OP_NEG, y), "y");
    cpu_dynamic_facts facts = describe(g, 1);
    cr_expect_eq(facts.plan_count, 4);
    cr_expect_eq(facts.planned_node_count, 8);
    cr_expect_eq(facts.single_node_count, 1); /* the If */
    arena memory = {0};
    tensor out;
    cr_assert_eq(run(g, DTYPE_F32, 1, &(float){-8}, &out, &memory), STATUS_OK);
    cr_expect_eq(*(float *)out.data, 20);
    arena_dispose(&memory);
}

/* Behind NonZero, shapes are those of values: only what lies before is planned. */
Test(cpu_dynamic, what_depends_on_values_runs_alone)
{
    graph *g = begin(DTYPE_F32, 4);
    graph_value_index x = unary(g, GRAPH_OP_RELU, unary(g, GRAPH_OP_NEG, g->inputs[0]));
    graph_value_index found = unary(g, GRAPH_OP_NON_ZERO, x);
    graph_add_output(g, unary(g, GRAPH_OP_NEG, found), "y");
    graph_add_output(g, binary(g, GRAPH_OP_ADD, x, x), "z");
    cpu_dynamic_facts facts = describe(g, 4);
    cr_expect_eq(facts.plan_count, 1);
    cr_expect_eq(facts.planned_node_count, 3);
    cr_expect_eq(facts.single_node_count, 2);
    arena memory = {0};
    tensor out[2];
    cr_assert_eq(run(g, DTYPE_F32, 4, (float[]){1, -2, 3, -4}, out, &memory), STATUS_OK);
    cr_expect_eq(tensor_count(&out[0]), 2);
    cr_expect_arr_eq(out[0].data, ((int64_t[]){-1, -3}), 2 * sizeof(int64_t));
    cr_expect_arr_eq(out[1].data, ((float[]){0, 4, 0, 8}), 4 * sizeof(float));
    arena_dispose(&memory);
}

/* A body whose state grows by one element with each step. */
Test(cpu_dynamic, states_may_change_their_shapes)
{
    graph *g = begin(DTYPE_F32, 1), *body = graph_create("body");
    graph_dim one = graph_dim_constant(1);
    graph_add_input(body, "i", DTYPE_I64, 0, NULL);
    graph_value_index c = graph_add_input(body, "c", DTYPE_BOOL, 0, NULL);
    graph_value_index list = graph_add_input(body, "list", DTYPE_F32, 1, &one);
    graph_value_index sum = graph_add_input(body, "sum", DTYPE_F32, 1, &one);
    graph_value_index step = graph_add_input(body, "step", DTYPE_F32, 1, &one);
    graph_attribute axis = graph_make_int("axis", 0);
    graph_value_index next = binary(body, GRAPH_OP_ADD, sum, step);
    graph_add_output(body, unary(body, GRAPH_OP_IDENTITY, c), NULL);
    graph_add_output(
        body, graph_add(body, GRAPH_OP_CONCAT, 2, (graph_value_index[]){list, next}, 1, &axis),
        NULL);
    graph_add_output(body, next, NULL);
    graph_own_body(g, body);
    graph_attribute attributes[] = {{.name = "body", .kind = GRAPH_ATTRIBUTE_GRAPH, .graph = body},
                                    graph_make_int("captured", 1)};
    graph_value_index most = graph_add_constant_i64(g, "most", 0, NULL, &(int64_t){4});
    graph_value_index zero = graph_add_constant_f32(g, "zero", 1, (int64_t[]){1}, &(float){0});
    graph_value_index inputs[] = {most, GRAPH_NO_VALUE, zero, zero, g->inputs[0]};
    int32_t n = graph_add_node(g, GRAPH_OP_LOOP, "loop", 5, inputs, 2, 2, attributes);
    graph_add_output(g, g->nodes[n].outputs[0], "list");
    graph_add_output(g, g->nodes[n].outputs[1], "sum");
    arena memory = {0};
    tensor out[2];
    cr_assert_eq(run(g, DTYPE_F32, 1, &(float){3}, out, &memory), STATUS_OK, "%s",
                 status_message());
    cr_assert_eq(tensor_count(&out[0]), 5);
    cr_expect_arr_eq(out[0].data, ((float[]){0, 3, 6, 9, 12}), 5 * sizeof(float));
    cr_expect_eq(*(float *)out[1].data, 12);
    arena_dispose(&memory);
}

/* A state that begins as a constant of the graph does not stay so. */
Test(cpu_dynamic, states_may_begin_as_constants)
{
    graph *g = begin(DTYPE_F32, 1), *body = graph_create("body");
    graph_dim one = graph_dim_constant(1);
    graph_add_input(body, "i", DTYPE_I64, 0, NULL);
    graph_value_index c = graph_add_input(body, "c", DTYPE_BOOL, 0, NULL);
    graph_value_index sum = graph_add_input(body, "sum", DTYPE_F32, 1, &one);
    graph_value_index step = graph_add_input(body, "step", DTYPE_F32, 1, &one);
    graph_add_output(body, unary(body, GRAPH_OP_IDENTITY, c), NULL);
    graph_add_output(body, binary(body, GRAPH_OP_ADD, sum, step), NULL);
    graph_own_body(g, body);
    graph_attribute attributes[] = {{.name = "body", .kind = GRAPH_ATTRIBUTE_GRAPH, .graph = body},
                                    graph_make_int("captured", 1)};
    graph_value_index most = graph_add_constant_i64(g, "most", 0, NULL, &(int64_t){4});
    graph_value_index zero = graph_add_constant_f32(g, "zero", 1, (int64_t[]){1}, &(float){0});
    graph_value_index inputs[] = {most, GRAPH_NO_VALUE, zero, g->inputs[0]};
    int32_t n = graph_add_node(g, GRAPH_OP_LOOP, "loop", 4, inputs, 1, 2, attributes);
    graph_add_output(g, g->nodes[n].outputs[0], "sum");
    arena memory = {0};
    tensor out;
    cr_assert_eq(run(g, DTYPE_F32, 1, &(float){3}, &out, &memory), STATUS_OK);
    cr_expect_eq(*(float *)out.data, 12);
    arena_dispose(&memory);
}

/* Other shapes than the request before, and again the first ones. */
Test(cpu_dynamic, a_program_takes_shapes_in_any_order)
{
    graph *g = graph_create("g");
    graph_dim any = {.is_unknown = true};
    graph_add_input(g, "x", DTYPE_F32, 1, &any);
    graph_value_index x = unary(g, GRAPH_OP_RELU, g->inputs[0]);
    graph_add_output(g, unary(g, GRAPH_OP_NON_ZERO, x), "y");
    graph_add_output(g, unary(g, GRAPH_OP_NEG, x), "z");
    cpu_dynamic_options options = {.graph = g, .threads = 1, .evaluate = cpu_evaluate_node};
    cpu_dynamic_memory workspace = {0};
    cpu_dynamic *program;
    cr_assert_eq(kernels_select(NULL, &options.kernels), STATUS_OK);
    cr_assert_eq(cpu_dynamic_create(&options, &program), STATUS_OK);
    for (int64_t i = 0; i < 80; i++) { /* more shapes than are kept */
        float data[40] = {[0] = 1, [1] = -1};
        tensor in = {.dtype = DTYPE_F32, .rank = 1, .dims = {2 + i * 7 % 37}, .data = data}, out[2];
        arena memory = {0};
        cr_assert_eq(cpu_dynamic_run(program, &in, out, &memory,
                                     &(cpu_dynamic_caller){.memory = &workspace}),
                     STATUS_OK);
        cr_expect_eq(tensor_count(&out[0]), 1);
        cr_expect_eq(tensor_count(&out[1]), in.dims[0]);
        cr_expect_eq(((float *)out[1].data)[0], -1);
        arena_dispose(&memory);
    }
    cpu_dynamic_memory_trim(&workspace, 0);
    cpu_dynamic_destroy(program);
    graph_destroy(g);
}

/* ConvInteger of the positions of what is not zero: [1, 20, their count - 2]. */
static graph *make_conv_behind_non_zero(void)
{
    graph *g = begin(DTYPE_F32, 64);
    graph_value_index axis = graph_add_constant_i64(g, "axis", 1, (int64_t[]){1}, &(int64_t){0});
    graph_value_index found = unary(g, GRAPH_OP_NON_ZERO, g->inputs[0]);
    graph_attribute to_u8 = graph_make_int("to", 2);
    graph_value_index x = binary(g, GRAPH_OP_UNSQUEEZE, found, axis);
    x = graph_add(g, GRAPH_OP_CAST, 1, &x, 1, &to_u8);
    static int8_t numbers[20 * 3];
    for (int i = 0; i < 20 * 3; i++)
        numbers[i] = (int8_t)(i * 37 - 128);
    tensor weights = {.dtype = DTYPE_I8, .rank = 3, .dims = {20, 1, 3}, .data = numbers};
    x = binary(g, GRAPH_OP_CONV_INTEGER, x, graph_add_constant(g, "weights", &weights));
    graph_add_output(g, x, "y");
    return g;
}

Test(cpu_dynamic, weights_behind_values_are_packed_once)
{
    graph *g = make_conv_behind_non_zero();
    cpu_dynamic_options options = {.graph = g, .threads = 1, .evaluate = cpu_evaluate_node};
    cpu_dynamic_memory workspace = {0};
    cpu_dynamic *program;
    cr_assert_eq(kernels_select(NULL, &options.kernels), STATUS_OK);
    options.weights = cpu_weights_create(g);
    const int8_t *weights = g->values[g->nodes[g->node_count - 1].inputs[1]].constant->data;
    cr_assert_eq(cpu_dynamic_create(&options, &program), STATUS_OK);
    for (int64_t zeros = 0; zeros <= 50; zeros += 25) {
        float x[64];
        for (int64_t i = 0; i < 64; i++)
            x[i] = i >= zeros;
        tensor y, input = {.dtype = DTYPE_F32, .rank = 1, .dims = {64}, .data = x};
        arena memory = {0};
        cr_assert_eq(cpu_dynamic_run(program, &input, &y, &memory,
                                     &(cpu_dynamic_caller){.memory = &workspace}),
                     STATUS_OK, "%s", status_message());
        int64_t width = 64 - zeros - 2;
        cr_assert_eq(y.dims[2], width);
        for (int64_t i = 0; i < 20 * width; i++) {
            const int8_t *w = weights + i / width * 3;
            int64_t at = zeros + i % width;
            cr_assert_eq(((int32_t *)y.data)[i], w[0] * at + w[1] * (at + 1) + w[2] * (at + 2));
        }
        cr_assert_eq(cpu_weights_bytes(options.weights), gemm_u8s8_packed_bytes(3, 20));
        arena_dispose(&memory);
    }
    cpu_dynamic_memory_trim(&workspace, 0);
    cpu_dynamic_destroy(program);
    cpu_weights_release(options.weights);
    graph_destroy(g);
}

/* What graph_fuse_layers makes of a graph gives the results of the graph: small networks as
 * quantisers and exporters write them, planned at several kernel levels, against the same nodes
 * computed one by one. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/devices/cpu/fused/net.h"

Test(cpu_fused, quantised_convolutions_of_any_geometry)
{
    seed = 1;
    for (int turn = 0; turn < 40; turn++) {
        static const int64_t channels[] = {3, 8, 16, 24}, groups[] = {1, 1, 2, 0};
        int64_t c = channels[random_below(4)], g = groups[random_below(4)];
        g = g == 0 ? c : c % g ? 1 : g;
        int64_t out = g * (1 + random_below(9)), dims[] = {1 + random_below(3), c, 9, 7};
        out = g == c && random_below(2) ? c : out;
        graph_value_index x;
        net n = open_net(turn, 4, dims, &x);
        x = requantise(&n, x, 0.02, (int)random_below(256));
        x = convolve(&n, x, c, out, g, true);
        if (random_below(2))
            x = NODE(&n, GRAPH_OP_RELU, x);
        if (random_below(3))
            x = requantise(&n, x, 0.05, (int)random_below(256));
        cpu_plan_facts facts = check(&n, x, 0.05);
        cr_expect(facts.quantised_layer_count == 1);
    }
}

/* What ONNX Runtime's dynamic quantisation makes of a convolution. */
static graph_value_index convolve_dynamically(net *n, graph_value_index x, int64_t channels,
                                              int64_t out, int64_t groups, bool has_scales,
                                              int zero)
{
    int64_t kernel = 1 + 2 * random_below(2), along[] = {out, 1, 1};
    int64_t dims[4] = {out, channels / groups, kernel, kernel};
    int32_t at = graph_add_node(n->g, GRAPH_OP_DYNAMIC_QUANTIZE_LINEAR, NULL, 1, &x, 3, 0, NULL);
    const graph_value_index *q = n->g->nodes[at].outputs;
    graph_value_index scale = q[1], in[4] = {q[0], GRAPH_NO_VALUE, q[2]};
    in[1] = constant(n, DTYPE_I8, 4, dims, 127);
    in[3] = number(n, DTYPE_I8, zero);
    graph_attribute a[3] = {
        graph_make_ints(n->g, "strides", 2, (int64_t[]){1 + random_below(2), 1}),
        graph_make_ints(n->g, "pads", 4, (int64_t[]){kernel / 2, kernel / 2, kernel / 2, 0}),
        graph_make_int("group", groups)};
    graph_attribute to = graph_make_int("to", dtype_to_onnx(DTYPE_F32));
    graph_value_index y = node(n, GRAPH_OP_CONV_INTEGER, 4, in, 3, a);
    if (random_below(2)) /* a bias in units of both scales */
        y = NODE(n, GRAPH_OP_ADD, constant(n, DTYPE_I32, 3, along, 4000), y);
    y = node(n, GRAPH_OP_CAST, 1, &y, 1, &to);
    graph_value_index w_scale =
        has_scales ? constant(n, DTYPE_F32, 3, along, 0.004) : number(n, DTYPE_F32, 0.003);
    y = NODE(n, GRAPH_OP_MUL, y, NODE(n, GRAPH_OP_MUL, scale, w_scale));
    return NODE(n, GRAPH_OP_ADD, y, constant(n, DTYPE_F32, 3, along, 0.5));
}

Test(cpu_fused, dynamically_quantised_convolutions)
{
    seed = 6;
    for (int turn = 0; turn < 24; turn++) {
        static const int64_t channels[] = {3, 8, 16}, groups[] = {1, 2, 0};
        int64_t c = channels[random_below(3)], g = groups[random_below(3)];
        g = g == 0 ? c : c % g ? 1 : g;
        int64_t dims[] = {1 + random_below(2), c, 9, 7};
        graph_value_index x;
        net n = open_net(turn, 4, dims, &x);
        x = convolve_dynamically(&n, x, c, g * (1 + random_below(9)), g, turn % 2,
                                 turn % 4 == 3 ? 11 : 0);
        if (random_below(2))
            x = NODE(&n, GRAPH_OP_RELU, x);
        cpu_plan_facts facts = check(&n, x, 0);
        cr_expect(facts.quantised_layer_count == 1);
    }
}

Test(cpu_fused, a_residual_network_in_uint8)
{
    seed = 2;
    for (int turn = 0; turn < 8; turn++) {
        int64_t dims[] = {2, 3, 12, 12}, pads[] = {1, 1, 1, 1}, w[] = {8, 8, 3, 3}, out = 8;
        graph_value_index x, y;
        net n = open_net(turn, 4, dims, &x);
        graph_attribute pool[] = {graph_make_ints(n.g, "kernel_shape", 2, (int64_t[]){3, 3}),
                                  graph_make_ints(n.g, "pads", 4, pads),
                                  graph_make_ints(n.g, "strides", 2, (int64_t[]){2, 2})};
        x = requantise(&n, x, 0.02, 120);
        x = NODE(&n, GRAPH_OP_CONV, x, weights(&n, 4, (int64_t[]){8, 3, 3, 3}, 0));
        x = requantise(&n, x, 0.04, 0);
        x = requantise(&n, node(&n, GRAPH_OP_MAX_POOL, 1, &x, 3, pool), 0.04, 0);
        graph_value_index in[2] = {x, weights(&n, 4, w, 0)};
        y = node(&n, GRAPH_OP_CONV, 2, in, 1, &pool[1]);
        y = requantise(&n, y, 0.05, 130);
        x = NODE(&n, GRAPH_OP_ADD, x, y);
        x = turn & 2 ? NODE(&n, GRAPH_OP_RELU, x) : x;
        x = requantise(&n, x, 0.06, turn & 4 ? 0 : 77);
        x = NODE(&n, GRAPH_OP_FLATTEN, NODE(&n, GRAPH_OP_GLOBAL_AVERAGE_POOL, x));
        x = requantise(&n, x, 0.02, 40);
        graph_attribute b = graph_make_int("transB", 1);
        graph_value_index last[3] = {x, weights(&n, 2, (int64_t[]){5, out}, 0),
                                     constant(&n, DTYPE_F32, 1, (int64_t[]){5}, 1)};
        x = node(&n, GRAPH_OP_GEMM, 3, last, 1, &b);
        cpu_plan_facts facts = check(&n, x, 0.2);
        cr_expect(facts.quantised_layer_count == 3);
    }
}

Test(cpu_fused, float_images_with_residuals_and_pools)
{
    seed = 3;
    for (int turn = 0; turn < 20; turn++) {
        int64_t dims[] = {2, 6, 11, 10}, along[] = {6, 1, 1}, w[] = {6, 6, 3, 3};
        int64_t pads[] = {1, 1, 1, 1};
        graph_value_index x;
        net n = open_net(turn, 4, dims, &x);
        graph_attribute same = graph_make_ints(n.g, "pads", 4, pads);
        graph_attribute pool[] = {graph_make_ints(n.g, "kernel_shape", 2, (int64_t[]){2, 3}), same,
                                  graph_make_int("count_include_pad", turn % 3 == 0)};
        x = convolve(&n, x, 6, 6, turn % 4 == 0 ? 6 : 1, false);
        graph_value_index in[2] = {x, constant(&n, DTYPE_F32, 4, w, 0.2)};
        graph_value_index y = node(&n, GRAPH_OP_CONV, 2, in, 1, &same);
        y = NODE(&n, GRAPH_OP_RELU, NODE(&n, GRAPH_OP_ADD, x, y));
        y = NODE(&n, GRAPH_OP_MUL, y, constant(&n, DTYPE_F32, 3, along, 1));
        graph_value_index parts[2] = {y, NODE(&n, GRAPH_OP_SIGMOID, x)};
        graph_attribute axis = graph_make_int("axis", 1);
        x = node(&n, GRAPH_OP_CONCAT, 2, parts, 1, &axis);
        x = node(&n, turn % 2 ? GRAPH_OP_AVERAGE_POOL : GRAPH_OP_MAX_POOL, 1, &x, turn % 2 ? 3 : 2,
                 pool);
        cpu_plan_facts facts = check(&n, x, 0);
        cr_expect(facts.fused_layer_count == 2);
    }
}

Test(cpu_fused, dense_layers_static_and_dynamic)
{
    seed = 4;
    for (int turn = 0; turn < 20; turn++) {
        int64_t k = 5 + random_below(70), width = 1 + random_below(90), dims[] = {3, 2, k};
        int64_t w[] = {k, width};
        graph_value_index x;
        net n = open_net(turn, 3, dims, &x);
        graph_value_index bias = constant(&n, DTYPE_F32, 1, &width, 1);
        bool is_quantised = turn % 3 != 2;
        if (turn % 3 == 0) {
            x = NODE(&n, GRAPH_OP_MATMUL, requantise(&n, x, 0.02, 99), weights(&n, 2, w, 1));
        } else if (turn % 3 == 1) {
            int32_t at =
                graph_add_node(n.g, GRAPH_OP_DYNAMIC_QUANTIZE_LINEAR, NULL, 1, &x, 3, 0, NULL);
            const graph_value_index *q = n.g->nodes[at].outputs;
            graph_value_index bytes = q[0], scale = q[1], zero = q[2];
            x = NODE(&n, GRAPH_OP_MATMUL_INTEGER, bytes, constant(&n, DTYPE_I8, 2, w, 127), zero);
            graph_attribute to = graph_make_int("to", dtype_to_onnx(DTYPE_F32));
            x = node(&n, GRAPH_OP_CAST, 1, &x, 1, &to);
            graph_value_index both =
                NODE(&n, GRAPH_OP_MUL, scale, constant(&n, DTYPE_F32, 1, &width, 0.004));
            x = NODE(&n, GRAPH_OP_MUL, x, both);
        } else {
            x = NODE(&n, GRAPH_OP_MATMUL, x, constant(&n, DTYPE_F32, 2, w, 0.3));
        }
        x = NODE(&n, GRAPH_OP_ADD, bias, x);
        if (turn % 4 == 1)
            x = NODE(&n, GRAPH_OP_RELU, x);
        if (turn % 4 == 2)
            x = NODE(&n, GRAPH_OP_GELU, x);
        if (turn % 4 == 3)
            x = requantise(&n, x, 0.05, 128);
        cpu_plan_facts facts = check(&n, x, 0.05);
        cr_expect(facts.fused_layer_count == 1);
        cr_expect(facts.quantised_layer_count == is_quantised);
    }
}

/* u8 weights over their whole range, and a zero point, or one for each of `zeros` columns. */
static void add_u8_weights(net *n, const int64_t dims[2], int64_t zeros, graph_value_index *w,
                           graph_value_index *zero)
{
    *w = constant(n, DTYPE_U8, 2, dims, 0);
    *zero = constant(n, DTYPE_U8, zeros == 1 ? 0 : 1, &zeros, 0);
    tensor *t = (tensor *)(uintptr_t)n->g->values[*w].constant;
    for (int64_t i = 0; i < tensor_count(t); i++)
        ((uint8_t *)t->data)[i] = (uint8_t)random_below(256);
    t = (tensor *)(uintptr_t)n->g->values[*zero].constant;
    for (int64_t i = 0; i < tensor_count(t); i++)
        ((uint8_t *)t->data)[i] = (uint8_t)(100 + random_below(50));
}

Test(cpu_fused, weights_of_any_zero_point)
{
    seed = 7;
    for (int turn = 0; turn < 24; turn++) {
        int64_t k = 5 + random_below(70), width = turn % 2 ? k : 1 + random_below(90);
        int64_t w[] = {k, width}, dims[] = {3, 2, k};
        graph_value_index x, b, b_zero, scale;
        net n = open_net(0, 3, dims, &x);
        add_u8_weights(&n, w, turn % 2 ? width : 1, &b, &b_zero);
        if (turn % 3 == 0) { /* dynamic */
            int32_t at =
                graph_add_node(n.g, GRAPH_OP_DYNAMIC_QUANTIZE_LINEAR, NULL, 1, &x, 3, 0, NULL);
            const graph_value_index *q = n.g->nodes[at].outputs;
            graph_value_index bytes = q[0], zero = q[2];
            scale = q[1];
            x = NODE(&n, GRAPH_OP_MATMUL_INTEGER, bytes, b, zero, b_zero);
            graph_attribute to = graph_make_int("to", dtype_to_onnx(DTYPE_F32));
            x = node(&n, GRAPH_OP_CAST, 1, &x, 1, &to);
            x = NODE(&n, GRAPH_OP_MUL, x,
                     NODE(&n, GRAPH_OP_MUL, scale, number(&n, DTYPE_F32, 0.004)));
            x = NODE(&n, GRAPH_OP_ADD, x, constant(&n, DTYPE_F32, 1, &width, 1));
            if (k == width) /* what the layer before gave */
                x = NODE(&n, GRAPH_OP_ADD, n.g->inputs[0], x);
        } else if (turn % 3 == 1) { /* between DequantizeLinear */
            scale = turn % 2 ? constant(&n, DTYPE_F32, 1, &width, 0) : number(&n, DTYPE_F32, 0.003);
            tensor *t = (tensor *)(uintptr_t)n.g->values[scale].constant;
            for (int64_t i = 0; i < tensor_count(t); i++)
                ((float *)t->data)[i] = 0.002f + 0.0005f * (float)random_below(10);
            x = NODE(&n, GRAPH_OP_MATMUL, requantise(&n, x, 0.02, 99),
                     NODE(&n, GRAPH_OP_DEQUANTIZE_LINEAR, b, scale, b_zero));
            if (random_below(2))
                x = requantise(&n, x, 0.05, 128);
        } else { /* in one node */
            graph_value_index s = number(&n, DTYPE_F32, 0.02), z = number(&n, DTYPE_U8, 99);
            graph_value_index y = number(&n, DTYPE_F32, 0.05), yz = number(&n, DTYPE_U8, 120);
            scale = number(&n, DTYPE_F32, 0.003);
            x = NODE(&n, GRAPH_OP_QUANTIZE_LINEAR, x, s, z);
            x = NODE(&n, GRAPH_OP_QLINEAR_MATMUL, x, s, z, b, scale, b_zero, y, yz);
            x = NODE(&n, GRAPH_OP_DEQUANTIZE_LINEAR, x, y, yz);
        }
        cpu_plan_facts facts = check(&n, x, 0.05);
        cr_expect(facts.quantised_layer_count == 1, "turn %d", turn);
    }
}

/* A QLinearConv with int8 activations, weights [out, in, 3] or [out, in, 3, 3]. */
static graph_value_index convolve_int8(net *n, graph_value_index x, int rank, int64_t in,
                                       int64_t out)
{
    graph_value_index scale = number(n, DTYPE_F32, 0.02), zero = number(n, DTYPE_I8, -3);
    graph_value_index w = constant(n, DTYPE_I8, rank, (int64_t[]){out, in, 3, 3}, 1);
    graph_value_index w_scale = number(n, DTYPE_F32, 0.001), w_zero = number(n, DTYPE_I8, 0);
    return NODE(n, GRAPH_OP_QLINEAR_CONV, x, scale, zero, w, w_scale, w_zero, scale, zero);
}

Test(cpu_fused, int8_activations_of_qlinear_layers)
{
    for (int turn = 0; turn < 8; turn++) {
        int rank = turn & 1 ? 3 : 4;
        bool is_read_beside = turn & 2, are_two = turn & 4; /* beside: as int8, by a Cast */
        int64_t dims[] = {2, 6, 11, 9};
        graph_value_index x;
        seed = 90 + (unsigned)turn;
        net n = open_net(1, rank, dims, &x);
        graph_attribute type = graph_make_int("to", dtype_to_onnx(DTYPE_F32));
        graph_value_index scale = number(&n, DTYPE_F32, 0.02), zero = number(&n, DTYPE_I8, -3);
        x = NODE(&n, GRAPH_OP_QUANTIZE_LINEAR, x, scale, zero);
        graph_value_index y = convolve_int8(&n, x, rank, 6, 6);
        graph_value_index first = y;
        if (are_two)
            y = convolve_int8(&n, y, rank, 6, 5);
        y = NODE(&n, GRAPH_OP_DEQUANTIZE_LINEAR, y, scale, zero);
        if (is_read_beside) {
            graph_value_index sum =
                NODE(&n, GRAPH_OP_REDUCE_MAX, node(&n, GRAPH_OP_CAST, 1, &first, 1, &type));
            y = NODE(&n, GRAPH_OP_ADD, y, sum);
        }
        cpu_plan_facts facts = check(&n, y, 0.021);
        cr_expect(facts.quantised_layer_count == 1 + are_two, "turn %d", turn);
    }
}

/* The first output of a node may be unused. */
Test(cpu_fused, later_outputs_alone)
{
    seed = 8;
    int64_t dims[] = {1, 4, 6, 6};
    graph_value_index x;
    net n = open_net(0, 4, dims, &x);
    int32_t at = graph_add_node(n.g, GRAPH_OP_DYNAMIC_QUANTIZE_LINEAR, NULL, 1, &x, 3, 0, NULL);
    graph_value_index scale = n.g->nodes[at].outputs[1];
    check(&n, NODE(&n, GRAPH_OP_MUL, scale, number(&n, DTYPE_F32, 3)), 0);

    n = open_net(0, 4, dims, &x);
    graph_attribute window[2] = {graph_make_ints(n.g, "kernel_shape", 2, (int64_t[]){2, 2}),
                                 graph_make_ints(n.g, "strides", 2, (int64_t[]){2, 2})};
    at = graph_add_node(n.g, GRAPH_OP_MAX_POOL, NULL, 1, &x, 2, 2, window);
    graph_value_index indices = n.g->nodes[at].outputs[1];
    graph_attribute type = graph_make_int("to", dtype_to_onnx(DTYPE_F32));
    check(&n, node(&n, GRAPH_OP_CAST, 1, &indices, 1, &type), 0);
}

Test(cpu_fused, what_others_read_is_still_computed)
{
    /* The convolution's floats and its bytes both go on: neither may be taken over. */
    seed = 5;
    int64_t dims[] = {1, 4, 6, 6}, w[] = {4, 4, 1, 1};
    graph_value_index x;
    net n = open_net(1, 4, dims, &x);
    x = NODE(&n, GRAPH_OP_CONV, requantise(&n, x, 0.02, 128), weights(&n, 4, w, 0));
    x = NODE(&n, GRAPH_OP_SUB, requantise(&n, x, 0.05, 128), NODE(&n, GRAPH_OP_RELU, x));
    check(&n, x, 0.05);
}

/* Groups read in place, with and without padding, single pixels too; what follows them is fused. */
Test(cpu_fused, groups_of_long_lines)
{
    seed = 17;
    for (int turn = 0; turn < 24; turn++) {
        int64_t groups = 1 + turn % 3, dims[] = {1 + turn % 2, 6 * groups, 7, 29};
        graph_value_index x;
        net n = open_net(turn, 4, dims, &x);
        x = convolve(&n, x, 6 * groups, 20 * groups, groups, false);
        x = NODE(&n, turn % 2 ? GRAPH_OP_HARD_SWISH : GRAPH_OP_RELU, x);
        cpu_plan_facts facts = check(&n, x, 0);
        cr_expect_eq(facts.fused_layer_count, 1);
    }
}

/* Networks in half precision, with casts, are computed in F32. */
Test(cpu_fused, halves)
{
    seed = 11;
    for (int turn = 0; turn < 12; turn++) {
        dtype half = turn % 3 == 2 ? DTYPE_BF16 : DTYPE_F16;
        graph_attribute to_half = graph_make_int("to", dtype_to_onnx(half));
        graph_attribute to_f32 = graph_make_int("to", dtype_to_onnx(DTYPE_F32));
        int64_t dims[] = {1 + random_below(2), 8, 9, 7}, kernel[] = {8, 8, 3, 3}, width = 8;
        graph_value_index x, y, z;
        net n = open_net(turn, 4, dims, &x);
        x = node(&n, GRAPH_OP_CAST, 1, &x, 1, &to_half);
        graph_value_index in[] = {x, constant(&n, half, 4, kernel, 4),
                                  constant(&n, half, 1, &width, 4)};
        graph_attribute pads = graph_make_ints(n.g, "pads", 4, (int64_t[]){1, 1, 1, 1});
        y = NODE(&n, GRAPH_OP_RELU, node(&n, GRAPH_OP_CONV, 3, in, 1, &pads));
        z = node(&n, GRAPH_OP_CAST, 1, &y, 1, &to_f32);
        z = NODE(&n, GRAPH_OP_SIGMOID, z);
        z = node(&n, GRAPH_OP_CAST, 1, &z, 1, &to_half);
        z = NODE(&n, GRAPH_OP_MUL, y, z);
        z = NODE(&n, GRAPH_OP_FLOOR, NODE(&n, GRAPH_OP_ADD, z, number(&n, half, 0.5)));
        if (turn % 2)
            z = node(&n, GRAPH_OP_CAST, 1, &z, 1, &to_f32);
        double step = half == DTYPE_F16 ? 1 : 8;
        cpu_plan_facts facts = check_within(&n, z, step, step / 2);
        cr_expect_eq(facts.fused_layer_count, 1);
    }
}

/* What only moves halves runs on halves: two bytes an element, and no cast. */
Test(cpu_fused, halves_that_move)
{
    int64_t dims[] = {1, 4, 6};
    graph_value_index x, y;
    graph_attribute to_half = graph_make_int("to", dtype_to_onnx(DTYPE_F16));
    net n = open_net(1, 3, dims, &x);
    graph_attribute perm = graph_make_ints(n.g, "perm", 3, (int64_t[]){0, 2, 1});
    x = node(&n, GRAPH_OP_CAST, 1, &x, 1, &to_half);
    y = node(&n, GRAPH_OP_TRANSPOSE, 1, &x, 1, &perm);
    graph_attribute axis = graph_make_int("axis", 1);
    y = node(&n, GRAPH_OP_CONCAT, 2, (graph_value_index[]){y, y}, 1, &axis);
    cpu_plan_facts facts = check_within(&n, y, 0, 0);
    cr_expect_eq(facts.step_count, 3);
}

/* graph_lift_lines: convolutions of one dimension, what lies between them and what reads them. */

static graph_value_index exchange(net *n, graph_value_index x)
{
    graph_attribute perm = graph_make_ints(n->g, "perm", 3, (int64_t[]){0, 2, 1});
    return node(n, GRAPH_OP_TRANSPOSE, 1, &x, 1, &perm);
}

/* A convolution of random geometry along the last axis. */
static graph_value_index convolve_line(net *n, graph_value_index x, int64_t channels, int64_t out,
                                       int64_t groups)
{
    int64_t kernel = 1 + random_below(5), dims[] = {out, channels / groups, kernel};
    int64_t pads[] = {random_below(3), random_below(3)};
    graph_value_index in[] = {x, constant(n, DTYPE_F32, 3, dims, 0.3),
                              constant(n, DTYPE_F32, 1, &out, 0.5)};
    graph_attribute a[] = {graph_make_ints(n->g, "strides", 1, (int64_t[]){1 + random_below(3)}),
                           graph_make_ints(n->g, "pads", 2, pads),
                           graph_make_ints(n->g, "dilations", 1, (int64_t[]){1 + random_below(2)}),
                           graph_make_ints(n->g, "kernel_shape", 1, &kernel),
                           graph_make_int("group", groups)};
    return node(n, GRAPH_OP_CONV, random_below(4) ? 3 : 2, in, 5, a);
}

Test(cpu_fused, convolutions_of_any_geometry)
{
    seed = 11;
    for (int turn = 0; turn < 40; turn++) {
        static const int64_t channels[] = {1, 6, 12}, groups[] = {1, 2, 0};
        int64_t c = channels[random_below(3)], g = groups[random_below(3)];
        g = g == 0 ? c : c % g ? 1 : g;
        int64_t out = g * (1 + random_below(5)), dims[] = {1 + random_below(2), c, 40};
        graph_value_index x;
        net n = open_net(turn, 3, dims, &x);
        x = convolve_line(&n, x, c, out, g);
        x = turn % 3 ? NODE(&n, GRAPH_OP_RELU, x) : x;
        x = convolve_line(&n, x, out, 7, 1);
        cpu_plan_facts facts = check(&n, x, 0);
        cr_expect_eq(facts.fused_layer_count, 2, "turn %d", turn);
    }
}

/* Scales of three dims, beside convolutions that become images: of activations, and one for each
 * channel of the weights. */
Test(cpu_fused, quantised_lines)
{
    seed = 19;
    for (int turn = 0; turn < 16; turn++) {
        int64_t c = 4 + random_below(20), out = 5 + random_below(20), length = 90;
        int64_t dims[] = {1 + turn % 2, c, length}, w[] = {out, c, 3}, last[] = {7, out, 1};
        graph_value_index x;
        net n = open_net(turn, 3, dims, &x);
        x = NODE(&n, GRAPH_OP_CONV, requantise(&n, x, 0.02, 128), weights(&n, 3, w, 0),
                 constant(&n, DTYPE_F32, 1, &out, 0.3));
        x = turn & 2 ? NODE(&n, GRAPH_OP_RELU, x) : x;
        x = NODE(&n, GRAPH_OP_CONV, requantise(&n, x, 0.05, 128), weights(&n, 3, last, 0));
        cpu_plan_facts facts = check(&n, turn & 4 ? requantise(&n, x, 0.02, 128) : x, 0.06);
        cr_expect_eq(facts.quantised_layer_count, 2, "turn %d", turn);
    }
}

/* Of a ConvTranspose only the weights are dequantised beforehand. */
Test(cpu_fused, transposed_convolutions_by_dequantised_weights)
{
    seed = 23;
    for (int turn = 0; turn < 8; turn++) {
        int64_t dims[] = {1, 6, 5, 7}, w[] = {6, 4, 2, 2}, two[] = {2, 2};
        graph_value_index x;
        net n = open_net(turn, 4, dims, &x);
        graph_value_index in[] = {requantise(&n, x, 0.02, 128), weights(&n, 4, w, 1)};
        graph_attribute stride = graph_make_ints(n.g, "strides", 2, two);
        x = node(&n, GRAPH_OP_CONV_TRANSPOSE, 2, in, 1, &stride);
        cpu_plan_facts facts = check(&n, turn & 2 ? requantise(&n, x, 0.05, 128) : x, 0.05);
        cr_expect_eq(facts.fused_layer_count, 1, "turn %d", turn);
    }
}

Test(cpu_fused, depthwise_convolutions_with_several_results_of_a_channel)
{
    seed = 13;
    for (int turn = 0; turn < 16; turn++) {
        int64_t c = 2 + random_below(20), out = c * (2 + random_below(4));
        int64_t dims[] = {1 + turn % 2, c, 9, 7}, w[] = {out, 1, 3, 3};
        graph_value_index x;
        net n = open_net(turn, 4, dims, &x);
        graph_value_index in[] = {x, constant(&n, DTYPE_F32, 4, w, 0.3),
                                  constant(&n, DTYPE_F32, 1, &out, 0.5)};
        graph_attribute a[] = {graph_make_ints(n.g, "pads", 4, (int64_t[]){1, 1, 1, 0}),
                               graph_make_ints(n.g, "strides", 2, (int64_t[]){1 + turn % 3, 1}),
                               graph_make_int("group", c)};
        x = node(&n, GRAPH_OP_CONV, turn % 4 ? 3 : 2, in, 3, a);
        x = turn % 5 ? NODE(&n, GRAPH_OP_RELU, x) : NODE(&n, GRAPH_OP_ADD, x, x);
        cpu_plan_facts facts = check(&n, x, 0);
        cr_expect_eq(facts.fused_layer_count, 1, "turn %d", turn);
    }
}

Test(cpu_fused, pools_pads_sums_and_concatenations)
{
    seed = 12;
    for (int turn = 0; turn < 16; turn++) {
        int64_t dims[] = {2, 5, 40}, one = 1, two = 2;
        graph_value_index x, y;
        net n = open_net(turn, 3, dims, &x);
        graph_attribute pool[] = {graph_make_ints(n.g, "kernel_shape", 1, &two),
                                  graph_make_ints(n.g, "strides", 1, &one),
                                  graph_make_ints(n.g, "pads", 2, (int64_t[]){1, 0})};
        int64_t numbers[] = {0, turn & 1, 3, 0, 0, 2}, w[] = {8, 5, 1};
        graph_value_index in[] = {x, constant(&n, DTYPE_F32, 3, w, 0.3)};
        x = node(&n, GRAPH_OP_CONV, 2, in, 0, NULL);
        /* A slope, and a factor, for each channel; a term for each place. */
        x = NODE(&n, GRAPH_OP_PRELU, x, constant(&n, DTYPE_F32, 2, (int64_t[]){8, 1}, 0.3));
        x = NODE(&n, GRAPH_OP_MUL, constant(&n, DTYPE_F32, 3, (int64_t[]){1, 8, 1}, 1), x);
        x = NODE(&n, GRAPH_OP_ADD, x, constant(&n, DTYPE_F32, 1, (int64_t[]){40}, 1));
        y = node(&n, turn & 2 ? GRAPH_OP_MAX_POOL : GRAPH_OP_AVERAGE_POOL, 1, &x, 3, pool);
        graph_attribute axis = graph_make_int("axis", turn & 4 ? -1 : 1);
        x = node(&n, GRAPH_OP_CONCAT, 2, (graph_value_index[]){x, y}, 1, &axis);
        graph_attribute mode = graph_make_string("mode", turn & 8 ? "reflect" : "constant");
        numbers[1] = turn & 8 ? 0 : numbers[1];
        graph_value_index padded[] = {
            x, graph_add_constant_i64(n.g, NULL, 1, (int64_t[]){6}, numbers)};
        x = node(&n, GRAPH_OP_PAD, 2, padded, 1, &mode);
        int64_t width = (turn & 4 ? 8 : 16) + numbers[1];
        x = convolve_line(&n, x, width, 4, 1);
        check(&n, turn & 1 ? NODE(&n, GRAPH_OP_GLOBAL_AVERAGE_POOL, x) : x, 0);
    }
}

/* [N,L,C] in and out, as sequence models have it. */
Test(cpu_fused, exchanged_axes_on_both_sides)
{
    seed = 13;
    for (int turn = 0; turn < 12; turn++) {
        int64_t dims[] = {1 + turn % 2, 30, 6}, along[] = {6, 1}, w[] = {6, 3}, back[] = {6, 5, 4};
        graph_value_index x;
        net n = open_net(turn, 3, dims, &x);
        graph_value_index y = exchange(&n, x);
        x = convolve_line(&n, y, 6, 6, turn % 3 ? 1 : 6);
        if (turn & 4) /* read as a line as well */
            x = NODE(&n, GRAPH_OP_ADD, x, NODE(&n, GRAPH_OP_REDUCE_MAX, y));
        if (turn & 2) {
            graph_value_index in[] = {x, constant(&n, DTYPE_F32, 3, back, 0.3)};
            graph_attribute stride = graph_make_ints(n.g, "strides", 1, (int64_t[]){2});
            x = node(&n, GRAPH_OP_CONV_TRANSPOSE, 2, in, 1, &stride);
            check(&n, exchange(&n, x), 0);
            continue;
        }
        x = NODE(&n, GRAPH_OP_ADD, x, constant(&n, DTYPE_F32, 2, along, 1));
        x = NODE(&n, GRAPH_OP_MATMUL, exchange(&n, x), constant(&n, DTYPE_F32, 2, w, 0.4));
        cpu_plan_facts facts = check(&n, x, 0);
        cr_expect_eq(facts.fused_layer_count, 2);
    }
}

/* Transposes of the model between the two layouts of an image. */
Test(cpu_fused, images_whose_channels_are_last_already)
{
    seed = 14;
    for (int turn = 0; turn < 8; turn++) {
        int64_t dims[] = {2, 9, 8, 3}, w[] = {5, 3, 3, 3};
        graph_value_index x;
        net n = open_net(turn, 4, dims, &x);
        graph_attribute first = graph_make_ints(n.g, "perm", 4, (int64_t[]){0, 3, 1, 2});
        graph_attribute last = graph_make_ints(n.g, "perm", 4, (int64_t[]){0, 2, 3, 1});
        graph_value_index y = node(&n, GRAPH_OP_TRANSPOSE, 1, &x, 1, &first);
        graph_value_index in[] = {y, constant(&n, DTYPE_F32, 4, w, 0.3)};
        x = node(&n, GRAPH_OP_CONV, 2, in, 0, NULL);
        if (turn & 1) /* the first one is read in its own layout, too */
            x = NODE(&n, GRAPH_OP_ADD, x, NODE(&n, GRAPH_OP_REDUCE_MAX, y));
        graph_value_index z = node(&n, GRAPH_OP_TRANSPOSE, 1, &x, 1, &last);
        if (turn & 2) {
            x = NODE(&n, GRAPH_OP_RELU, x);
            z = NODE(&n, GRAPH_OP_ADD, z, node(&n, GRAPH_OP_TRANSPOSE, 1, &x, 1, &last));
        }
        cpu_plan_facts facts = check(&n, z, 0);
        cr_expect(turn & 3 || facts.step_count == 1, "%d steps", facts.step_count);
    }
}

/* Lines in dynamic quantisation. */
Test(cpu_fused, dynamically_quantised_lines)
{
    seed = 15;
    for (int turn = 0; turn < 8; turn++) {
        int64_t dims[] = {2, 6, 30}, w[] = {9, 6, 3}, along[] = {9, 1}, pads[] = {1, turn & 1};
        graph_value_index x;
        net n = open_net(turn, 3, dims, &x);
        int32_t at = graph_add_node(n.g, GRAPH_OP_DYNAMIC_QUANTIZE_LINEAR, NULL, 1, &x, 3, 0, NULL);
        const graph_value_index *q = n.g->nodes[at].outputs;
        graph_value_index scale = q[1], in[] = {q[0], GRAPH_NO_VALUE, q[2]};
        in[1] = constant(&n, DTYPE_I8, 3, w, 127);
        graph_attribute pad = graph_make_ints(n.g, "pads", 2, pads);
        graph_attribute to = graph_make_int("to", dtype_to_onnx(DTYPE_F32));
        x = node(&n, GRAPH_OP_CONV_INTEGER, 3, in, 1, &pad);
        if (turn & 2)
            x = NODE(&n, GRAPH_OP_ADD, x, constant(&n, DTYPE_I32, 2, along, 4000));
        x = node(&n, GRAPH_OP_CAST, 1, &x, 1, &to);
        x = NODE(&n, GRAPH_OP_MUL, x, NODE(&n, GRAPH_OP_MUL, scale, number(&n, DTYPE_F32, 0.004)));
        x = NODE(&n, GRAPH_OP_ADD, x, constant(&n, DTYPE_F32, 2, along, 0.5));
        cpu_plan_facts facts = check(&n, x, 0);
        cr_expect_eq(facts.quantised_layer_count, 1, "turn %d", turn);
    }
}

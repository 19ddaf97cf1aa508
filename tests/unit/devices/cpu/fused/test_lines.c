/* graph_lift_lines: convolutions of one dimension, what lies between them and what reads them,
 * against the same nodes computed one by one. */
#include <criterion/criterion.h>

#include "tests/unit/devices/cpu/fused/net.h"

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

Test(cpu_lines, convolutions_of_any_geometry)
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

Test(cpu_lines, pools_pads_sums_and_concatenations)
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
Test(cpu_lines, exchanged_axes_on_both_sides)
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
Test(cpu_lines, images_whose_channels_are_last_already)
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

#include "tests/unit/devices/cpu/fused/net.h"

/* Taps in the padding, and where a line is cut among those that are inside. */
Test(cpu_conv_lines, distant_taps)
{
    seed = 17;
    for (int turn = 0; turn < 40; turn++) {
        static const int64_t groups[] = {1, 2, 4};
        int64_t g = groups[random_below(3)], c = g * (1 + random_below(6)), far = 1 + turn % 8;
        int64_t out = g * (1 + random_below(40)), kernel = 2 + random_below(3);
        int64_t w[] = {out, c / g, kernel, kernel}, span = far * (kernel - 1), pads[4];
        int64_t dims[] = {1 + turn % 2, c, span + 5, span + 1 + random_below(30)};
        for (int i = 0; i < 4; i++)
            pads[i] = span - random_below(turn % 3 ? 3 : span + 1) * (span > 2);
        graph_value_index x;
        net n = open_net(turn, 4, dims, &x);
        graph_value_index in[] = {x, constant(&n, DTYPE_F32, 4, w, 0.3),
                                  constant(&n, DTYPE_F32, 1, &out, 0.5)};
        int64_t strides[] = {1 + random_below(2), 1 + random_below(2)};
        graph_attribute a[] = {graph_make_ints(n.g, "pads", 4, pads),
                               graph_make_ints(n.g, "strides", 2, strides),
                               graph_make_ints(n.g, "dilations", 2, (int64_t[]){far, far}),
                               graph_make_int("group", g)};
        x = node(&n, GRAPH_OP_CONV, turn % 4 ? 3 : 2, in, 4, a);
        x = turn % 5 ? NODE(&n, GRAPH_OP_RELU, x) : NODE(&n, GRAPH_OP_ADD, x, x);
        cpu_plan_facts facts = check(&n, x, 0);
        cr_expect_eq(facts.fused_layer_count, 1, "turn %d", turn);
    }
}

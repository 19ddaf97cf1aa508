#include "tests/unit/devices/cpu/fused/net.h"

/* Planned, where weights are packed and windows read in place, against the node alone. */
Test(cpu_conv_volume, any_geometry)
{
    seed = 31;
    for (int turn = 0; turn < 40; turn++) {
        int64_t c = 1 + random_below(6), out = 8 + random_below(40), w[] = {out, c, 0, 0, 0};
        int64_t dims[] = {1 + turn % 2, c, 3 + random_below(4), 5 + random_below(4), 0};
        int64_t strides[3], pads[6], dilations[3];
        dims[4] = 8 + random_below(20);
        for (int i = 0; i < 3; i++) {
            w[2 + i] = 1 + random_below(3);
            strides[i] = 1 + random_below(2);
            dilations[i] = 1 + (turn % 3 == 0 && random_below(2));
            pads[i] = random_below(w[2 + i] + 1);
            pads[3 + i] = random_below(3) + 1;
        }
        graph_value_index x;
        net n = open_net(turn, 5, dims, &x);
        graph_value_index in[] = {x, constant(&n, DTYPE_F32, 5, w, 0.3),
                                  constant(&n, DTYPE_F32, 1, &out, 0.5)};
        graph_attribute a[] = {graph_make_ints(n.g, "strides", 3, strides),
                               graph_make_ints(n.g, "pads", 6, pads),
                               graph_make_ints(n.g, "dilations", 3, dilations)};
        check(&n, node(&n, GRAPH_OP_CONV, turn % 4 ? 3 : 2, in, 3, a), 0);
    }
}

/* The weights of convolutions that are no layer are dequantised once. */
Test(cpu_conv_volume, dequantised_weights)
{
    seed = 37;
    int64_t dims[] = {1, 6, 4, 6, 10}, w[] = {9, 6, 2, 3, 3};
    graph_value_index x;
    net n = open_net(1, 5, dims, &x);
    x = NODE(&n, GRAPH_OP_CONV, x, weights(&n, 5, w, 0));
    cpu_plan_facts facts = check(&n, x, 0);
    cr_expect_eq(facts.step_count, 1);
}

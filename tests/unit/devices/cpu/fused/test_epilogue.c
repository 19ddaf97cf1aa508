/* Activations, sums and moves behind float convolutions, as exporters write them. */
#include "tests/unit/devices/cpu/fused/net.h"

static graph_value_index unary(net *n, graph_op op, graph_value_index x, float alpha, float beta)
{
    graph_attribute a[] = {graph_make_float("alpha", alpha), graph_make_float("beta", beta)};
    return node(n, op, 1, &x, 2, a);
}

static graph_value_index f32(net *n, double x)
{
    return number(n, DTYPE_F32, x);
}

static graph_value_index gate_by_clip(net *n, graph_value_index x, bool divides_first)
{
    graph_value_index y = NODE(n, GRAPH_OP_ADD, x, f32(n, 3));
    y = NODE(n, GRAPH_OP_CLIP, y, f32(n, 0), f32(n, 6));
    if (divides_first)
        return NODE(n, GRAPH_OP_MUL, x, NODE(n, GRAPH_OP_DIV, y, f32(n, 6)));
    return NODE(n, GRAPH_OP_MUL, NODE(n, GRAPH_OP_MUL, x, y), f32(n, 1.0 / 6));
}

#define ACTIVATIONS 16

static graph_value_index activate(net *n, int which, graph_value_index x)
{
    switch (which) {
    case 0:
        return NODE(n, GRAPH_OP_RELU, x);
    case 1:
        return unary(n, GRAPH_OP_LEAKY_RELU, x, 0.2f, 0);
    case 2:
        return NODE(n, GRAPH_OP_CLIP, x, f32(n, -0.5), f32(n, 1.5));
    case 3:
        return unary(n, GRAPH_OP_HARD_SIGMOID, x, 0.3f, 0.4f);
    case 4:
        return NODE(n, GRAPH_OP_HARD_SWISH, x);
    case 5:
        return unary(n, GRAPH_OP_ELU, x, 0.7f, 0);
    case 6:
        return NODE(n, GRAPH_OP_SOFTPLUS, x);
    case 7:
        return NODE(n, GRAPH_OP_MISH, x);
    case 8:
        return NODE(n, GRAPH_OP_MUL, x, NODE(n, GRAPH_OP_SIGMOID, x));
    case 9:
        return NODE(n, GRAPH_OP_MUL, NODE(n, GRAPH_OP_TANH, NODE(n, GRAPH_OP_SOFTPLUS, x)), x);
    case 10:
        return NODE(n, GRAPH_OP_MUL, x, unary(n, GRAPH_OP_HARD_SIGMOID, x, 1 / 6.0f, 0.5f));
    case 11:
    case 12:
        return gate_by_clip(n, x, which == 11);
    case 13: /* and its result scaled */
        x = NODE(n, GRAPH_OP_MUL, gate_by_clip(n, x, true), f32(n, 1.5));
        return NODE(n, GRAPH_OP_ADD, x, f32(n, -0.25));
    case 14:
        return NODE(n, GRAPH_OP_TANH, x);
    default:
        return NODE(n, GRAPH_OP_CLIP, x, f32(n, 0));
    }
}

Test(cpu_epilogue, activations_and_residuals_are_part_of_the_layer)
{
    seed = 11;
    for (int turn = 0; turn < 6 * ACTIVATIONS; turn++) {
        int64_t dims[] = {2, 8, 7, 9}, w[] = {8, turn % 2 ? 1 : 8, 3, 3}, eight = 8;
        graph_value_index x;
        net n = open_net(turn, 4, dims, &x);
        graph_attribute a[] = {graph_make_ints(n.g, "pads", 4, (int64_t[]){1, 1, 1, 1}),
                               graph_make_int("group", turn % 2 ? 8 : 1)};
        graph_value_index in[] = {x, constant(&n, DTYPE_F32, 4, w, 0.4),
                                  constant(&n, DTYPE_F32, 1, &eight, 0.5)};
        graph_value_index y = node(&n, GRAPH_OP_CONV, 3, in, 2, a);
        int kind = turn % 3; /* no residual, before the activation, after it */
        if (kind == 1)
            y = NODE(&n, GRAPH_OP_ADD, y, x);
        y = activate(&n, turn / 6, y);
        if (kind == 2)
            y = NODE(&n, GRAPH_OP_ADD, x, y);
        cpu_plan_facts facts = check(&n, y, 0);
        cr_expect_eq(facts.fused_layer_count, 1);
        /* The image, and the result, transposed: nothing else. */
        cr_expect_eq(facts.step_count, 3, "turn %d: %d steps", turn, facts.step_count);
    }
}

Test(cpu_epilogue, a_gate_that_others_read_stays)
{
    seed = 12;
    int64_t dims[] = {1, 8, 5, 5}, w[] = {8, 8, 1, 1};
    graph_value_index x;
    net n = open_net(0, 4, dims, &x);
    graph_value_index y = NODE(&n, GRAPH_OP_CONV, x, constant(&n, DTYPE_F32, 4, w, 0.4));
    graph_value_index gate = NODE(&n, GRAPH_OP_SIGMOID, y);
    y = NODE(&n, GRAPH_OP_ADD, NODE(&n, GRAPH_OP_MUL, y, gate), gate);
    cpu_plan_facts facts = check(&n, y, 0);
    cr_expect_eq(facts.step_count, 6);
}

static graph_value_index resize(net *n, graph_value_index x, int turn)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const ways[] = {"half_pixel", "asymmetric", "align_corners"};
    graph_attribute a[] = {graph_make_string("mode", modes[turn % 3]),
                           graph_make_string("coordinate_transformation_mode", ways[turn / 3 % 3])};
    int64_t four = 4;
    graph_value_index scales = constant(n, DTYPE_F32, 1, &four, 0);
    float *s = n->g->values[scales].constant->data;
    s[0] = s[1] = 1;
    s[2] = turn % 2 ? 2 : 1.5f;
    s[3] = turn % 5 ? 2 : 0.5f;
    graph_value_index in[] = {x, GRAPH_NO_VALUE, scales};
    return node(n, GRAPH_OP_RESIZE, 3, in, 2, a);
}

/* One node between two convolutions. */
static graph_value_index move(net *n, graph_value_index x, int turn)
{
    int64_t eight = 8, two[] = {2, 3}, slope[] = {6, 1, 1};
    graph_value_index pads = constant(n, DTYPE_I64, 1, &eight, 0), axes;
    int64_t count = 2;
    graph_attribute axis = graph_make_int("axis", 1);
    switch (turn % 5) {
    case 0:
        return resize(n, x, turn / 5);
    case 1:
        for (int i = 0; i < 8; i++)
            ((int64_t *)n->g->values[pads].constant->data)[i] =
                (int64_t[]){0, 1, 2, 0, 0, 0, 1, 3}[i];
        return NODE(n, GRAPH_OP_PAD, x, pads);
    case 2:
        axes = constant(n, DTYPE_I64, 1, &count, 0);
        for (int i = 0; i < 2; i++)
            ((int64_t *)n->g->values[axes].constant->data)[i] = two[i];
        return NODE(n, GRAPH_OP_MUL, x,
                    NODE(n, turn % 2 ? GRAPH_OP_REDUCE_MEAN : GRAPH_OP_REDUCE_MAX, x, axes));
    case 3:
        return node(n, GRAPH_OP_SOFTMAX, 1, &x, 1, &axis);
    default:
        return NODE(n, GRAPH_OP_PRELU, x, constant(n, DTYPE_F32, 3, slope, 0.3));
    }
}

Test(cpu_epilogue, moves_between_convolutions_keep_their_layout)
{
    seed = 13;
    for (int turn = 0; turn < 45; turn++) {
        int64_t dims[] = {2, 6, 6, 8}, w[] = {6, 6, 1, 1};
        graph_value_index x;
        net n = open_net(turn, 4, dims, &x);
        graph_value_index y = NODE(&n, GRAPH_OP_CONV, x, constant(&n, DTYPE_F32, 4, w, 0.4));
        y = move(&n, y, turn);
        graph_value_index more = constant(&n, DTYPE_F32, 4, w, 0.4);
        if (turn % 5 == 1)
            more = constant(&n, DTYPE_F32, 4, (int64_t[]){6, 7, 1, 1}, 0.4);
        y = NODE(&n, GRAPH_OP_CONV, y, more);
        cpu_plan_facts facts = check(&n, y, 0);
        cr_expect_eq(facts.fused_layer_count, 2);
        cr_expect_eq(facts.step_count, turn % 5 == 2 ? 6 : 5, "turn %d: %d steps", turn,
                     facts.step_count);
    }
}

/* A normalisation that no convolution takes, because others read the value before it; a mean; the
 * second part of two, of which nothing reads the first. */
static graph_value_index between(net *n, graph_value_index x, int turn)
{
    int64_t six = 6, two = 2;
    graph_value_index variance = constant(n, DTYPE_F32, 1, &six, 0.3);
    float *v = n->g->values[variance].constant->data;
    for (int i = 0; i < 6; i++)
        v[i] = v[i] * v[i] + 0.5f;
    if (turn % 3 == 0)
        return NODE(n, GRAPH_OP_BATCH_NORMALIZATION, x, constant(n, DTYPE_F32, 1, &six, 1),
                    constant(n, DTYPE_F32, 1, &six, 0.3), constant(n, DTYPE_F32, 1, &six, 0.3),
                    variance);
    if (turn % 3 == 1)
        return NODE(n, GRAPH_OP_MEAN, x, NODE(n, GRAPH_OP_SIGMOID, x));
    graph_value_index sizes = constant(n, DTYPE_I64, 1, &two, 0);
    int64_t *parts = n->g->values[sizes].constant->data;
    parts[0] = 2;
    parts[1] = 4;
    graph_attribute axis = graph_make_int("axis", 1);
    int32_t at = graph_add_node(n->g, GRAPH_OP_SPLIT, "split", 2, (graph_value_index[]){x, sizes},
                                2, 1, &axis);
    graph_value_index *made = n->g->nodes[at].outputs;
    graph_value *part = &n->g->values[made[1]];
    part->dtype = DTYPE_F32;
    part->has_dtype = true;
    part->shape = n->g->values[x].shape;
    part->shape.dims[1] = graph_dim_constant(4);
    made[0] = GRAPH_NO_VALUE;
    return made[1];
}

Test(cpu_epilogue, normalisations_means_and_parts_keep_their_layout)
{
    seed = 17;
    for (int turn = 0; turn < 12; turn++) {
        int64_t dims[] = {2, 6, 6, 8}, w[] = {6, 6, 1, 1};
        graph_value_index x;
        net n = open_net(turn, 4, dims, &x);
        graph_value_index y = NODE(&n, GRAPH_OP_CONV, x, constant(&n, DTYPE_F32, 4, w, 0.4));
        y = between(&n, y, turn);
        w[1] = turn % 3 == 2 ? 4 : 6;
        y = NODE(&n, GRAPH_OP_CONV, y, constant(&n, DTYPE_F32, 4, w, 0.4));
        cpu_plan_facts facts = check(&n, y, 0);
        cr_expect_eq(facts.fused_layer_count, 2);
        cr_expect_eq(facts.step_count, turn % 3 == 2 ? 5 : 6, "turn %d: %d steps", turn,
                     facts.step_count);
    }
}

Test(cpu_epilogue, transposed_convolutions)
{
    seed = 14;
    for (int turn = 0; turn < 40; turn++) {
        int64_t kernel = 1 + random_below(4), stride = 1 + random_below(3);
        int64_t channels = turn % 3 ? 5 : 1, pad = random_below(kernel);
        int64_t dims[] = {2, 7, 5, 6}, w[] = {7, channels, kernel, 2}, pads[] = {pad, 0, 0, 1};
        int64_t steps[] = {stride, 1 + random_below(3)}, dilation = 1 + random_below(2);
        if (turn % 4 == 0) { /* windows lie side by side */
            pads[0] = pads[3] = 0;
            steps[0] = kernel;
            steps[1] = 2;
            dilation = 1;
        }
        graph_value_index x;
        net n = open_net(turn, 4, dims, &x);
        graph_attribute a[] = {graph_make_ints(n.g, "strides", 2, steps),
                               graph_make_ints(n.g, "pads", 4, pads),
                               graph_make_ints(n.g, "dilations", 2, (int64_t[]){dilation, 1})};
        graph_value_index in[] = {x, constant(&n, DTYPE_F32, 4, w, 0.4),
                                  constant(&n, DTYPE_F32, 1, &channels, 0.5)};
        graph_value_index y = node(&n, GRAPH_OP_CONV_TRANSPOSE, turn % 8 < 5 ? 3 : 2, in, 3, a);
        cpu_plan_facts facts = check(&n, activate(&n, turn % ACTIVATIONS, y), 0);
        cr_expect_eq(facts.fused_layer_count, 1);
    }
}

Test(cpu_epilogue, lines_and_volumes_with_small_planes)
{
    seed = 15;
    for (int turn = 0; turn < 40; turn++) {
        bool is_volume = turn % 2, has_bias = turn % 3 != 0;
        int64_t dims[] = {3, 5, 9 + random_below(30), 7, 6}, out = 1 + random_below(40);
        int64_t w[] = {out, 5, 1 + random_below(5), 2, 3};
        int64_t stride = 1 + random_below(3), pad = random_below(3);
        int rank = is_volume ? 5 : 3;
        net n = {.g = graph_create("net")};
        graph_dim shape[5];
        for (int d = 0; d < rank; d++)
            shape[d] = graph_dim_constant(dims[d]);
        graph_value_index x = graph_add_input(n.g, "x", DTYPE_F32, rank, shape);
        size_t spatial = (size_t)rank - 2;
        graph_attribute a[] = {
            graph_make_ints(n.g, "strides", spatial, (int64_t[]){stride, 2, 2}),
            graph_make_ints(n.g, "dilations", spatial, (int64_t[]){1 + random_below(2), 1, 2}),
            graph_make_ints(n.g, "pads", 2 * spatial, (int64_t[]){pad, 1, 0, 2, 1, 1})};
        graph_value_index in[] = {x, constant(&n, DTYPE_F32, rank, w, 0.4),
                                  constant(&n, DTYPE_F32, 1, &out, 0.5)};
        check(&n, node(&n, GRAPH_OP_CONV, has_bias ? 3 : 2, in, 3, a), 0);
    }
}

/* x * Sigmoid(x) of no layer is one step, unless others read the gate. */
Test(cpu_epilogue, a_gated_value_of_no_layer)
{
    seed = 19;
    for (int turn = 0; turn < 6; turn++) {
        int64_t dims[] = {2, 8, 7, 9};
        graph_value_index x;
        net n = open_net(turn, 4, dims, &x);
        graph_value_index gate = NODE(&n, GRAPH_OP_SIGMOID, x);
        graph_value_index y =
            turn % 2 ? NODE(&n, GRAPH_OP_MUL, x, gate) : NODE(&n, GRAPH_OP_MUL, gate, x);
        if (turn > 3)
            y = NODE(&n, GRAPH_OP_ADD, y, gate);
        cpu_plan_facts facts = check(&n, y, 0);
        cr_expect_eq(facts.step_count, turn > 3 ? 3 : 1, "turn %d: %d steps", turn,
                     facts.step_count);
    }
}

/* Factors of channels that a convolution makes follow the image, which is not transposed. */
Test(cpu_epilogue, factors_of_channels_follow_the_image)
{
    seed = 20;
    int64_t dims[] = {1, 8, 7, 9}, w[] = {8, 8, 1, 1};
    graph_value_index x;
    net n = open_net(0, 4, dims, &x);
    graph_value_index mean = NODE(&n, GRAPH_OP_GLOBAL_AVERAGE_POOL, x);
    graph_value_index factors = NODE(&n, GRAPH_OP_CONV, mean, constant(&n, DTYPE_F32, 4, w, 0.4));
    cpu_plan_facts facts = check(&n, NODE(&n, GRAPH_OP_MUL, x, factors), 0);
    cr_expect_eq(facts.step_count, 3, "%d steps", facts.step_count);
}

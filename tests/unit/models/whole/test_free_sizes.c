/* Sizes that a file leaves open. */
#include <criterion/criterion.h>
#include <string.h>

#include "graph/build.h"
#include "models/whole/free_sizes.h"

static const graph_dim any = {.is_unknown = true}, rows = {.batch = 1};

static graph *begin(int rank, const graph_dim *dims, const char *const *names)
{
    graph *g = graph_create("g");
    graph_value_index x = graph_add_input(g, "x", DTYPE_F32, rank, dims);
    g->values[x].dim_names = names;
    return g;
}

static const char *find(graph *g, tensor *shape, arena *memory, status expected)
{
    free_sizes found;
    tensor output;
    status s = free_sizes_find(g, NULL, memory, &found, shape, &output);
    cr_assert_eq(s, expected, "%s", status_message());
    const char *text = s ? "" : free_sizes_text(&found, memory);
    graph_destroy(g);
    return text;
}

Test(free_sizes, sizes_that_nothing_restricts_are_any)
{
    const char *names[] = {"batch", NULL, "height", "width"};
    graph_dim dims[] = {rows, graph_dim_constant(3), any, any};
    graph *g = begin(4, dims, names);
    graph_add_output(g, graph_add(g, GRAPH_OP_RELU, 1, g->inputs, 0, NULL), "y");
    arena memory = {0};
    tensor shape;
    cr_assert_str_eq(find(g, &shape, &memory, STATUS_OK), "height: any; width: any");
    cr_assert_eq(shape.dims[0], 1);
    cr_assert_eq(shape.dims[1], 3);
    arena_dispose(&memory);
}

/* [batch, 1, side] as rows of eight. */
Test(free_sizes, a_stride_makes_steps)
{
    const char *names[] = {"batch", NULL, "side"};
    graph_dim dims[] = {rows, graph_dim_constant(1), any};
    graph *g = begin(3, dims, names);
    graph_value_index shape_of =
        graph_add_constant_i64(g, "to", 1, (int64_t[]){3}, (int64_t[]){0, -1, 8});
    graph_value_index in[] = {g->inputs[0], shape_of};
    graph_add_output(g, graph_add(g, GRAPH_OP_RESHAPE, 2, in, 0, NULL), "y");
    arena memory = {0};
    tensor shape;
    cr_assert_str_eq(find(g, &shape, &memory, STATUS_OK), "side: multiples of 8");
    arena_dispose(&memory);
}

/* A window of 20 frames: a frame less is refused. */
Test(free_sizes, a_window_makes_a_smallest_size)
{
    const char *names[] = {"batch", NULL, "samples"};
    graph_dim dims[] = {rows, graph_dim_constant(1), any};
    graph *g = begin(3, dims, names);
    graph_attribute window = graph_make_ints(g, "kernel_shape", 1, (int64_t[]){20});
    graph_add_output(g, graph_add(g, GRAPH_OP_MAX_POOL, 1, g->inputs, 1, &window), "y");
    arena memory = {0};
    tensor shape;
    cr_assert_str_eq(find(g, &shape, &memory, STATUS_OK), "samples: 20 or more");
    arena_dispose(&memory);
}

/* [side, width] times [32, 2]. */
Test(free_sizes, one_size_alone_may_fit)
{
    const char *names[] = {"side", "width"};
    graph *g = begin(2, (graph_dim[]){any, any}, names);
    float weights[32 * 2] = {0};
    graph_value_index w = graph_add_constant_f32(g, "w", 2, (int64_t[]){32, 2}, weights);
    graph_value_index in[] = {g->inputs[0], w};
    graph_add_output(g, graph_add(g, GRAPH_OP_MATMUL, 2, in, 0, NULL), "y");
    arena memory = {0};
    tensor shape;
    cr_assert_str_eq(find(g, &shape, &memory, STATUS_OK), "side: any; width: 32");
    cr_assert_eq(shape.dims[1], 32);
    arena_dispose(&memory);
}

Test(free_sizes, dims_without_a_name_are_named_by_input_and_place)
{
    graph *g = begin(2, (graph_dim[]){graph_dim_constant(2), any}, NULL);
    graph_add_output(g, graph_add(g, GRAPH_OP_RELU, 1, g->inputs, 0, NULL), "y");
    arena memory = {0};
    tensor shape;
    cr_assert_str_eq(find(g, &shape, &memory, STATUS_OK), "x[1]: any");
    arena_dispose(&memory);
}

static const free_size *find_all(graph *g, arena *memory, free_sizes *found)
{
    tensor shapes[2];
    cr_assert_eq(free_sizes_find(g, NULL, memory, found, shapes, NULL), STATUS_OK, "%s",
                 status_message());
    return found->sizes;
}

Test(free_sizes, the_nearest_refusal_is_kept)
{
    const char *names[] = {"batch", NULL, "samples"};
    graph *g = begin(3, (graph_dim[]){rows, graph_dim_constant(1), any}, names);
    graph_attribute window = graph_make_ints(g, "kernel_shape", 1, (int64_t[]){20});
    graph_add_output(g, graph_add(g, GRAPH_OP_MAX_POOL, 1, g->inputs, 1, &window), "y");
    arena memory = {0};
    free_sizes found;
    const free_size *sizes = find_all(g, &memory, &found);
    cr_assert_eq(sizes[0].step, 1);
    cr_assert_null(sizes[0].refusal);
    cr_assert_eq(sizes[1].refused, 19);
    cr_assert_not_null(strstr(sizes[1].refusal, "a window of 20 does not fit axis 2"));
    graph_destroy(g);
    arena_dispose(&memory);
}

Test(free_sizes, dims_go_by_their_names_or_each_by_its_place)
{
    const char *names[] = {"height", NULL, "height"};
    graph *g = begin(3, (graph_dim[]){any, any, any}, names);
    graph_add_output(g, graph_add(g, GRAPH_OP_RELU, 1, g->inputs, 0, NULL), "y");
    arena memory = {0};
    free_sizes found;
    const free_size *sizes = find_all(g, &memory, &found);
    cr_assert_eq(found.count, 2);
    cr_assert_str_eq(sizes[0].places, "x[0], x[2]");
    cr_assert_str_eq(free_sizes_dims(&found, &memory), "\"height\": SIZE, \"x[1]\": SIZE");
    graph_destroy(g);
    arena_dispose(&memory);
}

/* Tokens without a name are one size, unless any dim may have any size. */
Test(free_sizes, tokens_without_a_name)
{
    graph_dim dims[] = {rows, {.sequence = 1}};
    graph *g = begin(2, dims, NULL);
    (void)graph_add_input(g, "z", DTYPE_F32, 2, dims);
    arena memory = {0};
    free_sizes found;
    cr_assert_eq(free_sizes_list(g, &memory, &found), STATUS_OK);
    cr_assert_eq(found.count, 2);
    cr_assert_str_eq(found.sizes[1].places, "x[1], z[1]");
    cr_assert(found.sizes[1].is_sequence);
    cr_assert_str_eq(free_sizes_dims(&found, &memory), "\"x[1]\": SIZE, \"z[1]\": SIZE");
    cr_assert_str_eq(free_size_text(&found.sizes[1], &memory), "");
    g->is_dynamic = true;
    cr_assert_eq(free_sizes_list(g, &memory, &found), STATUS_OK);
    cr_assert_eq(found.count, 3);
    graph_destroy(g);
    arena_dispose(&memory);
}

/* The largest five of the rows. */
Test(free_sizes, several_rows_are_tried_where_one_is_refused)
{
    graph *g = begin(1, (graph_dim[]){rows}, NULL);
    graph_value_index k = graph_add_constant_i64(g, "k", 1, (int64_t[]){1}, (int64_t[]){5});
    graph_value_index in[] = {g->inputs[0], k};
    int32_t top = graph_add_node(g, GRAPH_OP_TOP_K, NULL, 2, in, 2, 0, NULL);
    graph_add_output(g, g->nodes[top].outputs[0], "y");
    arena memory = {0};
    tensor shape;
    cr_assert_str_eq(find(g, &shape, &memory, STATUS_OK), "");
    cr_assert_eq(shape.dims[0], 8);
    arena_dispose(&memory);
}

Test(free_sizes, where_no_size_fits_the_first_message_stays)
{
    graph *g = begin(2, (graph_dim[]){any, graph_dim_constant(5)}, NULL);
    float weights[4] = {0};
    graph_value_index w = graph_add_constant_f32(g, "w", 2, (int64_t[]){4, 1}, weights);
    graph_value_index in[] = {g->inputs[0], w};
    graph_add_output(g, graph_add(g, GRAPH_OP_MATMUL, 2, in, 0, NULL), "y");
    arena memory = {0};
    tensor shape;
    find(g, &shape, &memory, STATUS_INVALID_ARGUMENT);
    cr_assert(strstr(status_message(), "MatMul") != NULL, "%s", status_message());
    arena_dispose(&memory);
}

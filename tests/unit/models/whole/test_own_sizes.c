/* Sizes that are no rows and tokens. */
#include <criterion/criterion.h>

#include "graph/build.h"
#include "models/whole/own_sizes.h"

static const graph_dim rows = {.batch = 1}, tokens = {.sequence = 1};

static graph_value_index add_input(graph *g, const char *name, graph_dim first, graph_dim second,
                                   const char *const *names)
{
    graph_value_index x = graph_add_input(g, name, DTYPE_F32, 2, (graph_dim[]){first, second});
    g->values[x].dim_names = names;
    return x;
}

static void add_relu(graph *g, graph_value_index x, const char *name)
{
    graph_add_output(g, graph_add(g, GRAPH_OP_RELU, 1, &x, 0, NULL), name);
}

/* `expected`: NULL where the sizes stay. */
static void expect(graph *g, const char *expected)
{
    arena memory = {0};
    const char *why;
    cr_assert_eq(own_sizes_examine(g, NULL, &memory, &why), STATUS_OK, "%s", status_message());
    if (expected == NULL)
        cr_assert_null(why);
    else
        cr_assert_str_eq(why, expected);
    for (int i = 0; i < g->input_count; i++)
        cr_assert_eq(g->values[g->inputs[i]].shape.dims[0].is_unknown, expected != NULL);
    arena_dispose(&memory);
    graph_destroy(g);
}

Test(own_sizes, nodes_and_edges_are_no_rows_and_tokens)
{
    graph *g = graph_create("g");
    const char *nodes[] = {"nodes", NULL}, *edges[] = {"edges", NULL};
    add_relu(g, add_input(g, "x", rows, graph_dim_constant(3), nodes), "y");
    add_relu(g, add_input(g, "e", tokens, graph_dim_constant(2), edges), "z");
    expect(g, "its inputs have sizes of their own: nodes, edges");
}

Test(own_sizes, rows_of_two_names_that_never_meet_are_two_sizes)
{
    graph *g = graph_create("g");
    const char *queries[] = {"queries", NULL}, *documents[] = {"documents", NULL};
    add_relu(g, add_input(g, "q", rows, graph_dim_constant(3), queries), "y");
    add_relu(g, add_input(g, "d", rows, graph_dim_constant(3), documents), "z");
    expect(g, "its inputs have sizes of their own: queries, documents");
}

/* tf2onnx names the rows of each input apart. */
Test(own_sizes, rows_of_two_names_that_are_added_are_one_size)
{
    graph *g = graph_create("g");
    const char *one[] = {"unk__1", NULL}, *two[] = {"unk__2", NULL};
    graph_value_index in[] = {add_input(g, "a", rows, graph_dim_constant(3), one),
                              add_input(g, "b", rows, graph_dim_constant(3), two)};
    graph_add_output(g, graph_add(g, GRAPH_OP_ADD, 2, in, 0, NULL), "y");
    expect(g, NULL);
}

Test(own_sizes, rows_with_tokens_stay)
{
    graph *g = graph_create("g");
    const char *names[] = {"batch", "sequence"};
    add_relu(g, add_input(g, "ids", rows, tokens, names), "y");
    add_relu(g, add_input(g, "positions", rows, tokens, names), "z");
    expect(g, NULL);
}

#include <criterion/criterion.h>
#include <string.h>

#include "devices/pjrt/ranges.h"

/* ids -> Cast -> Gather of a table of 10 rows. */
static graph *make_lookup(void)
{
    graph *g = graph_create("lookup");
    graph_dim dims[] = {graph_dim_constant(2), graph_dim_constant(3)};
    graph_value_index ids = graph_add_input(g, "ids", DTYPE_I64, 2, dims);
    float data[20] = {0};
    int64_t table_dims[] = {10, 2};
    graph_value_index table = graph_add_constant_f32(g, "table", 2, table_dims, data);
    graph_attribute to = graph_make_int("to", 6);
    graph_value_index narrow = graph_add(g, GRAPH_OP_CAST, 1, &ids, 1, &to);
    g->values[narrow].dtype = DTYPE_I32;
    graph_value_index both[] = {table, narrow};
    graph_add_output(g, graph_add(g, GRAPH_OP_GATHER, 2, both, 0, NULL), "y");
    return g;
}

Test(pjrt_ranges, finds_tables_behind_casts, .timeout = 300)
{
    graph *g = make_lookup();
    arena a = {0};
    pjrt_range *ranges;
    cr_assert_eq(pjrt_ranges_find(g, &a, &ranges), 1);
    cr_assert_eq(ranges[0].input, 0);
    cr_assert_eq(ranges[0].limit, 10);
    int64_t ids[6] = {0, 9, -10, 5, -1, 3};
    tensor t = {.dtype = DTYPE_I64, .rank = 2, .dims = {2, 3}, .data = ids};
    cr_assert_eq(pjrt_ranges_check(ranges, 1, &t), STATUS_OK);
    for (int64_t bad = -11; bad <= 10; bad += 21) {
        ids[4] = bad;
        cr_assert_eq(pjrt_ranges_check(ranges, 1, &t), STATUS_INVALID_ARGUMENT);
        cr_assert_not_null(strstr(status_message(), "input \"ids\": "));
        cr_assert_not_null(strstr(status_message(), " at row 1, position 1; ids are 0 to 9"));
    }
    arena_dispose(&a);
    graph_destroy(g);
}

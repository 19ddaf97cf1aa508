/* Parts of the PJRT device that need no plugin: its output in our log, index ranges, messages. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "devices/pjrt/protocol/protocol.h"
#include "devices/pjrt/ranges.h"
#include "devices/pjrt/supervisor/output.h"

Test(pjrt_output, levels_by_the_letter, .timeout = 60)
{
    cr_assert_eq(pjrt_output_level("I0000 00:00:1 a.cc:1] x"), LOG_DEBUG);
    cr_assert_eq(pjrt_output_level("W1231 00:00:1 a.cc:1] x"), LOG_DEBUG);
    cr_assert_eq(pjrt_output_level("E0000 00:00:1 a.cc:1] x"), LOG_WARNING);
    cr_assert_eq(pjrt_output_level("F0000 00:00:1 a.cc:1] x"), LOG_ERROR);
    cr_assert_eq(pjrt_output_level("WARNING: All log messages before"), LOG_DEBUG);
    cr_assert_eq(pjrt_output_level("Error: no such flag"), LOG_INFO);
    cr_assert_eq(pjrt_output_level("F00"), LOG_INFO);
    cr_assert_eq(pjrt_output_level(""), LOG_INFO);
}

Test(pjrt_output, lines_arrive_in_pieces, .timeout = 60)
{
    log_configure(LOG_ERROR, LOG_FORMAT_TEXT);
    static pjrt_output o;
    pjrt_output_feed(&o, "E0000 first", 11);
    cr_assert_str_empty(o.last_words);
    pjrt_output_feed(&o, " line\nI0000 of no ", 18);
    cr_assert_str_eq(o.last_words, "E0000 first line");
    pjrt_output_feed(&o, "interest\n", 9);
    cr_assert_str_eq(o.last_words, "E0000 first line");
    for (int i = 0; i < 3000; i++)
        pjrt_output_feed(&o, "x", 1);
    pjrt_output_flush(&o);
    cr_assert_eq(strlen(o.last_words), sizeof o.last_words - 1);
    cr_assert_eq(o.last_words[0], 'x');
}

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

Test(pjrt_ranges, finds_tables_behind_casts, .timeout = 60)
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

Test(pjrt_protocol, descriptors_travel_and_short_packets_are_refused, .timeout = 60)
{
    int pair[2], fds[3], pipe_fds[2];
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    cr_assert_eq(pipe(pipe_fds), 0);
    pjrt_message m = {.kind = PJRT_LOAD, .id = 7}, got;
    cr_assert_eq(pjrt_send(pair[0], &m, pipe_fds, 2), STATUS_OK);
    cr_assert_eq(pjrt_receive(pair[1], &got, fds), STATUS_OK);
    cr_assert_eq(got.id, 7);
    cr_assert(fds[0] >= 0 && fds[1] >= 0 && fds[2] == -1);
    close(fds[0]);
    close(fds[1]);
    cr_assert_eq(send(pair[0], &m, 10, 0), 10);
    cr_assert_eq(pjrt_receive(pair[1], &got, fds), STATUS_UNAVAILABLE);
    static char large[2 * sizeof m];
    cr_assert_eq(send(pair[0], large, sizeof large, 0), (ssize_t)sizeof large);
    cr_assert_eq(pjrt_receive(pair[1], &got, fds), STATUS_UNAVAILABLE);
    close(pair[0]);
    cr_assert_eq(pjrt_receive(pair[1], &got, fds), STATUS_UNAVAILABLE);
    cr_assert_eq(pjrt_send(pair[1], &m, NULL, 0), STATUS_UNAVAILABLE);
    close(pair[1]);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

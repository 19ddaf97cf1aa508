#include <criterion/criterion.h>
#include <string.h>

#include "devices/pjrt/supervisor/output.h"

Test(pjrt_output, levels_by_the_letter, .timeout = 300)
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

Test(pjrt_output, lines_arrive_in_pieces, .timeout = 300)
{
    log_configure(LOG_ERROR, LOG_FORMAT_TEXT);
    static pjrt_output o;
    pjrt_output_feed(&o, "E0000 first", 11);
    cr_assert_str_empty(o.last_error);
    pjrt_output_feed(&o, " line\nI0000 of no ", 18);
    cr_assert_str_eq(o.last_error, "E0000 first line");
    pjrt_output_feed(&o, "interest\n", 9);
    cr_assert_str_eq(o.last_error, "E0000 first line");
    for (int i = 0; i < 3000; i++)
        pjrt_output_feed(&o, "x", 1);
    pjrt_output_flush(&o);
    cr_assert_eq(strlen(o.last_error), sizeof o.last_error - 1);
    cr_assert_eq(o.last_error[0], 'x');
}

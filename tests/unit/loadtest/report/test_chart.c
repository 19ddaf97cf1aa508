#include "loadtest/report/chart.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

Test(chart, text_cannot_become_markup)
{
    text_buffer b = {0};
    chart_escape(&b, "<script>&\"é\xff\x01\xc3");
    cr_expect_str_eq(text_buffer_string(&b), "&lt;script&gt;&amp;&quot;é???");
    text_buffer_dispose(&b);
}

Test(chart, hard_data_draws_without_nonsense)
{
    double x[] = {0, 1, 2}, y[] = {NAN, NAN, NAN}, zero[] = {0, 0, 0}, same[] = {5, 5, 5};
    const double *const all[] = {y, zero, same};
    for (int axis = CHART_LINEAR; axis <= CHART_PERCENTILE; axis++)
        for (int i = 0; i < 3; i++) {
            text_buffer b = {0};
            chart c = {.title = "t",
                       .x_label = "x",
                       .y_label = "y",
                       .x_axis = axis,
                       .y_axis = axis == CHART_LOG,
                       .series = {{"s", x, all[i], 3, 0, true, false}},
                       .series_count = 1};
            chart_draw(&b, &c);
            const char *text = text_buffer_string(&b);
            cr_expect(strstr(text, "nan") == NULL && strstr(text, "inf") == NULL, "%s", text);
            text_buffer_dispose(&b);
        }
}

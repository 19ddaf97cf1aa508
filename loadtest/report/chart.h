#ifndef LOADTEST_REPORT_CHART_H
#define LOADTEST_REPORT_CHART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text/text_buffer.h"

/* Line charts and bars as SVG, for a page that brings its own style: classes s0..s5 colour the
 * series, the page defines them. Pure. */
#define CHART_SERIES_MAX 6

typedef enum chart_axis { CHART_LINEAR, CHART_LOG, CHART_PERCENTILE } chart_axis;

typedef struct chart_series {
    const char *name;
    const double *x, *y; /* borrowed; a NaN in y breaks the line */
    size_t count;
    int color; /* 0 to 5 */
    bool dots, dashed;
} chart_series;

typedef struct chart {
    const char *title, *x_label, *y_label;
    chart_axis x_axis,
        y_axis; /* CHART_PERCENTILE: x is a quantile from 0 to 1, drawn as its nines */
    chart_series series[CHART_SERIES_MAX];
    size_t series_count;
    double line_y; /* a limit, drawn across; 0: none */
} chart;

/* A <figure> with legend and picture. Nothing is drawn where there is no point. */
void chart_draw(text_buffer *to, const chart *c);

/* Horizontal bars. `values` holds count rows of `columns` numbers. */
void chart_bars(text_buffer *to, const char *title, const char *unit, const char *const *names,
                const char *const *column_names, const double *values, size_t count,
                size_t columns);

/* Text with <, >, & and quotes made harmless; what is not UTF-8 or a control character is '?'. */
void chart_escape(text_buffer *to, const char *text);

#endif

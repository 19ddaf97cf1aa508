#ifndef LOADTEST_REPORT_REPORT_H
#define LOADTEST_REPORT_REPORT_H

#include "loadtest/report/result.h"

#include <stdio.h>

/* The report of one run, or of the runs of a search. */
typedef struct report_point {
    double rate, rate_sent, goodput, p50_ms, p95_ms, p99_ms, failed_share;
    bool held, confirmation, aborted;
} report_point;

#define REPORT_POINTS_MAX 160
typedef struct report {
    const char *title; /* may be NULL */
    const result *result;
    const result_slo *slo;
    size_t slo_count;
    const char *search;      /* NULL, "find_max" or "sweep" */
    double dollars_per_hour; /* that the servers cost; 0: not known */
    double found_rate;       /* of find_max; 0: none meets the SLO, or it was cut short */
    bool cut_short;          /* by a signal, in a run or between two */
    report_point points[REPORT_POINTS_MAX];
    size_t point_count;
} report;

report_point report_point_of(const result *r, const result_slo *slo, size_t slo_count);

/* With all of the servers' time, idle or not; 0: not known. */
double report_dollars_per_million_tokens(const report *p);

/* The table for people. */
void report_text(const report *p, FILE *to);
/* docs/load-testing.md describes every key. */
status report_json(const report *p, const char *path) MUST_CHECK;
/* One line per slice of the window, or per run of a search. */
status report_csv(const report *p, const char *path) MUST_CHECK;
/* One self-contained page. `other` may be NULL: a second result drawn beside the first. */
status report_html(const report *p, const result *other, const char *path) MUST_CHECK;
/* Two results side by side. */
void report_compare(const result *a, const result *b, const char *a_name, const char *b_name,
                    FILE *to);

/* Reads what report_json wrote. `r` must be zeroed; result_dispose it. */
status report_read(result *r, const char *path) MUST_CHECK;

/* "-" is standard output. */
status report_write(const char *path, const char *text, size_t bytes) MUST_CHECK;

/* The quantiles that reports list: name and value from 0 to 1; the last has name NULL. */
typedef struct report_quantile {
    const char *name;
    double q;
} report_quantile;
extern const report_quantile report_quantiles[];

#endif

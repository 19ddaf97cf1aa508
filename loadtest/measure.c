#include "loadtest/measure.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "loadtest/run/search.h"

#define PROBE_PAUSE_US 200000
#define SPIN_SHARE 0.02
#define SPIN_NS_MAX 50000.0

/* How long to poll before each request. A timer fires some 30 us late; polling avoids that, but may
 * cost at most SPIN_SHARE of a core. */
static uint64_t usual_spin_ns(double rate)
{
    double budget_ns = rate > 0 ? SPIN_SHARE * 1e9 / rate : 0;
    return (uint64_t)(budget_ns < SPIN_NS_MAX ? budget_ns : SPIN_NS_MAX);
}

status measure_once(session *p, result *out)
{
    result_dispose(out);
    memset(out, 0, sizeof *out);
    p->plan.setup.rate_target =
        p->plan.worker.arrivals ? arrival_mean_rate(p->plan.worker.arrivals) : 0;
    if (!p->options.spin_given)
        p->plan.worker.spin_ns = usual_spin_ns(p->plan.setup.rate_target);
    p->plan.setup.seed = p->plan.worker.seed;
    p->plan.setup.started_wall_ns = clock_wall_ns();
    p->plan.stop = p->stop;
    return run_execute(&p->plan, out);
}

static status run_at_rate(session *p, double rate, result *out, const char *label)
{
    p->options.arrivals.rate = rate;
    if (p->options.arrivals.kind == ARRIVAL_BURST)
        p->options.arrivals.burst_period_ns = 0;
    if (arrival_count(&p->options.arrivals) == 0)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "%.3g/s makes no request within the duration: use a longer --duration",
                           rate);
    p->plan.worker.seed++; /* another draw of the same process */
    p->plan.label = label;
    status s = measure_once(p, out);
    usleep(PROBE_PAUSE_US); /* lets the server's queues empty */
    return s;
}

/* Prints a run of a search on standard error. */
static void print_point(const session *p, const report_point *at, const char *what)
{
    if (!p->options.quiet)
        fprintf(stderr, "%-12s %9.1f/s  p50 %.2f  p95 %.2f  p99 %.2f ms  errors %.2f%%%s%s\n", what,
                at->rate, at->p50_ms, at->p95_ms, at->p99_ms, at->failed_share * 100,
                p->options.slo_count == 0 ? ""
                : at->held                ? "  met"
                                          : "  not met",
                at->aborted ? ", stopped early" : "");
}

static report_point *add_point(session *p, const result *r)
{
    report *to = &p->report;
    if (to->point_count == REPORT_POINTS_MAX)
        return &to->points[REPORT_POINTS_MAX - 1];
    to->points[to->point_count] = report_point_of(r, p->options.slo, p->options.slo_count);
    return &to->points[to->point_count++];
}

/* A first guess at the rate: a short closed loop of 16 requests at a time. */
static status guess_rate(session *p, double *rate)
{
    run_plan saved = p->plan;
    result r = {0};
    uint64_t duration_ns =
        p->options.duration_ns < 2000000000u ? p->options.duration_ns : 2000000000u;
    p->plan.worker.arrivals = NULL;
    p->plan.worker.concurrency = 16;
    p->plan.worker.duration_ns = p->plan.setup.duration_ns = duration_ns;
    p->plan.worker.warm_up_ns = duration_ns / 2;
    p->plan.stop_when_lost = false;
    p->plan.live = -1;
    snprintf(p->plan.setup.loop, sizeof p->plan.setup.loop, "closed");
    status s = measure_once(p, &r);
    if (!s && *p->stop)
        s = status_fail(STATUS_CANCELLED, "stopped by a signal before anything was measured");
    if (!s && r.succeeded == 0)
        s = status_fail(STATUS_UNAVAILABLE, "no request succeeded: %s",
                        r.reasons[REQUEST_HTTP_OTHER][0] ? r.reasons[REQUEST_HTTP_OTHER]
                                                         : "a run with --concurrency 1 shows why");
    if (!s) {
        *rate = 0.7 * result_rate(&r);
        if (!p->options.quiet)
            fprintf(stderr, "16 requests at a time: %.1f/s\n", result_rate(&r));
    }
    result_dispose(&r);
    p->plan = saved;
    return s;
}

status measure_find_max(session *p)
{
    static const char *const stages[] = {"bracket", "narrow", "confirm"};
    double start = p->options.rate;
    status s = start > 0 ? STATUS_OK : guess_rate(p, &start);
    if (s)
        return s;
    search at;
    search_begin(&at, start, p->options.resolution, p->options.confirmations);
    p->report.search = "find_max";
    p->plan.stop_when_lost = true;
    result last = {0};
    double kept = 0;
    while (at.stage != SEARCH_DONE && !*p->stop) {
        double rate = at.rate;
        const char *stage = stages[at.stage];
        s = run_at_rate(p, rate, &last, "  ");
        if (s)
            break;
        report_point *point = add_point(p, &last);
        point->confirmation = at.stage == SEARCH_CONFIRM;
        print_point(p, point, stage);
        /* Report the last run that met the SLO. */
        if (point->held || kept == 0) {
            result_dispose(&p->result);
            p->result = last;
            memset(&last, 0, sizeof last);
            kept = point->held ? rate : 0;
        }
        search_tell(&at, point->held);
    }
    result_dispose(&last);
    p->report.found_rate = !s && at.stage == SEARCH_DONE ? at.rate : 0;
    return s;
}

status measure_sweep(session *p)
{
    status s = STATUS_OK;
    p->report.search = "sweep";
    result last = {0};
    for (size_t i = 0; i < p->options.sweep_count && !s && !*p->stop; i++) {
        s = run_at_rate(p, p->options.sweep[i], &last, "  ");
        if (s)
            break;
        report_point *point = add_point(p, &last);
        print_point(p, point, "sweep");
        bool better = p->options.slo_count == 0 || point->held || p->result.slices == NULL;
        if (better) { /* report the last run, or the last that met the SLO */
            result_dispose(&p->result);
            p->result = last;
            memset(&last, 0, sizeof last);
        }
        if (point->held)
            p->report.found_rate = point->rate;
    }
    result_dispose(&last);
    return s;
}

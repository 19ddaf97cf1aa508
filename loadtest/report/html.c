#include "base/text/text_buffer.h"
#include "loadtest/report/report.h"
#include "loadtest/wire/memory.h"

#include "loadtest/report/chart.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char style[] =
    "<style>\n"
    ":root{color-scheme:light dark;--ink:#1c2128;--soft:#59636e;--line:#d9dee3;--back:#fff;"
    "--card:#f5f7f9;--bad:#c6282d;--good:#1a7f37;--c0:#1f6fd1;--c1:#e07a10;--c2:#b3246b;"
    "--c3:#138a72;--c4:#6f55c9;--c5:#7a828c}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6eaee;--soft:#9aa5b1;--line:#343b44;"
    "--back:#14181d;--card:#1e242b;--bad:#ff7b72;--good:#56d364;--c0:#5aa2f2;--c1:#f0a04b;"
    "--c2:#ee6fae;--c3:#43c4a8;--c4:#a893f0;--c5:#9aa5b1}}\n"
    "*{box-sizing:border-box}body{margin:0 "
    "auto;max-width:1180px;padding:16px;background:var(--back);"
    "color:var(--ink);font:15px/1.45 system-ui,sans-serif}h1{font-size:1.35rem;margin:.2em 0;"
    "overflow-wrap:anywhere}h2{font-size:1.1rem;margin:1.6em 0 .5em}\n"
    ".soft,figcaption{color:var(--soft)}.cards{display:grid;gap:10px;margin:16px 0;"
    "grid-template-columns:repeat(auto-fit,minmax(130px,1fr))}.card{background:var(--card);"
    "border-radius:8px;padding:10px 12px}.card b{display:block;font-size:1.35rem;"
    "font-variant-numeric:tabular-nums}\n"
    ".bad{color:var(--bad)}.good{color:var(--good)}.charts{display:grid;gap:18px;"
    "grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr))}figure{margin:0;"
    "background:var(--card);border-radius:8px;padding:12px;min-width:0}figcaption b{"
    "color:var(--ink)}\n"
    ".legend{margin:4px 0;font-size:.87rem}.legend span{margin-right:12px;white-space:nowrap}"
    ".key{display:inline-block;width:14px;height:4px;margin:0 5px 3px 0;background:var(--c)}"
    "svg{width:100%;height:auto;display:block}svg text{font:14px system-ui,sans-serif;"
    "fill:var(--soft)}\n"
    ".grid{stroke:var(--line);fill:none}.line{fill:none;stroke:var(--c);stroke-width:2.2;"
    "stroke-linejoin:round}.dashed{stroke-dasharray:6 4}.limit{stroke:var(--bad);fill:none;"
    "stroke-dasharray:3 4;stroke-width:1.5}.dot,.bar{fill:var(--c)}\n"
    ".s0{--c:var(--c0)}.s1{--c:var(--c1)}.s2{--c:var(--c2)}.s3{--c:var(--c3)}.s4{--c:var(--c4)}"
    ".s5{--c:var(--c5)}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;width:100%;"
    "font-variant-numeric:tabular-nums;font-size:.92rem}th,td{padding:4px 10px 4px 0;"
    "text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}th:first-child,"
    "td:first-child{text-align:left}td.text{text-align:left;white-space:normal;"
    "overflow-wrap:anywhere}\n"
    "p{overflow-wrap:anywhere}td.text{min-width:190px}@media(max-width:560px){svg text{"
    "font-size:20px}svg.bars text{font-size:17px}}\n"
    ".warning{border-left:4px solid var(--bad);background:var(--card);padding:8px 12px;"
    "border-radius:4px}\n"
    "</style>\n";

static double ms(const histogram *h, double q)
{
    return (double)histogram_quantile(h, q) / 1e6;
}

static void card(text_buffer *b, const char *name, const char *value, const char *class)
{
    text_buffer_format(b, "<div class=\"card %s\"><b>", class);
    chart_escape(b, value);
    text_buffer_put(b, "</b>");
    chart_escape(b, name);
    text_buffer_put(b, "</div>\n");
}

static void number_card(text_buffer *b, const char *name, double value, const char *unit)
{
    char text[48];
    const char *format = value >= 1000 ? "%.0f%s" : value >= 100 ? "%.1f%s" : "%.3g%s";
    snprintf(text, sizeof text, format, value, unit);
    card(b, name, text, "");
}

static void head(text_buffer *b, const report *p)
{
    const result *r = p->result;
    const result_setup *s = &r->setup;
    const char *title = p->title ? p->title : s->model[0] ? s->model : s->url;
    text_buffer_put(
        b, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
           "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>");
    chart_escape(b, title);
    text_buffer_put(b, ", load test</title>\n");
    text_buffer_put(b, style);
    text_buffer_put(b, "</head><body>\n<h1>");
    chart_escape(b, title);
    text_buffer_put(b, "</h1>\n<p class=\"soft\">");
    chart_escape(b, s->url);
    text_buffer_format(b, "<br>%s, %s, ", s->protocol, s->format);
    if (strcmp(s->loop, "closed") == 0) {
        text_buffer_format(
            b,
            "<b>closed loop</b>, %u requests at a time: it waits for the server, so a stall also "
            "delays later requests and hides itself",
            s->concurrency);
    } else {
        text_buffer_put(b, "<b>open loop</b>, ");
        chart_escape(b, s->arrivals);
        text_buffer_format(b, ", %.6g/s: latency counts from the intended time", s->rate_target);
    }
    text_buffer_format(
        b, "<br>%.6g s after %.6g s of warm-up, %u connections, %s, seed %" PRIu64 "<br>",
        (double)s->duration_ns / 1e9, (double)s->warm_up_ns / 1e9, s->connections, s->io, s->seed);
    chart_escape(b, s->machine);
    text_buffer_put(b, "</p>\n");
}

static void cards(text_buffer *b, const report *p)
{
    const result *r = p->result;
    char text[64];
    text_buffer_put(b, "<div class=\"cards\">\n");
    if (p->search != NULL && strcmp(p->search, "find_max") == 0)
        number_card(b, "highest rate within the SLO", p->found_rate, "/s");
    number_card(b, "succeeded", result_rate(r), "/s");
    if (p->slo_count != 0)
        number_card(b, "goodput", result_goodput(r), "/s");
    number_card(b, "p50", ms(&r->latency, 0.5), " ms");
    number_card(b, "p95", ms(&r->latency, 0.95), " ms");
    number_card(b, "p99", ms(&r->latency, 0.99), " ms");
    uint64_t failed = result_failed(r);
    snprintf(text, sizeof text, "%.3g%%", r->sent ? 100.0 * (double)failed / (double)r->sent : 0);
    card(b, "errors", text, failed ? "bad" : "");
    for (size_t i = 0; i < p->slo_count; i++) {
        double measured;
        bool held = result_slo_held(r, &p->slo[i], &measured);
        card(b, p->slo[i].text, held ? "met" : "not met", held ? "good" : "bad");
    }
    text_buffer_put(b, "</div>\n");
    if (p->cut_short)
        text_buffer_format(
            b,
            "<p class=\"warning\">Cut short by a signal: the report covers what was measured "
            "until then. %" PRIu64 " requests had no response yet and are in no quantile.</p>\n",
            r->unfinished);
    char warning[256];
    if (result_bottleneck(r, warning, sizeof warning) != NULL) {
        text_buffer_put(b, "<p class=\"warning\">");
        chart_escape(b, warning);
        text_buffer_put(b, "</p>\n");
    }
}

/* A linear axis reads best; a logarithmic one is needed where a spike would flatten the rest. */
static chart_axis axis_for(double least, double most)
{
    return least > 0 && most > 40 * least ? CHART_LOG : CHART_LINEAR;
}

/* Over time: latencies, then rates. */
static void over_time(text_buffer *b, const report *p)
{
    const result *r = p->result;
    unsigned n = r->slice_count;
    double seconds = (double)r->slice_ns / 1e9, least = INFINITY, most = 0;
    double *all = memory_allocate((size_t)n * 7, sizeof *all);
    double *t = all, *p50 = t + n, *p95 = p50 + n, *p99 = p95 + n, *sent = p99 + n;
    double *succeeded = sent + n, *failed = succeeded + n;
    for (unsigned i = 0; i < n; i++) {
        const result_slice *s = &r->slices[i];
        /* The last slice may be cut by the end of the window. */
        double end = fmin((i + 1) * seconds, (double)r->setup.duration_ns / 1e9);
        double span = fmax(end - i * seconds, 1e-9);
        bool any = s->latency.count != 0;
        t[i] = (i + 0.5) * seconds;
        p50[i] = any ? ms(&s->latency, 0.5) : NAN;
        p95[i] = any ? ms(&s->latency, 0.95) : NAN;
        p99[i] = any ? ms(&s->latency, 0.99) : NAN;
        sent[i] = (double)s->sent / span;
        succeeded[i] = (double)s->succeeded / span;
        failed[i] = (double)s->failed / span;
        if (any) {
            least = fmin(least, p50[i]);
            most = fmax(most, p99[i]);
        }
    }
    chart latency = {.title = "Latency over time",
                     .x_label = "seconds, by intended send time",
                     .y_label = "ms",
                     .y_axis = axis_for(least, most),
                     .series = {{"p99", t, p99, n, 2, false, false},
                                {"p95", t, p95, n, 1, false, false},
                                {"p50", t, p50, n, 0, false, false}},
                     .series_count = 3,
                     .line_y = (double)result_slo_limit_ns(p->slo, p->slo_count) / 1e6};
    chart_draw(b, &latency);
    chart rate = {.title = "Rate over time",
                  .x_label = "seconds, by intended send time",
                  .y_label = "requests per second",
                  .series = {{"sent", t, sent, n, 5, false, true},
                             {"succeeded", t, succeeded, n, 3, false, false},
                             {"failed", t, failed, n, 2, false, false}},
                  .series_count = result_failed(r) ? 3 : 2};
    chart_draw(b, &rate);
    free(all);
}

#define CURVE_POINTS 100

/* The quantiles of `h`, closer together towards the tail, as far as its count can tell. */
static size_t curve(const histogram *h, double *x, double *y)
{
    double nines = fmin(log10(fmax((double)h->count, 2)), 6);
    for (size_t i = 0; i < CURVE_POINTS; i++) {
        double q = 1 - pow(10, -nines * (double)i / (CURVE_POINTS - 1));
        x[i] = fmin(q, 1 - 1e-9);
        y[i] = ms(h, x[i]);
    }
    return h->count ? CURVE_POINTS : 0;
}

static void percentile_curve(text_buffer *b, const result *r, const result *other)
{
    static double x[5][CURVE_POINTS], y[5][CURVE_POINTS]; /* reports are written one at a time */
    chart c = {.title = other ? "Percentiles, A and B" : "Percentiles",
               .x_label = "of the requests",
               .y_label = "ms",
               .x_axis = CHART_PERCENTILE,
               .y_axis = CHART_LOG};
    const struct {
        const char *name;
        const histogram *h;
        int color;
        bool dashed, wanted;
    } list[] = {
        {other ? "A" : "latency", &r->latency, 0, false, true},
        {"B", other ? &other->latency : NULL, 1, false, other != NULL},
        {"from the actual send", &r->service, 5, true,
         !other && strcmp(r->setup.loop, "open") == 0},
        {"server-reported", &r->server, 3, false, !other && r->server.count != 0},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        size_t n = list[i].wanted ? curve(list[i].h, x[i], y[i]) : 0;
        if (n != 0)
            c.series[c.series_count++] =
                (chart_series){list[i].name, x[i], y[i], n, list[i].color, false, list[i].dashed};
    }
    chart_draw(b, &c);
}

/* A search comes to one rate several times: its last whole run there, or the last if none was. */
static bool is_the_one_to_draw(const report *p, size_t i)
{
    const report_point *at = &p->points[i];
    for (size_t k = 0; k < p->point_count; k++) {
        const report_point *other = &p->points[k];
        if (k == i || fabs(other->rate - at->rate) > 0.001 * at->rate)
            continue;
        if (at->aborted ? !other->aborted || k > i : !other->aborted && k > i)
            return false;
    }
    return true;
}

static void against_rate(text_buffer *b, const report *p)
{
    size_t n = p->point_count;
    if (n == 0)
        return;
    /* In order of rate: a search goes to and fro. */
    double *all = memory_allocate(n * 5, sizeof *all);
    double *x = all, *y50 = x + n, *y95 = y50 + n, *y99 = y95 + n, *good = y99 + n;
    size_t used = 0;
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < n; i++) {
        const report_point *at = &p->points[i];
        if (!is_the_one_to_draw(p, i))
            continue;
        size_t to = used++;
        for (; to > 0 && x[to - 1] > at->rate; to--) {
            x[to] = x[to - 1];
            y50[to] = y50[to - 1];
            y95[to] = y95[to - 1];
            y99[to] = y99[to - 1];
            good[to] = good[to - 1];
        }
        x[to] = at->rate;
        y50[to] = at->p50_ms;
        y95[to] = at->p95_ms;
        y99[to] = at->p99_ms;
        good[to] = at->goodput;
        least = fmin(least, at->p50_ms);
        most = fmax(most, at->p99_ms);
    }
    chart latency = {.title = "Latency against rate",
                     .x_label = "requests per second offered",
                     .y_label = "ms",
                     .y_axis = axis_for(least, most),
                     .series = {{"p99", x, y99, used, 2, true, false},
                                {"p95", x, y95, used, 1, true, false},
                                {"p50", x, y50, used, 0, true, false}},
                     .series_count = 3,
                     .line_y = (double)result_slo_limit_ns(p->slo, p->slo_count) / 1e6};
    chart_draw(b, &latency);
    chart goodput = {
        .title = p->slo_count ? "Goodput against rate" : "Throughput against rate",
        .x_label = "requests per second offered",
        .y_label = p->slo_count ? "successful requests per second within the SLO"
                                : "successful requests per second",
        .series = {{"offered", x, x, used, 5, false, true},
                   {p->slo_count ? "goodput" : "succeeded", x, good, used, 3, true, false}},
        .series_count = 2};
    chart_draw(b, &goodput);
    free(all);
}

static void stages(text_buffer *b, const result *r)
{
    if (r->server.count == 0)
        return;
    static const char *const columns[] = {"p50", "p99"};
    const char *names[RESULT_STAGES_MAX + 1];
    double values[(RESULT_STAGES_MAX + 1) * 2];
    size_t n = 0;
    for (; n < r->stage_count; n++) {
        names[n] = r->stages[n].name;
        values[2 * n] = ms(&r->stages[n].duration, 0.5);
        values[2 * n + 1] = ms(&r->stages[n].duration, 0.99);
    }
    chart_bars(b, "Stages of the server", "ms, from Server-Timing", names, columns, values, n, 2);
    static const char *const sides[] = {"client", "server"};
    static const char *const rows[] = {"p50", "p95", "p99"};
    double beside[6] = {ms(&r->latency_ok, 0.5), ms(&r->server, 0.5),      ms(&r->latency_ok, 0.95),
                        ms(&r->server, 0.95),    ms(&r->latency_ok, 0.99), ms(&r->server, 0.99)};
    chart_bars(b, "The same requests, measured by client and server", "ms", rows, sides, beside, 3,
               2);
}

static void row(text_buffer *b, const char *name, const histogram *h)
{
    text_buffer_put(b, "<tr><td>");
    chart_escape(b, name);
    text_buffer_format(b, "</td><td>%" PRIu64 "</td><td>%.3f</td>", (uint64_t)h->count,
                       h->count ? (double)h->sum / (double)h->count / 1e6 : 0);
    for (const report_quantile *q = report_quantiles; q->name != NULL; q++)
        text_buffer_format(b, "<td>%.3f</td>", ms(h, q->q));
    text_buffer_format(b, "<td>%.3f</td></tr>\n", (double)h->max / 1e6);
}

static void latency_table(text_buffer *b, const result *r, const result *other)
{
    text_buffer_put(b,
                    "<h2>Latency, ms</h2><div class=\"wide\"><table><tr><th></th><th>requests</th>"
                    "<th>mean</th>");
    for (const report_quantile *q = report_quantiles; q->name != NULL; q++)
        text_buffer_format(b, "<th>%s</th>", q->name);
    text_buffer_put(b, "<th>max</th></tr>\n");
    row(b, other ? "A" : "latency", &r->latency);
    if (other != NULL) {
        row(b, "B", &other->latency);
    } else {
        if (result_failed(r) != 0)
            row(b, "successful only", &r->latency_ok);
        row(b, "from the actual send", &r->service);
        if (r->server.count != 0)
            row(b, "server-reported", &r->server);
        for (unsigned i = 0; i < r->stage_count; i++)
            row(b, r->stages[i].name, &r->stages[i].duration);
        if (r->connection_wait.count != 0)
            row(b, "wait for a connection", &r->connection_wait);
        if (r->lag.count != 0)
            row(b, "client lag", &r->lag);
    }
    text_buffer_put(b, "</table></div>\n");
    if (result_failed(r) != 0)
        text_buffer_format(
            b, "<p class=\"soft\">A failed request counts as its timeout, %.6g s.</p>\n",
            (double)r->setup.timeout_ns / 1e9);
}

static void errors_table(text_buffer *b, const result *r)
{
    if (result_failed(r) == 0)
        return;
    text_buffer_put(b, "<h2>Errors by kind</h2><div class=\"wide\"><table><tr><th></th><th>requests"
                       "</th><th>share</th><th style=\"text-align:left\">first</th></tr>\n");
    for (int k = 0; k < REQUEST_ERROR_COUNT; k++) {
        if (r->errors[k] == 0)
            continue;
        text_buffer_format(b,
                           "<tr><td>%s</td><td>%" PRIu64 "</td><td>%.3g%%</td><td class=\"text\">",
                           result_error_text((request_error)k), (uint64_t)r->errors[k],
                           100.0 * (double)r->errors[k] / (double)r->sent);
        chart_escape(b, r->reasons[k]);
        text_buffer_put(b, "</td></tr>\n");
    }
    text_buffer_put(b, "</table></div>\n");
}

static void runs_table(text_buffer *b, const report *p)
{
    if (p->point_count == 0)
        return;
    text_buffer_put(b,
                    "<h2>Runs</h2><div class=\"wide\"><table><tr><th>rate/s</th><th>goodput/s</th>"
                    "<th>p50 ms</th><th>p95 ms</th><th>p99 ms</th><th>errors</th><th></th></tr>\n");
    for (size_t i = 0; i < p->point_count; i++) {
        const report_point *at = &p->points[i];
        text_buffer_format(
            b,
            "<tr><td>%.1f</td><td>%.1f</td><td>%.3f</td><td>%.3f</td><td>%.3f</td>"
            "<td>%.2f%%</td><td class=\"text\">%s%s%s</td></tr>\n",
            at->rate, at->goodput, at->p50_ms, at->p95_ms, at->p99_ms, at->failed_share * 100,
            p->slo_count == 0 ? ""
            : at->held        ? "met"
                              : "not met",
            at->confirmation ? ", confirmation" : "", at->aborted ? ", stopped early" : "");
    }
    text_buffer_put(b, "</table></div>\n");
}

static void foot(text_buffer *b, const result *r)
{
    text_buffer_format(
        b,
        "<p class=\"soft\">Client: the busiest thread used %.0f%% of a core; %" PRIu64
        " connections opened, %" PRIu64 " lost, %" PRIu64
        " requests sent again that the server had not processed",
        r->loop_busy * 100, r->connections_opened, r->connections_lost, r->retries);
    if (r->steal_share > 0.005)
        text_buffer_format(b, "; %.1f%% of the CPU time went to other virtual machines (steal)",
                           r->steal_share * 100);
    text_buffer_put(b, ". Quantiles are within 1%.</p>\n</body></html>\n");
}

status report_html(const report *p, const result *other, const char *path)
{
    text_buffer b = {0};
    head(&b, p);
    if (other != NULL) {
        text_buffer_put(&b, "<p class=\"soft\">A is the run above; B is ");
        chart_escape(&b, other->setup.url);
        text_buffer_format(&b, ", %s loop, %s, %.6g/s</p>\n", other->setup.loop,
                           other->setup.protocol, other->setup.rate_target);
    }
    cards(&b, p);
    text_buffer_put(&b, "<div class=\"charts\">\n");
    against_rate(&b, p);
    percentile_curve(&b, p->result, other);
    over_time(&b, p);
    if (other != NULL) {
        report second = {.result = other};
        text_buffer_put(&b, "</div><h2>B over time</h2><div class=\"charts\">\n");
        over_time(&b, &second);
    } else {
        stages(&b, p->result);
    }
    text_buffer_put(&b, "</div>\n");
    runs_table(&b, p);
    latency_table(&b, p->result, other);
    errors_table(&b, p->result);
    foot(&b, p->result);
    status s = report_write(path, text_buffer_string(&b), b.bytes);
    text_buffer_dispose(&b);
    return s;
}

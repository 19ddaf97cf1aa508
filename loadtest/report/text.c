#include "base/text/text_buffer.h"
#include "loadtest/report/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

report_point report_point_of(const result *r, const result_slo *slo, size_t slo_count)
{
    return (report_point){
        .rate = r->setup.rate_target > 0 ? r->setup.rate_target : result_rate(r),
        .rate_sent = result_rate_sent(r),
        .goodput = result_goodput(r),
        .p50_ms = (double)histogram_quantile(&r->latency, 0.5) / 1e6,
        .p95_ms = (double)histogram_quantile(&r->latency, 0.95) / 1e6,
        .p99_ms = (double)histogram_quantile(&r->latency, 0.99) / 1e6,
        .failed_share = r->sent ? (double)result_failed(r) / (double)r->sent : 0,
        .held = slo_count != 0 && result_slo_all_held(r, slo, slo_count),
        .aborted = r->aborted,
    };
}

static double quantile_ms(const histogram *h, double q)
{
    return (double)histogram_quantile(h, q) / 1e6;
}

static void header(const result *r, FILE *to)
{
    const result_setup *s = &r->setup;
    fprintf(to, "%s%s%s  %s  %s\n", s->url, s->model[0] ? "  model " : "", s->model, s->protocol,
            s->format);
    if (strcmp(s->loop, "closed") == 0)
        fprintf(
            to,
            "closed loop, %u requests at a time: it waits for the server, so a stall also delays "
            "later requests and hides itself\n",
            s->concurrency);
    else
        fprintf(to, "open loop, %s, %.6g/s: latency counts from the intended time\n", s->arrivals,
                s->rate_target);
    fprintf(to, "%.6g s after %.6g s of warm-up, %u connection%s, %u thread%s, %s, seed %" PRIu64,
            (double)s->duration_ns / 1e9, (double)s->warm_up_ns / 1e9, s->connections,
            s->connections == 1 ? "" : "s", s->threads, s->threads == 1 ? "" : "s", s->io, s->seed);
    if (s->parts > 1)
        fprintf(to, ", merged from %u", s->parts);
    fputs("\n\n", to);
}

double report_dollars_per_million_tokens(const report *p)
{
    double seconds = (double)p->result->setup.duration_ns / 1e9;
    return p->result->tokens > 0
               ? p->dollars_per_hour / 3600 * seconds / (double)p->result->tokens * 1e6
               : 0;
}

static void rates(const report *p, FILE *to)
{
    const result *r = p->result;
    double seconds = (double)r->setup.duration_ns / 1e9;
    fprintf(to, "  requests  %10" PRIu64 "     sent %.1f/s, succeeded %.1f/s", r->sent,
            result_rate_sent(r), result_rate(r));
    if (r->tokens != 0 && seconds > 0)
        fprintf(to, ", %.0f tokens/s", (double)r->tokens / seconds);
    if (report_dollars_per_million_tokens(p) > 0)
        fprintf(to, ", $%.3g per million tokens", report_dollars_per_million_tokens(p));
    fputs("\n", to);
    uint64_t failed = result_failed(r);
    fprintf(to, "  errors    %10" PRIu64, failed);
    if (r->sent != 0)
        fprintf(to, "     %.3g%%", 100.0 * (double)failed / (double)r->sent);
    fputs("\n", to);
    if (r->unfinished != 0)
        fprintf(to,
                "  unfinished%10" PRIu64 "     without a response when the run was stopped, the "
                "oldest after %.3g s: in no quantile\n",
                r->unfinished, (double)r->unfinished_oldest_ns / 1e9);
    for (int k = 0; k < REQUEST_ERROR_COUNT; k++)
        if (r->errors[k] != 0)
            fprintf(to, "  %20" PRIu64 "     %s; first: %s\n", r->errors[k],
                    result_error_text((request_error)k), r->reasons[k]);
    if (r->verified != 0)
        fprintf(to, "  verified  %10" PRIu64 "     responses compared with --expect\n",
                r->verified);
}

static void quantile_row(FILE *to, const char *name, const histogram *h)
{
    double mean = h->count ? (double)h->sum / (double)h->count / 1e6 : 0;
    fprintf(to, "  %-22.22s %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f\n", name, mean,
            quantile_ms(h, 0.5), quantile_ms(h, 0.9), quantile_ms(h, 0.95), quantile_ms(h, 0.99),
            quantile_ms(h, 0.999), (double)h->max / 1e6);
}

static void latencies(const result *r, FILE *to)
{
    fprintf(to, "\n  %-22s %9s %9s %9s %9s %9s %9s %9s\n", "ms", "mean", "p50", "p90", "p95", "p99",
            "p99.9", "max");
    quantile_row(to, "latency", &r->latency);
    if (result_failed(r) != 0)
        quantile_row(to, "  successful only", &r->latency_ok);
    if (r->refused.count != 0)
        quantile_row(to, "  of rejections", &r->refused);
    if (strcmp(r->setup.loop, "closed") != 0)
        quantile_row(to, "  from the actual send", &r->service);
    if (r->server.count != 0)
        quantile_row(to, "server-reported", &r->server);
    for (unsigned i = 0; i < r->stage_count; i++) {
        char name[SERVER_TIMING_NAME_BYTES_MAX + 2];
        snprintf(name, sizeof name, "  %s", r->stages[i].name);
        quantile_row(to, name, &r->stages[i].duration);
    }
    if (r->connection_wait.count != 0)
        quantile_row(to, "wait for a connection", &r->connection_wait);
    if (r->lag.count != 0)
        quantile_row(to, "client lag", &r->lag);
    if (result_failed(r) != 0)
        fprintf(to, "  a failed request counts as its timeout, %.6g s\n",
                (double)r->setup.timeout_ns / 1e9);
}

static void edges(const report *p, FILE *to)
{
    const result *r = p->result;
    char text[256];
    fprintf(to, "\n  client    busiest thread %.0f%% of a core", r->loop_busy * 100);
    if (r->connections_lost != 0)
        fprintf(to, ", %" PRIu64 " connections lost", r->connections_lost);
    if (r->retries != 0)
        fprintf(to, ", %" PRIu64 " requests sent again that the server had not processed",
                r->retries);
    if (r->steal_share > 0.02)
        fprintf(to, ", %.0f%% of the CPU time went to other virtual machines (steal)",
                r->steal_share * 100);
    fputs("\n", to);
    if (result_bottleneck(r, text, sizeof text) != NULL)
        fprintf(to, "  WARNING   %s\n", text);
    if (p->cut_short)
        fprintf(to, "  CUT SHORT by a signal: %s\n",
                r->sent ? "the report covers what was measured until then"
                        : "nothing was measured yet");
    else if (r->aborted)
        fputs("  stopped early\n", to);
}

static void objectives(const report *p, FILE *to)
{
    for (size_t i = 0; i < p->slo_count; i++) {
        double measured;
        bool held = result_slo_held(p->result, &p->slo[i], &measured);
        if (p->slo[i].kind == SLO_QUANTILE)
            fprintf(to, "  SLO       %s: %s, measured %.3f ms\n", p->slo[i].text,
                    held ? "met" : "NOT MET", measured / 1e6);
        else
            fprintf(to, "  SLO       %s: %s, measured %.3g%%\n", p->slo[i].text,
                    held ? "met" : "NOT MET", measured * 100);
    }
    if (p->slo_count != 0)
        fprintf(to, "  goodput   %.1f/s within the SLO\n", result_goodput(p->result));
}

static void runs(const report *p, FILE *to)
{
    fprintf(to, "\n  %10s %10s %10s %10s %10s %8s\n", "rate/s", "goodput/s", "p50 ms", "p95 ms",
            "p99 ms", "errors");
    for (size_t i = 0; i < p->point_count; i++) {
        const report_point *at = &p->points[i];
        fprintf(to, "  %10.1f %10.1f %10.3f %10.3f %10.3f %7.2f%%%s%s%s\n", at->rate, at->goodput,
                at->p50_ms, at->p95_ms, at->p99_ms, at->failed_share * 100,
                p->slo_count == 0 ? ""
                : at->held        ? "  met"
                                  : "  not met",
                at->confirmation ? ", confirmation" : "", at->aborted ? ", stopped early" : "");
    }
    if (p->search != NULL && strcmp(p->search, "find_max") == 0) {
        if (p->found_rate > 0)
            fprintf(to, "\n  highest rate that meets the SLO: %.1f/s, goodput %.1f/s\n",
                    p->found_rate, result_goodput(p->result));
        else
            fputs(p->cut_short ? "\n  cut short before the highest rate was found\n"
                               : "\n  no rate was found that meets the SLO\n",
                  to);
    }
}

void report_text(const report *p, FILE *to)
{
    fputs("\n", to);
    header(p->result, to);
    rates(p, to);
    latencies(p->result, to);
    edges(p, to);
    objectives(p, to);
    if (p->point_count != 0)
        runs(p, to);
    fflush(to);
}

status report_csv(const report *p, const char *path)
{
    text_buffer b = {0};
    if (p->point_count != 0) {
        text_buffer_put(&b, "rate,rate_sent,goodput,p50_ms,p95_ms,p99_ms,errors_share,held\n");
        for (size_t i = 0; i < p->point_count; i++) {
            const report_point *at = &p->points[i];
            text_buffer_format(&b, "%.3f,%.3f,%.3f,%.4f,%.4f,%.4f,%.6f,%d\n", at->rate,
                               at->rate_sent, at->goodput, at->p50_ms, at->p95_ms, at->p99_ms,
                               at->failed_share, at->held);
        }
    } else {
        const result *r = p->result;
        text_buffer_put(&b, "t_s,sent,answered,errors,p50_ms,p95_ms,p99_ms,max_ms\n");
        for (unsigned i = 0; i < r->slice_count; i++) {
            const result_slice *s = &r->slices[i];
            text_buffer_format(&b, "%.1f,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.4f,%.4f,%.4f,%.4f\n",
                               (double)i * (double)r->slice_ns / 1e9, s->sent, s->succeeded,
                               s->failed, quantile_ms(&s->latency, 0.5),
                               quantile_ms(&s->latency, 0.95), quantile_ms(&s->latency, 0.99),
                               (double)s->latency.max / 1e6);
        }
    }
    status s = report_write(path, text_buffer_string(&b), b.bytes);
    text_buffer_dispose(&b);
    return s;
}

static void compare_row(FILE *to, const char *name, double a, double b, const char *note)
{
    char ratio[24] = "";
    if (a > 0)
        snprintf(ratio, sizeof ratio, "%.2fx", b / a);
    fprintf(to, "  %-16s %12.3f %12.3f %8s   %s\n", name, a, b, ratio, note);
}

void report_compare(const result *a, const result *b, const char *a_name, const char *b_name,
                    FILE *to)
{
    fprintf(to, "\n  A  %s: %s %s, %s, %s\n  B  %s: %s %s, %s, %s\n\n", a_name, a->setup.url,
            a->setup.model, a->setup.loop, a->setup.protocol, b_name, b->setup.url, b->setup.model,
            b->setup.loop, b->setup.protocol);
    if (strcmp(a->setup.loop, b->setup.loop) != 0)
        fputs("  WARNING: one run is an open loop, the other a closed loop: their latencies cannot "
              "be "
              "compared\n\n",
              to);
    else if (fabs(a->setup.rate_target - b->setup.rate_target) > 0.01 * a->setup.rate_target ||
             a->setup.concurrency != b->setup.concurrency)
        fputs("  note: the two runs had different loads\n\n", to);
    fprintf(to, "  %-16s %12s %12s %8s\n", "", "A", "B", "B/A");
    compare_row(to, "succeeded/s", result_rate(a), result_rate(b), "");
    if (a->tokens != 0 && b->tokens != 0 && a->setup.duration_ns && b->setup.duration_ns)
        compare_row(to, "tokens/s", (double)a->tokens * 1e9 / (double)a->setup.duration_ns,
                    (double)b->tokens * 1e9 / (double)b->setup.duration_ns, "");
    compare_row(to, "errors", (double)result_failed(a), (double)result_failed(b), "");
    for (const report_quantile *p = report_quantiles; p->name != NULL; p++) {
        result_bounds x = result_quantile_bounds(&a->latency, p->q);
        result_bounds y = result_quantile_bounds(&b->latency, p->q);
        char name[24], note[96];
        snprintf(name, sizeof name, "%s ms", p->name);
        bool apart = x.high < y.low || y.high < x.low;
        snprintf(note, sizeof note, "%s (95%%: %.3f-%.3f and %.3f-%.3f)",
                 apart ? (y.value < x.value ? "B faster" : "B slower") : "no clear difference",
                 x.low / 1e6, x.high / 1e6, y.low / 1e6, y.high / 1e6);
        compare_row(to, name, x.value / 1e6, y.value / 1e6, note);
    }
    fputs("\n  The bounds assume independent requests; requests of one stall are not. Repeat the "
          "runs "
          "before\n  you trust a small difference.\n",
          to);
}

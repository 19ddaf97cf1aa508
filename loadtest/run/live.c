#include "loadtest/run/live.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void live_begin(live *l, bool terminal, const char *label, uint64_t start_ns, uint64_t warm_up_ns,
                uint64_t duration_ns)
{
    memset(l, 0, sizeof *l);
    l->terminal = terminal;
    l->label = label;
    l->start_ns = l->last_ns = start_ns;
    l->warm_up_ns = warm_up_ns;
    l->duration_ns = duration_ns;
}

/* Writes `now` minus `before` cell by cell, then copies `now` to `before`. */
static void take_difference(histogram *difference, histogram *before, const histogram *now)
{
    for (unsigned i = 0; i < HISTOGRAM_CELLS; i++) {
        difference->cells[i] = now->cells[i] - before->cells[i];
        if (difference->cells[i] != 0) /* the largest value: the top of the highest cell */
            difference->max = i + 1 < HISTOGRAM_CELLS ? histogram_cell_low(i + 1) : now->max;
        difference->count += difference->cells[i];
        before->cells[i] = now->cells[i];
    }
}

static void remember(live *l, double p99_ms)
{
    const unsigned room = sizeof l->history / sizeof *l->history;
    if (l->history_count == room) {
        memmove(l->history, l->history + 1, (room - 1) * sizeof *l->history);
        l->history_count--;
    }
    l->history[l->history_count++] = p99_ms;
}

static void sparkline(const live *l, char *out, size_t out_bytes)
{
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double most = 0;
    for (unsigned i = 0; i < l->history_count; i++)
        if (l->history[i] > most)
            most = l->history[i];
    size_t used = 0;
    out[0] = 0;
    for (unsigned i = 0; i < l->history_count && used + 4 < out_bytes; i++) {
        unsigned level = most > 0 ? (unsigned)(l->history[i] / most * 7.99) : 0;
        used += (size_t)snprintf(out + used, out_bytes - used, "%s", bars[level]);
    }
}

static void draw(live *l, double seconds, const double *now, uint64_t in_flight, uint64_t failed)
{
    bool warming = seconds * 1e9 < (double)l->warm_up_ns;
    double whole = (double)(l->warm_up_ns + l->duration_ns) / 1e9;
    if (!l->terminal) {
        fprintf(stderr,
                "%s%5.0f s  %.0f/s sent  %.0f/s ok  p50 %.2f  p95 %.2f  p99 %.2f ms  "
                "%" PRIu64 " errors  %" PRIu64 " in flight%s\n",
                l->label ? l->label : "", seconds, now[0], now[1], now[2], now[3], now[4], failed,
                in_flight, warming ? "  (warm-up)" : "");
        return;
    }
    char bar[41], line[256];
    int filled = whole > 0 ? (int)(seconds / whole * 40) : 0;
    filled = filled > 40 ? 40 : filled;
    for (int i = 0; i < 40; i++)
        bar[i] = i < filled ? '=' : ' ';
    bar[40] = 0;
    sparkline(l, line, sizeof line);
    if (l->drawn)
        fputs("\033[5A", stderr);
    l->drawn = true;
    fprintf(stderr,
            "\033[2K%s[%s] %.0f of %.0f s%s\n"
            "\033[2K  rate       %10.0f/s sent %10.0f/s ok\n"
            "\033[2K  latency    p50 %.2f   p95 %.2f   p99 %.2f ms\n"
            "\033[2K  errors     %10" PRIu64 "        in flight %" PRIu64 "\n"
            "\033[2K  p99, %2u s  %s\n",
            l->label ? l->label : "", bar, seconds, whole, warming ? ", warming up" : "", now[0],
            now[1], now[2], now[3], now[4], failed, in_flight, l->history_count, line);
}

void live_tick(live *l, worker *const *workers, unsigned count, uint64_t now_ns)
{
    static histogram all, difference; /* only the main thread comes here */
    uint64_t sent = 0, succeeded = 0, failed = 0, in_flight = 0;
    histogram_reset(&all);
    histogram_reset(&difference);
    for (unsigned i = 0; i < count; i++) {
        const worker_live *view = worker_live_view(workers[i]);
        sent += view->sent;
        succeeded += view->succeeded;
        failed += view->failed;
        in_flight += view->in_flight;
        histogram_merge(&all, &view->latency);
    }
    take_difference(&difference, &l->seen, &all);
    double span = (double)(now_ns - l->last_ns) / 1e9;
    if (span <= 0)
        return;
    double now[5] = {(double)(sent - l->sent) / span, (double)(succeeded - l->succeeded) / span,
                     (double)histogram_quantile(&difference, 0.5) / 1e6,
                     (double)histogram_quantile(&difference, 0.95) / 1e6,
                     (double)histogram_quantile(&difference, 0.99) / 1e6};
    remember(l, now[4]);
    draw(l, (double)(now_ns - l->start_ns) / 1e9, now, in_flight, failed);
    l->sent = sent;
    l->succeeded = succeeded;
    l->failed = failed;
    l->last_ns = now_ns;
}

void live_end(live *l)
{
    if (l->drawn)
        fputs("\033[5A\033[J", stderr); /* the final table replaces the panel */
}

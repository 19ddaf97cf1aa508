#include "base/clock.h"
#include "loadtest/discover.h"
#include "loadtest/memory.h"
#include "loadtest/options.h"
#include "loadtest/report/report.h"
#include "loadtest/run/run.h"
#include "loadtest/run/search.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

enum {
    EXIT_HELD = 0,
    EXIT_NOT_HELD = 1,
    EXIT_USAGE = 2,
    EXIT_COULD_NOT = 3,
    EXIT_WRONG = 4,
    EXIT_CUT_SHORT = 5
};

#define PROBE_PAUSE_US 200000
#define SPIN_SHARE 0.02
#define SPIN_NS_MAX 50000.0

/* Everything that lives as long as the program works. */
typedef struct program {
    options options;
    target target;
    discovery discovery;
    trace trace;
    uint64_t *trace_ns;
    request_source source;
    request_head head;
    expect *expect;
    run_plan plan;
    result result; /* of the last run, or of the best of a search */
    report report;
    bool url_refused;
} program;

/* The SIGINT or SIGTERM that came: no further run begins, and what was measured is reported. */
static volatile sig_atomic_t stop_signal;

static void on_stop_signal(int number)
{
    stop_signal = number;
}

/* A second signal ends the program at once, as either does before the first run. */
static void catch_stop_signals(void)
{
    const struct sigaction action = {.sa_handler = on_stop_signal, .sa_flags = SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void describe_machine(char *text, size_t bytes)
{
    struct utsname name;
    char model[128] = "";
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[256];
    while (f != NULL && model[0] == 0 && fgets(line, sizeof line, f) != NULL)
        sscanf(line, "model name : %127[^\n]", model);
    if (f != NULL)
        fclose(f);
    uname(&name);
    snprintf(text, bytes, "%ld cores, %s, %s %.60s", sysconf(_SC_NPROCESSORS_ONLN),
             model[0] ? model : name.machine, name.sysname, name.release);
}

static status prepare_source(program *p)
{
    const options *o = &p->options;
    if (o->trace_file != NULL) {
        status s = trace_read(&p->trace, o->trace_file, o->trace_speed);
        if (s)
            return s;
        p->trace_ns = memory_allocate(p->trace.count, sizeof *p->trace_ns);
        for (size_t i = 0; i < p->trace.count; i++)
            p->trace_ns[i] = p->trace.entries[i].offset_ns;
    }
    p->head = (request_head){.method = p->discovery.method,
                             .authority = p->target.authority,
                             .path = p->discovery.path,
                             .scheme = p->target.tls ? "https" : "http",
                             .headers = o->headers,
                             .header_count = o->header_count};
    source_options from = {.format = p->discovery.format,
                           .data_file = o->data_file,
                           .ids_file = o->ids_file,
                           .trace = p->trace.count ? &p->trace : NULL,
                           .lengths = &o->lengths,
                           .rows = o->rows,
                           .vocabulary = o->vocabulary,
                           .pool = o->pool,
                           .seed = o->seed,
                           .shuffle = o->shuffle};
    status s = request_source_create(
        &p->source, &from, p->discovery.has_metadata ? &p->discovery.metadata : NULL, &p->head);
    if (!s && o->expect_file != NULL)
        s = expect_load(&p->expect, o->expect_file, o->tolerance);
    return s;
}

static void plan_arrivals(program *p)
{
    options *o = &p->options;
    if (p->trace.count == 0)
        return;
    o->arrivals.kind = ARRIVAL_TRACE;
    o->arrivals.trace_ns = p->trace_ns;
    o->arrivals.trace_count = p->trace.count;
    /* A trace lasts as long as it lasts, unless --duration cuts it. */
    uint64_t last_ns = p->trace_ns[p->trace.count - 1] + 1;
    if (!o->duration_given || o->arrivals.duration_ns > last_ns)
        o->arrivals.duration_ns = last_ns < 1000000 ? 1000000 : last_ns;
    o->duration_ns = o->arrivals.duration_ns;
}

static void describe_setup(program *p, result_setup *s)
{
    static const char *const formats[] = {"KServe v2 JSON", "KServe v2 binary",
                                          "TensorFlow Serving", "raw"};
    const options *o = &p->options;
    snprintf(s->url, sizeof s->url, "%s://%s%s", p->head.scheme, p->head.authority, p->head.path);
    snprintf(s->model, sizeof s->model, "%s", p->discovery.model ? p->discovery.model : "");
    snprintf(s->format, sizeof s->format, "%s", formats[p->discovery.format]);
    snprintf(s->loop, sizeof s->loop, "%s", o->concurrency ? "closed" : "open");
    snprintf(s->arrivals, sizeof s->arrivals, "%s",
             o->concurrency     ? ""
             : o->trace_file    ? o->trace_file
             : o->arrivals_text ? o->arrivals_text
                                : arrival_name(o->arrivals.kind));
    describe_machine(s->machine, sizeof s->machine);
    s->concurrency = o->concurrency;
    s->seed = o->seed;
    s->duration_ns = o->duration_ns;
    s->warm_up_ns = o->warm_up_ns;
    s->timeout_ns = o->timeout_ns;
    s->parts = 1;
}

/* How many connections and threads, from what is asked for and what there is. */
static void plan_connections(program *p)
{
    options *o = &p->options;
    bool http2 = o->protocol == TARGET_HTTP2 ||
                 (p->target.tls && o->protocol == TARGET_AUTO && o->connections == 0);
    worker_plan *w = &p->plan.worker;
    unsigned cores = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    p->plan.threads = o->threads < cores ? o->threads : cores;
    if (o->threads > cores)
        fprintf(stderr, "penstock-load: %u threads, one per core\n", cores);
    /* Enough for answers within 20 ms; more open as they are needed. Servers differ in how many
     * idle connections they like. */
    double rate = p->trace.count ? arrival_mean_rate(&o->arrivals) : o->rate;
    unsigned usual = http2 ? 8 : rate >= 3200 ? 64 : rate <= 200 ? 4 : (unsigned)(rate / 50);
    if (o->concurrency != 0)
        usual = http2 && o->concurrency > 8 ? 8 : o->concurrency;
    w->connections = o->connections ? o->connections : usual;
    unsigned most = o->concurrency ? w->connections : http2 ? 2 * w->connections : 1024;
    w->connections_max = o->connections_max ? o->connections_max : most;
    if (http2 && o->connections_max == 0)
        w->connections_max = 2 * w->connections; /* those that drain need another beside them */
    if (w->connections_max < w->connections)
        w->connections_max = w->connections;
    if (w->connections < p->plan.threads && o->connections == 0)
        w->connections = p->plan.threads;
    if (w->connections_max < p->plan.threads)
        w->connections_max = p->plan.threads;
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
        if (files.rlim_cur > 64 && w->connections_max > files.rlim_cur - 64)
            w->connections_max = (unsigned)files.rlim_cur - 64;
        if (w->connections > w->connections_max)
            w->connections = w->connections_max;
    }
}

static status prepare(program *p)
{
    options *o = &p->options;
    status s = target_init(&p->target, o->url, o->protocol, o->ca_file, o->insecure);
    p->url_refused = s == STATUS_INVALID_ARGUMENT;
    if (!s)
        s = discover(&p->discovery, o, &p->target);
    if (!s)
        s = prepare_source(p);
    if (s)
        return s;
    plan_arrivals(p);
    plan_connections(p);
    const char *reason;
    worker_plan *w = &p->plan.worker;
    w->network = network_choose(&reason);
    if (reason != NULL)
        fprintf(stderr, "penstock-load: epoll instead of io_uring: %s\n", reason);
    o->arrivals.warm_up_ns = o->warm_up_ns;
    w->target = &p->target;
    w->head = &p->head;
    w->source = &p->source;
    w->expect = p->expect;
    w->arrivals = o->concurrency ? NULL : &o->arrivals;
    w->seed = o->seed;
    w->concurrency = o->concurrency;
    w->streams_max = o->streams;
    w->warm_up_ns = o->warm_up_ns;
    w->duration_ns = o->duration_ns;
    w->timeout_ns = o->timeout_ns;
    w->spin_ns = o->spin_ns;
    w->slo_limit_ns = result_slo_limit_ns(o->slo, o->slo_count);
    p->plan.realtime = o->realtime;
    p->plan.slo = o->slo;
    p->plan.slo_count = o->slo_count;
    p->plan.live = o->quiet ? -1 : isatty(STDERR_FILENO);
    describe_setup(p, &p->plan.setup);
    p->plan.setup.connections = w->connections;
    p->plan.setup.threads = p->plan.threads;
    snprintf(p->plan.setup.io, sizeof p->plan.setup.io, "%s", network_kind_name(w->network));
    return STATUS_OK;
}

/* How long to poll before each request: a timer wakes us some 30 us late, but being on time must
 * not cost the machine more than a fiftieth of a core. */
static uint64_t usual_spin_ns(double rate)
{
    double budget_ns = rate > 0 ? SPIN_SHARE * 1e9 / rate : 0;
    return (uint64_t)(budget_ns < SPIN_NS_MAX ? budget_ns : SPIN_NS_MAX);
}

/* Runs once with the plan as it is; `out` is replaced. */
static status run_once(program *p, result *out)
{
    result_dispose(out);
    memset(out, 0, sizeof *out);
    p->plan.setup.rate_target =
        p->plan.worker.arrivals ? arrival_mean_rate(p->plan.worker.arrivals) : 0;
    if (!p->options.spin_given)
        p->plan.worker.spin_ns = usual_spin_ns(p->plan.setup.rate_target);
    p->plan.setup.seed = p->plan.worker.seed;
    p->plan.setup.started_wall_ns = clock_wall_ns();
    p->plan.stop = &stop_signal;
    return run_execute(&p->plan, out);
}

static status run_at_rate(program *p, double rate, result *out, const char *label)
{
    p->options.arrivals.rate = rate;
    if (p->options.arrivals.kind == ARRIVAL_BURST)
        p->options.arrivals.burst_period_ns = 0;
    if (arrival_count(&p->options.arrivals) == 0)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "%.3g/s make no request in the duration: a longer --duration is needed",
                           rate);
    p->plan.worker.seed++; /* another draw of the same process */
    p->plan.label = label;
    status s = run_once(p, out);
    usleep(PROBE_PAUSE_US); /* lets the server's queues empty */
    return s;
}

/* The point of a run on standard error, as searches go on. */
static void tell_point(const program *p, const report_point *at, const char *what)
{
    if (!p->options.quiet)
        fprintf(stderr, "%-12s %9.1f/s  p50 %.2f  p95 %.2f  p99 %.2f ms  errors %.2f%%%s%s\n", what,
                at->rate, at->p50_ms, at->p95_ms, at->p99_ms, at->failed_share * 100,
                p->options.slo_count == 0 ? ""
                : at->held                ? "  held"
                                          : "  not held",
                at->aborted ? ", stopped early" : "");
}

static report_point *add_point(program *p, const result *r)
{
    report *to = &p->report;
    if (to->point_count == REPORT_POINTS_MAX)
        return &to->points[REPORT_POINTS_MAX - 1];
    to->points[to->point_count] = report_point_of(r, p->options.slo, p->options.slo_count);
    return &to->points[to->point_count++];
}

/* A first guess at the rate: what the server answers to 16 at a time, for a moment. */
static status guess_rate(program *p, double *rate)
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
    status s = run_once(p, &r);
    if (!s && stop_signal)
        s = status_fail(STATUS_CANCELLED, "stopped by a signal before anything was measured");
    if (!s && r.succeeded == 0)
        s = status_fail(STATUS_UNAVAILABLE, "no request was answered: %s",
                        r.reasons[REQUEST_HTTP_OTHER][0] ? r.reasons[REQUEST_HTTP_OTHER]
                                                         : "see a run with --concurrency 1");
    if (!s) {
        *rate = 0.7 * result_rate(&r);
        if (!p->options.quiet)
            fprintf(stderr, "16 at once: %.1f/s\n", result_rate(&r));
    }
    result_dispose(&r);
    p->plan = saved;
    return s;
}

static status find_max(program *p)
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
    while (at.stage != SEARCH_DONE && !stop_signal) {
        double rate = at.rate;
        const char *stage = stages[at.stage];
        s = run_at_rate(p, rate, &last, "  ");
        if (s)
            break;
        report_point *point = add_point(p, &last);
        point->confirmation = at.stage == SEARCH_CONFIRM;
        tell_point(p, point, stage);
        /* Keep the last run that held at the highest rate still believed, for the report. */
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

static status sweep(program *p)
{
    status s = STATUS_OK;
    p->report.search = "sweep";
    result last = {0};
    for (size_t i = 0; i < p->options.sweep_count && !s && !stop_signal; i++) {
        s = run_at_rate(p, p->options.sweep[i], &last, "  ");
        if (s)
            break;
        report_point *point = add_point(p, &last);
        tell_point(p, point, "sweep");
        bool better = p->options.slo_count == 0 || point->held || p->result.slices == NULL;
        if (better) { /* the report's own run: the last, or the last that holds the objective */
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

static status merge(program *p)
{
    const options *o = &p->options;
    for (size_t i = 0; i < o->file_count; i++) {
        result part = {0};
        status s = report_read(&part, o->files[i]);
        if (!s && i > 0 && part.setup.duration_ns != p->result.setup.duration_ns)
            s = status_fail(STATUS_INVALID_ARGUMENT,
                            "%s: another duration than %s, their rates cannot be added",
                            o->files[i], o->files[0]);
        if (!s && i > 0 && strcmp(part.setup.loop, p->result.setup.loop) != 0)
            s = status_fail(STATUS_INVALID_ARGUMENT, "%s: an open and a closed loop do not mix",
                            o->files[i]);
        if (!s && p->result.latency.count + part.latency.count > UINT32_MAX)
            s = status_fail(STATUS_TOO_LARGE, "%s: together over %" PRIu32 " requests", o->files[i],
                            UINT32_MAX);
        if (s) {
            result_dispose(&part);
            return s;
        }
        if (i == 0) {
            p->result = part;
            continue;
        }
        result_setup *into = &p->result.setup;
        result_merge(&p->result, &part);
        into->rate_target += part.setup.rate_target;
        into->concurrency += part.setup.concurrency;
        into->threads += part.setup.threads;
        into->connections += part.setup.connections;
        into->parts += part.setup.parts;
        result_dispose(&part);
    }
    return STATUS_OK;
}

static status compare(program *p)
{
    const options *o = &p->options;
    result other = {0};
    status s = report_read(&p->result, o->files[0]);
    if (!s)
        s = report_read(&other, o->files[1]);
    if (!s) {
        report_compare(&p->result, &other, o->files[0], o->files[1], stdout);
        p->report.result = &p->result;
        if (o->html != NULL)
            s = report_html(&p->report, &other, o->html);
    }
    result_dispose(&other);
    return s;
}

static status write_reports(program *p)
{
    const options *o = &p->options;
    report *to = &p->report;
    to->result = &p->result;
    to->cut_short = stop_signal != 0;
    to->slo = o->slo;
    to->slo_count = o->slo_count;
    bool taken = (o->json && strcmp(o->json, "-") == 0) || (o->csv && strcmp(o->csv, "-") == 0);
    if (!o->quiet || !taken)
        report_text(to, taken ? stderr : stdout);
    status s = STATUS_OK, failed;
    if (o->json != NULL && (failed = report_json(to, o->json)) != STATUS_OK)
        s = failed;
    if (o->csv != NULL && (failed = report_csv(to, o->csv)) != STATUS_OK)
        s = failed;
    if (o->html != NULL && (failed = report_html(to, NULL, o->html)) != STATUS_OK)
        s = failed;
    return s;
}

static int exit_code(const program *p)
{
    const result *r = &p->result;
    if (r->errors[REQUEST_WRONG_RESPONSE] != 0)
        return EXIT_WRONG;
    if (p->report.cut_short)
        return EXIT_CUT_SHORT;
    if (p->options.slo_count != 0) {
        bool held = p->options.mode == MODE_RUN || p->options.mode == MODE_MERGE
                        ? result_slo_all_held(r, p->options.slo, p->options.slo_count)
                        : p->report.found_rate > 0;
        if (!held)
            return EXIT_NOT_HELD;
    }
    return r->sent != 0 && r->succeeded == 0 ? EXIT_WRONG : EXIT_HELD;
}

/* Whether a report can be written, asked before a run whose result would be lost. */
static status check_report_path(const char *path)
{
    if (path == NULL || strcmp(path, "-") == 0)
        return STATUS_OK;
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL ? memory_copy_string(".", 1)
                                 : memory_copy_string(path, (size_t)(slash - path) + 1);
    int refused = access(path, F_OK) == 0 ? access(path, W_OK) : access(folder, W_OK | X_OK);
    int error = errno;
    free(folder);
    return refused ? status_fail(STATUS_IO, "%s: cannot be written: %s", path, strerror(error))
                   : STATUS_OK;
}

static status check_report_paths(const options *o)
{
    status s = check_report_path(o->json);
    if (!s)
        s = check_report_path(o->csv);
    return s ? s : check_report_path(o->html);
}

static status work(program *p)
{
    options *o = &p->options;
    p->report.title = o->title;
    status s = check_report_paths(o);
    if (s)
        return s;
    if (o->mode == MODE_COMPARE)
        return compare(p);
    if (o->mode == MODE_MERGE) {
        s = merge(p);
        return s ? s : write_reports(p);
    }
    s = prepare(p);
    if (s)
        return s;
    catch_stop_signals();
    switch (o->mode) {
    case MODE_FIND_MAX:
        s = find_max(p);
        break;
    case MODE_SWEEP:
        s = sweep(p);
        break;
    default:
        s = run_once(p, &p->result);
    }
    return s ? s : write_reports(p);
}

static void clean_up(program *p)
{
    result_dispose(&p->result);
    request_source_dispose(&p->source);
    expect_destroy(p->expect);
    trace_dispose(&p->trace);
    free(p->trace_ns);
    discovery_dispose(&p->discovery);
    target_dispose(&p->target);
    options_dispose(&p->options);
}

int main(int argc, char **argv)
{
    static program p;
    signal(SIGPIPE, SIG_IGN);
    status s = options_parse(&p.options, argc, argv);
    if (s) {
        fprintf(stderr, "penstock-load: %s\n", status_message());
        options_dispose(&p.options);
        return EXIT_USAGE;
    }
    if (p.options.help || p.options.version) {
        fputs(p.options.help ? options_help() : "penstock-load " PENSTOCK_VERSION "\n", stdout);
        return EXIT_HELD;
    }
    s = work(&p);
    int code = p.url_refused ? EXIT_USAGE : s == STATUS_CANCELLED ? EXIT_CUT_SHORT : EXIT_COULD_NOT;
    if (s)
        fprintf(stderr, "penstock-load: %s\n", status_message());
    else
        code = p.options.mode == MODE_COMPARE ? EXIT_HELD : exit_code(&p);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fputs("penstock-load: standard output: cannot be written\n", stderr);
        code = EXIT_COULD_NOT;
    }
    clean_up(&p);
    return code;
}

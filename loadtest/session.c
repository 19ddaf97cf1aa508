#include "loadtest/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "loadtest/wire/memory.h"

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

static status prepare_source(session *p)
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
                           .text_file = o->text_file,
                           .model = p->discovery.model,
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

static void plan_arrivals(session *p)
{
    options *o = &p->options;
    if (p->trace.count == 0)
        return;
    o->arrivals.kind = ARRIVAL_TRACE;
    o->arrivals.trace_ns = p->trace_ns;
    o->arrivals.trace_count = p->trace.count;
    /* The trace sets the duration, unless --duration cuts it short. */
    uint64_t last_ns = p->trace_ns[p->trace.count - 1] + 1;
    if (!o->duration_given || o->arrivals.duration_ns > last_ns)
        o->arrivals.duration_ns = last_ns < 1000000 ? 1000000 : last_ns;
    o->duration_ns = o->arrivals.duration_ns;
}

static void describe_setup(session *p, result_setup *s)
{
    static const char *const formats[] = {"KServe v2 JSON",     "KServe v2 binary",
                                          "TensorFlow Serving", "OpenAI embeddings",
                                          "TEI embed",          "raw"};
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

/* Chooses connections and threads from the options, the rate and the machine. */
static void plan_connections(session *p)
{
    options *o = &p->options;
    bool http2 = o->protocol == TARGET_HTTP2 ||
                 (p->target.tls && o->protocol == TARGET_AUTO && o->connections == 0);
    worker_plan *w = &p->plan.worker;
    unsigned cores = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    p->plan.threads = o->threads < cores ? o->threads : cores;
    if (o->threads > cores)
        fprintf(stderr, "penstock-load: using %u threads, one per core\n", cores);
    /* Enough for responses within 20 ms; more open when all are busy. Some servers keep a thread
     * for each idle connection, so there are no more than that. */
    double rate = p->trace.count ? arrival_mean_rate(&o->arrivals) : o->rate;
    unsigned usual = http2 ? 8 : rate >= 3200 ? 64 : rate <= 200 ? 4 : (unsigned)(rate / 50);
    if (o->concurrency != 0)
        usual = http2 && o->concurrency > 8 ? 8 : o->concurrency;
    w->connections = o->connections ? o->connections : usual;
    unsigned most = o->concurrency ? w->connections : http2 ? 2 * w->connections : 1024;
    w->connections_max = o->connections_max ? o->connections_max : most;
    if (http2 && o->connections_max == 0)
        w->connections_max = 2 * w->connections; /* a draining connection needs a successor */
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

status session_prepare(session *p)
{
    options *o = &p->options;
    status s = target_init(&p->target, o->url, o->protocol, o->ca_file, o->insecure);
    p->is_url_invalid = s == STATUS_INVALID_ARGUMENT;
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

void session_dispose(session *p)
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

/* The process: readiness, loads, connections, memory, event loops, tenants. */
#include <stdio.h>
#include <unistd.h>

#include "server/options/version.h"
#include "server/routes/metrics/exposition.h"
#include "server/routes/metrics/parts.h"

static void write_tenants(text_buffer *out, const service *s)
{
    const server_options *o = s->options;
    exposition_family(out, "tenant_device_seconds_total", "counter",
                      "Device time received, by tenant; requests without a tenant share one.");
    for (int i = 0; i <= o->tenant_count; i++) {
        text_buffer_put(out, "penstock_tenant_device_seconds_total{");
        exposition_label(out, true, "tenant", i > 0 ? server_tenant_of(o, i)->name : "");
        exposition_close(out, (double)scheduler_tenant_ns(s->work, i) / 1e9);
    }
}

static void write_loads(text_buffer *out, service *s)
{
    bool is_one_under_way;
    int waiting = repository_waiting(s->models, &is_one_under_way);
    exposition_family(out, "loads_total", "counter",
                      "Loads of models by result, those at the start included.");
    for (int i = 0; i < REPOSITORY_LOAD_RESULTS; i++)
        text_buffer_format(
            out, "penstock_loads_total{result=\"%s\"} %llu\n",
            repository_load_result_name((repository_load_result)i),
            (unsigned long long)repository_loads(s->models, (repository_load_result)i));
    static const char *const states[MODEL_STATES] = {"loading", "ready", "failed", "unloaded",
                                                     "ignored"};
    exposition_family(
        out, "model_versions", "gauge",
        "Versions of models by state; ignored: what stands in the repository and is no model.");
    for (int i = 0; i < MODEL_STATES; i++)
        text_buffer_format(out, "penstock_model_versions{state=\"%s\"} %d\n", states[i],
                           repository_count(s->models, (model_state)i));
    exposition_gauge(out, "loads_waiting", "Loads and unloads that wait for the one under way.",
                     waiting);
    exposition_gauge(out, "loads_under_way", "1 while a model is loaded or unloaded.",
                     is_one_under_way);
}

static double resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    long long total = 0, resident = 0;
    if (file != NULL) {
        if (fscanf(file, "%lld %lld", &total, &resident) != 2)
            resident = 0;
        fclose(file);
    }
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static void write_closures(text_buffer *out, service *s)
{
    exposition_family(out, "connections_closed_total", "counter",
                      "Connections ended by the server.");
    for (closure why = 0; why < CLOSURE_COUNT; why++) {
        uint64_t count = 0;
        for (int i = 0; i < s->loop_count; i++)
            count += atomic_load_explicit(&s->loops[i].closures[why], memory_order_relaxed);
        text_buffer_format(out, "penstock_connections_closed_total{reason=\"%s\"} %llu\n",
                           closure_name(why), (unsigned long long)count);
    }
}

static void write_held(text_buffer *out, const budget *b)
{
    exposition_gauge(out, "held_bytes",
                     "Bytes held for clients: heads, bodies, responses not yet taken.",
                     (double)atomic_load_explicit(&b->bytes, memory_order_relaxed));
    exposition_gauge(out, "held_bytes_max", "The most of them.", (double)b->limits.bytes_max);
    exposition_family(out, "held_refusals_total", "counter",
                      "Bytes that were not granted, by whose limit.");
    for (budget_verdict v = BUDGET_CONNECTION_FULL; v < BUDGET_VERDICTS; v++)
        text_buffer_format(
            out, "penstock_held_refusals_total{limit=\"%s\"} %llu\n", budget_verdict_name(v),
            (unsigned long long)atomic_load_explicit(&b->refusals[v], memory_order_relaxed));
}

static void write_loops(text_buffer *out, const service *s)
{
    int count = s->loop_count + s->has_health;
    exposition_family(out, "loop_turn_seconds", "histogram",
                      "How long turns of an event loop took, good to a millisecond.");
    for (int i = 0; i < count; i++) {
        const service_loop *l = &s->loops[i];
        uint64_t so_far = 0;
        for (int c = 0; c < SERVICE_TURN_CELLS; c++) {
            so_far += atomic_load_explicit(&l->turn_cells[c], memory_order_relaxed);
            text_buffer_format(out, "penstock_loop_turn_seconds_bucket{loop=\"%d\",le=\"", i);
            if (c == SERVICE_TURN_CELLS - 1)
                text_buffer_put(out, "+Inf");
            else
                text_buffer_format(out, "%g", service_turn_bounds[c]);
            text_buffer_format(out, "\"} %llu\n", (unsigned long long)so_far);
        }
        uint64_t ms = atomic_load_explicit(&l->turn_ms, memory_order_relaxed);
        text_buffer_format(out, "penstock_loop_turn_seconds_sum{loop=\"%d\"} %.3f\n", i,
                           (double)ms / 1000);
        text_buffer_format(out, "penstock_loop_turn_seconds_count{loop=\"%d\"} %llu\n", i,
                           (unsigned long long)so_far);
    }
    exposition_family(
        out, "loop_stuck_seconds", "gauge",
        "For how long an event loop has not turned though it was asked to; 0: it turns.");
    for (int i = 0; i < count; i++) {
        uint64_t ns = atomic_load_explicit(&s->loops[i].watch.stuck_ns, memory_order_relaxed);
        text_buffer_format(out, "penstock_loop_stuck_seconds{loop=\"%d\"} %.3f\n", i,
                           (double)ns / 1e9);
    }
    exposition_family(out, "loop_stalls_total", "counter",
                      "Times that an event loop was stuck for a second or more.");
    for (int i = 0; i < count; i++) {
        uint64_t n = atomic_load_explicit(&s->loops[i].watch.stalls, memory_order_relaxed);
        text_buffer_format(out, "penstock_loop_stalls_total{loop=\"%d\"} %llu\n", i,
                           (unsigned long long)n);
    }
}

static void write_loop_totals(text_buffer *out, const service *s)
{
    uint64_t yields = 0, shortages = 0, dropped = 0;
    for (int i = 0; i < s->loop_count + s->has_health; i++) {
        yields += atomic_load_explicit(&s->loops[i].yields, memory_order_relaxed);
        shortages += atomic_load_explicit(&s->loops[i].shortages, memory_order_relaxed);
        dropped += atomic_load_explicit(&s->loops[i].log_dropped, memory_order_relaxed);
    }
    exposition_counter(out, "connection_yields_total",
                       "Times that a connection had used up its share of a turn of its event loop.",
                       yields);
    exposition_counter(
        out, "access_log_dropped_total",
        "Lines of the access log that were not written: its reader is too slow, or it failed.",
        dropped);
    exposition_counter(out, "memory_shortages_total",
                       "Times that a connection needed memory and there was none but the reserve.",
                       shortages);
}

static void write_refusals(text_buffer *out, const service *s)
{
    static const char *const reasons[SERVICE_REFUSALS] = {"no_key", "wrong_key", "no_right"};
    exposition_family(
        out, "access_refusals_total", "counter",
        "Requests refused because of who asked: 401 without a key or with a wrong one, 403.");
    for (int i = 0; i < SERVICE_REFUSALS; i++)
        text_buffer_format(
            out, "penstock_access_refusals_total{reason=\"%s\"} %llu\n", reasons[i],
            (unsigned long long)atomic_load_explicit(&s->refusals[i], memory_order_relaxed));
}

static void write_server_gauges(text_buffer *out, service *s, uint64_t now_ns)
{
    char progress[8], missing[SERVICE_PROGRESS_BYTES];
    service_get_missing(s, missing);
    bool is_open = service_is_open(s);
    bool is_ready = is_open && !atomic_load(&s->is_draining) &&
                    repository_is_ready(s->models, progress, sizeof(progress));
    exposition_family(out, "build_info", "gauge", "Version.");
    text_buffer_put(out, "penstock_build_info{version=\"" PENSTOCK_VERSION "\"} 1\n");
    exposition_gauge(
        out, "ready",
        "1 when the models asked for are ready (readiness) and the server is not draining.",
        is_ready);
    exposition_gauge(out, "device_missing",
                     "1 when a device that was asked for could not be started.",
                     is_open && missing[0] != 0);
    exposition_counter(out, "device_start_failures_total", "Tries to start a device that failed.",
                       atomic_load(&s->start_failures));
    exposition_gauge(out, "connections", "Open connections.", atomic_load(&s->connections));
    write_closures(out, s);
    write_refusals(out, s);
    write_held(out, &s->budget);
    exposition_gauge(out, "requests_open", "Requests being handled.", service_open_requests(s));
    write_loop_totals(out, s);
    exposition_gauge(out, "uptime_seconds", "Time since start.",
                     (double)(now_ns - s->start_ns) / 1e9);
    exposition_gauge(out, "resident_bytes", "Resident memory.", resident_bytes());
}

void metrics_write_server(text_buffer *out, service *s, uint64_t now_ns)
{
    write_server_gauges(out, s, now_ns);
    write_loops(out, s);
    if (!service_is_open(s))
        return;
    write_tenants(out, s);
    write_loads(out, s);
}

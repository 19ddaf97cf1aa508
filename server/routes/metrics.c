/* GET /metrics: Prometheus text exposition 0.0.4. Labels are models, stages, buckets and devices:
 * as many as the operator configured, never what clients send. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "models/start/deferred_buckets.h"
#include "server/options/version.h"
#include "server/protocol/text/text_write.h"
#include "server/request/respond.h"
#include "server/routes/routes.h"

#define MODELS_MAX 1024
#define SLOTS_MAX 256

static const double bucket_bounds[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                       0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10};
static const double quantiles[] = {0.5, 0.95, 0.99, 0.999};

static void family(text_buffer *out, const char *name, const char *type, const char *help)
{
    text_buffer_format(out, "# HELP penstock_%s %s\n# TYPE penstock_%s %s\n", name, help, name,
                       type);
}

/* A label value: backslash, quote and newline escaped (exposition format). */
static void put_label(text_buffer *out, const char *value)
{
    for (; *value; value++) {
        if (*value == '\\' || *value == '"')
            text_buffer_append(out, "\\", 1);
        if (*value == '\n')
            text_buffer_put(out, "\\n");
        else
            text_buffer_append(out, value, 1);
    }
}

/* {model="m",version="1" and leaves the brace open. */
static void open_labels(text_buffer *out, const char *family_name, const char *name,
                        int64_t version)
{
    text_buffer_format(out, "penstock_%s{model=\"", family_name);
    put_label(out, name);
    text_buffer_format(out, "\",version=\"%lld\"", (long long)version);
}

static void write_codes(text_buffer *out, const recorder *r)
{
    family(out, "requests_total", "counter", "Inference requests by HTTP code (0: other codes).");
    for (const model_record *m = record_first(r); m != NULL; m = record_next(m)) {
        record_totals totals;
        record_read_totals(r, m, &totals);
        for (int i = 0; i < RECORD_CODES; i++) {
            if (totals.codes[i] == 0)
                continue;
            open_labels(out, "requests_total", record_name(m), record_version(m));
            text_buffer_format(out, ",code=\"%d\"} %llu\n", record_code(i),
                               (unsigned long long)totals.codes[i]);
        }
    }
}

static void write_histograms(text_buffer *out, const recorder *r, uint64_t now_ns)
{
    histogram h;
    family(out, "stage_seconds", "histogram",
           "Time of successful requests by stage; stage=total is from first byte to response.");
    for (const model_record *m = record_next(record_first(r)); m != NULL; m = record_next(m)) {
        for (int series = 0; series < RECORD_SERIES; series++) {
            record_read(r, m, series, false, now_ns, &h);
            if (h.count == 0)
                continue;
            for (size_t i = 0; i < sizeof(bucket_bounds) / sizeof(bucket_bounds[0]); i++) {
                open_labels(out, "stage_seconds_bucket", record_name(m), record_version(m));
                text_buffer_format(out, ",stage=\"%s\",le=\"%g\"} %llu\n",
                                   record_series_name(series), bucket_bounds[i],
                                   (unsigned long long)histogram_count_at_most(
                                       &h, (uint64_t)(bucket_bounds[i] * 1e9)));
            }
            open_labels(out, "stage_seconds_bucket", record_name(m), record_version(m));
            text_buffer_format(out, ",stage=\"%s\",le=\"+Inf\"} %llu\n", record_series_name(series),
                               (unsigned long long)h.count);
            open_labels(out, "stage_seconds_sum", record_name(m), record_version(m));
            text_buffer_format(out, ",stage=\"%s\"} %.9f\n", record_series_name(series),
                               (double)h.sum / 1e9);
            open_labels(out, "stage_seconds_count", record_name(m), record_version(m));
            text_buffer_format(out, ",stage=\"%s\"} %llu\n", record_series_name(series),
                               (unsigned long long)h.count);
        }
    }
}

static void write_quantiles(text_buffer *out, const recorder *r, uint64_t now_ns)
{
    histogram h;
    family(out, "latency_seconds", "gauge",
           "Quantiles by stage, exact to 1%: window=60s slides, window=start is since start.");
    for (const model_record *m = record_next(record_first(r)); m != NULL; m = record_next(m)) {
        for (int series = 0; series < RECORD_SERIES; series++) {
            for (int is_window = 1; is_window >= 0; is_window--) {
                record_read(r, m, series, is_window, now_ns, &h);
                for (int q = 0; h.count > 0 && q < 4; q++) {
                    open_labels(out, "latency_seconds", record_name(m), record_version(m));
                    text_buffer_format(out, ",stage=\"%s\",window=\"%s\",quantile=\"%g\"} %.9f\n",
                                       record_series_name(series), is_window ? "60s" : "start",
                                       quantiles[q],
                                       (double)histogram_quantile(&h, quantiles[q]) / 1e9);
                }
            }
        }
    }
    family(
        out, "bucket_seconds", "gauge",
        "Quantiles by (batch, sequence) bucket, for stages that depend on it; windows as above.");
    for (const model_record *m = record_next(record_first(r)); m != NULL; m = record_next(m)) {
        for (int bucket = 0; bucket < MODEL_BUCKETS_MAX; bucket++) {
            for (int i = 0; i < 2 * RECORD_BUCKET_SERIES; i++) {
                record_shape shape;
                bool is_window = i % 2 == 0;
                if (!record_read_bucket(r, m, bucket, i / 2, is_window, now_ns, &h, &shape))
                    break;
                for (int q = 0; h.count > 0 && q < 4; q++) {
                    open_labels(out, "bucket_seconds", record_name(m), record_version(m));
                    text_buffer_format(
                        out, ",batch=\"%lld\",sequence=\"%lld\",packed=\"%s\",stage=\"%s\"",
                        (long long)shape.size.batch, (long long)shape.size.sequence,
                        shape.is_packed ? "true" : "false", record_bucket_series_name(i / 2));
                    text_buffer_format(out, ",window=\"%s\",quantile=\"%g\"} %.9f\n",
                                       is_window ? "60s" : "start", quantiles[q],
                                       (double)histogram_quantile(&h, quantiles[q]) / 1e9);
                }
            }
        }
    }
}

static uint64_t counter(_Atomic uint64_t *c)
{
    return atomic_load_explicit(c, memory_order_relaxed);
}

/* One line a model of a counter or gauge. */
static void model_line(text_buffer *out, const char *name, const model *m, const char *more,
                       double value)
{
    open_labels(out, name, m->name, m->version);
    text_buffer_format(out, "%s} ", more);
    text_write_f64(out, value);
    text_buffer_put(out, "\n");
}

static void write_buckets(text_buffer *out, const model **models, int count)
{
    char label[100];
    family(out, "buckets", "gauge",
           "Buckets by state; pending and wanted ones are made after ready, when traffic wants "
           "them.");
    for (int i = 0; i < count; i++) {
        int states[DEFERRED_STATES] = {0};
        for (int b = 0; b < models[i]->bucket_count; b++)
            states[deferred_buckets_state(models[i], b)]++;
        for (int p = 0; p < DEFERRED_STATES; p++) {
            snprintf(label, sizeof(label), ",state=\"%s\"", deferred_state_name(p));
            model_line(out, "buckets", models[i], label, states[p]);
        }
    }
}

static void write_models(text_buffer *out, service *s, const model **models, int count)
{
    static const struct {
        const char *name, *type, *help;
    } families[] = {
        {"queue_rows", "gauge", "Rows admitted and not yet placed in a batch."},
        {"batches_total", "counter", "Batches executed."},
        {"batch_rows_total", "counter",
         "Rows in these batches; divided by batches_total: the mean batch."},
        {"packed_batches_total", "counter", "Batches whose rows held several sequences each."},
        {"real_tokens_total", "counter",
         "Tokens of requests (rows where a model has no sequence)."},
        {"computed_tokens_total", "counter", "Tokens computed, padding included."},
        {"padding_waste_ratio", "gauge", "Share of computed tokens that was padding."},
        {"isolations_total", "counter",
         "Batches repeated one request at a time, to find the one at fault."},
        {"load_seconds", "gauge", "Time to load the model."},
        {"warm_up_seconds", "gauge", "Time to compile and execute buckets before ready."},
    };
    for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
        family(out, families[f].name, families[f].type, families[f].help);
        for (int i = 0; i < count; i++) {
            const model *m = models[i];
            double real = (double)counter(&m->counters->real_tokens),
                   computed = (double)counter(&m->counters->computed_tokens);
            double values[] = {(double)scheduler_queued_rows(s->work, m),
                               (double)counter(&m->counters->batches),
                               (double)counter(&m->counters->batch_rows),
                               (double)counter(&m->counters->packed_batches),
                               real,
                               computed,
                               computed > 0 && computed > real ? 1 - real / computed : 0,
                               (double)counter(&m->counters->isolations),
                               (double)m->load_ns / 1e9,
                               (double)m->warm_up_ns / 1e9};
            model_line(out, families[f].name, m, "", values[f]);
        }
    }
    char label[100];
    family(out, "compiles_total", "counter",
           "Programs made, by phase; exact: after ready, on the CPU, at a request's own shape; "
           "deferred: after ready, on the CPU, buckets that traffic wanted; "
           "serving: after ready, on a device with static shapes, which is an error.");
    for (int i = 0; i < count; i++) {
        for (int p = 0; p < MODEL_COMPILE_COUNT; p++) {
            snprintf(label, sizeof(label), ",phase=\"%s\"",
                     model_compile_phase_name((model_compile_phase)p));
            model_line(out, "compiles_total", models[i], label,
                       (double)counter(&models[i]->counters->compiles[p]));
        }
    }
    family(out, "fallbacks_total", "counter", "Batches that ran on the CPU beside a device.");
    for (int i = 0; i < count; i++) {
        for (int p = 0; p < MODEL_FALLBACK_COUNT; p++) {
            snprintf(label, sizeof(label), ",reason=\"%s\"",
                     model_fallback_name((model_fallback)p));
            model_line(out, "fallbacks_total", models[i], label,
                       (double)counter(&models[i]->counters->fallbacks[p]));
        }
    }
}

static void write_batch_sizes(text_buffer *out, const recorder *r)
{
    family(out, "request_batch_rows", "histogram",
           "Rows of the batch that a successful request was computed in.");
    for (const model_record *m = record_next(record_first(r)); m != NULL; m = record_next(m)) {
        record_totals totals;
        record_read_totals(r, m, &totals);
        uint64_t so_far = 0;
        for (int i = 0; i < RECORD_BATCH_CELLS; i++) {
            so_far += totals.batch_cells[i];
            open_labels(out, "request_batch_rows_bucket", record_name(m), record_version(m));
            if (i == RECORD_BATCH_CELLS - 1)
                text_buffer_format(out, ",le=\"+Inf\"} %llu\n", (unsigned long long)so_far);
            else
                text_buffer_format(out, ",le=\"%d\"} %llu\n", 1 << i, (unsigned long long)so_far);
        }
        open_labels(out, "request_batch_rows_sum", record_name(m), record_version(m));
        text_buffer_format(out, "} %llu\n", (unsigned long long)totals.batch_rows);
        open_labels(out, "request_batch_rows_count", record_name(m), record_version(m));
        text_buffer_format(out, "} %llu\n", (unsigned long long)so_far);
    }
    family(out, "rows_total", "counter", "Rows of successful requests.");
    for (const model_record *m = record_next(record_first(r)); m != NULL; m = record_next(m)) {
        record_totals totals;
        record_read_totals(r, m, &totals);
        open_labels(out, "rows_total", record_name(m), record_version(m));
        text_buffer_format(out, "} %llu\n", (unsigned long long)totals.rows);
    }
}

static void write_devices(text_buffer *out, service *s, uint64_t now_ns)
{
    static const struct {
        const char *name, *type, *help;
    } families[] = {
        {"device_healthy", "gauge", "1 when the device executes."},
        {"device_draining", "gauge", "1 when a notice made the device leave its work to others."},
        {"device_busy_seconds_total", "counter", "Time in execution, summed over slots."},
        {"device_busy_fraction", "gauge", "Share of time in execution since start, per slot."},
        {"device_executions_total", "counter", "Batches executed."},
        {"device_failures_total", "counter", "Executions that failed."},
        {"device_compiles_total", "counter", "Programs compiled."},
        {"device_cache_hits_total", "counter", "Programs taken from the compile cache."},
        {"device_cache_misses_total", "counter", "Programs the compile cache did not have."},
        {"device_cache_corrupt_total", "counter", "Cache entries that were damaged."},
        {"device_cache_store_failures_total", "counter",
         "Programs that could not be stored in the cache."},
        {"device_restarts_total", "counter", "Restarts of the device's process."},
        {"device_peak_fraction", "gauge", "Achieved share of the peak measured at start."},
    };
    double up_ns = (double)(now_ns - s->start_ns);
    for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
        family(out, families[f].name, families[f].type, families[f].help);
        for (int i = 0; i < s->device_count; i++) {
            device *d = s->devices[i];
            device_status at = {0};
            if (device_is_absent(d))
                continue;
            d->interface->describe(d, &at);
            bool is_draining = i + 1 < s->device_count && scheduler_is_draining(s->work, i);
            double values[] = {at.state == DEVICE_HEALTHY,
                               is_draining,
                               (double)at.busy_ns / 1e9,
                               (double)at.busy_ns / (up_ns * (d->slots ? d->slots : 1)),
                               (double)at.executions,
                               (double)at.failures,
                               (double)at.compiles,
                               (double)at.cache_hits,
                               (double)at.cache_misses,
                               (double)at.cache_corrupt,
                               (double)at.cache_store_failures,
                               (double)at.restarts,
                               at.utilisation_of_peak};
            text_buffer_format(out, "penstock_%s{device=\"", families[f].name);
            put_label(out, d->name);
            text_buffer_put(out, "\",kind=\"");
            put_label(out, d->kind);
            text_buffer_put(out, "\"} ");
            text_write_f64(out, values[f]);
            text_buffer_put(out, "\n");
        }
    }
}

static void write_tenants(text_buffer *out, const service *s)
{
    const server_options *o = s->options;
    family(out, "tenant_device_seconds_total", "counter",
           "Device time received, by tenant; requests without a tenant share one.");
    for (int i = 0; i <= o->tenant_count; i++) {
        text_buffer_put(out, "penstock_tenant_device_seconds_total{tenant=\"");
        put_label(out, i > 0 ? server_tenant_of(o, i)->name : "");
        text_buffer_put(out, "\"} ");
        text_write_f64(out, (double)scheduler_tenant_ns(s->work, i) / 1e9);
        text_buffer_put(out, "\n");
    }
}

static void gauge(text_buffer *out, const char *name, const char *help, double value)
{
    family(out, name, "gauge", help);
    text_buffer_format(out, "penstock_%s ", name);
    text_write_f64(out, value);
    text_buffer_put(out, "\n");
}

static void write_loads(text_buffer *out, service *s)
{
    bool is_one_under_way;
    int waiting = repository_waiting(s->models, &is_one_under_way);
    family(out, "loads_total", "counter",
           "Loads of models by result, those at the start included.");
    for (int i = 0; i < REPOSITORY_LOAD_RESULTS; i++)
        text_buffer_format(
            out, "penstock_loads_total{result=\"%s\"} %llu\n",
            repository_load_result_name((repository_load_result)i),
            (unsigned long long)repository_loads(s->models, (repository_load_result)i));
    static const char *const states[MODEL_STATES] = {"loading", "ready", "failed", "unloaded",
                                                     "ignored"};
    family(out, "model_versions", "gauge",
           "Versions of models by state; ignored: what stands in the repository and is no model.");
    for (int i = 0; i < MODEL_STATES; i++)
        text_buffer_format(out, "penstock_model_versions{state=\"%s\"} %d\n", states[i],
                           repository_count(s->models, (model_state)i));
    gauge(out, "loads_waiting", "Loads and unloads that wait for the one under way.", waiting);
    gauge(out, "loads_under_way", "1 while a model is loaded or unloaded.", is_one_under_way);
}

/* What a plugin is, as labels; the value is always 1. */
static void write_device_info(text_buffer *out, service *s)
{
    family(out, "device_info", "gauge", "1; labels describe the device and its state.");
    for (int i = 0; i < s->device_count; i++) {
        device *d = s->devices[i];
        device_status at = {0};
        if (device_is_absent(d))
            continue;
        d->interface->describe(d, &at);
        const char *labels[][2] = {{"device", d->name},
                                   {"kind", d->kind},
                                   {"version", at.version ? at.version : ""},
                                   {"detail", at.detail}};
        text_buffer_put(out, "penstock_device_info{");
        for (size_t k = 0; k < sizeof(labels) / sizeof(labels[0]); k++) {
            text_buffer_format(out, "%s%s=\"", k ? "," : "", labels[k][0]);
            put_label(out, labels[k][1]);
            text_buffer_put(out, "\"");
        }
        text_buffer_put(out, "} 1\n");
    }
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
    family(out, "connections_closed_total", "counter", "Connections ended by the server.");
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
    gauge(out, "held_bytes", "Bytes held for clients: heads, bodies, responses not yet taken.",
          (double)atomic_load_explicit(&b->bytes, memory_order_relaxed));
    gauge(out, "held_bytes_max", "The most of them.", (double)b->limits.bytes_max);
    family(out, "held_refusals_total", "counter", "Bytes that were not granted, by whose limit.");
    for (budget_verdict v = BUDGET_CONNECTION_FULL; v < BUDGET_VERDICTS; v++)
        text_buffer_format(
            out, "penstock_held_refusals_total{limit=\"%s\"} %llu\n", budget_verdict_name(v),
            (unsigned long long)atomic_load_explicit(&b->refusals[v], memory_order_relaxed));
}

static void write_loops(text_buffer *out, const service *s)
{
    int count = s->loop_count + s->has_health;
    family(out, "loop_turn_seconds", "histogram",
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
    family(out, "loop_stuck_seconds", "gauge",
           "For how long an event loop has not turned though it was asked to; 0: it turns.");
    for (int i = 0; i < count; i++) {
        uint64_t ns = atomic_load_explicit(&s->loops[i].watch.stuck_ns, memory_order_relaxed);
        text_buffer_format(out, "penstock_loop_stuck_seconds{loop=\"%d\"} %.3f\n", i,
                           (double)ns / 1e9);
    }
    family(out, "loop_stalls_total", "counter",
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
    family(out, "connection_yields_total", "counter",
           "Times that a connection had used up its share of a turn of its event loop.");
    text_buffer_format(out, "penstock_connection_yields_total %llu\n", (unsigned long long)yields);
    family(out, "access_log_dropped_total", "counter",
           "Lines of the access log that were not written: its reader is too slow, or it failed.");
    text_buffer_format(out, "penstock_access_log_dropped_total %llu\n",
                       (unsigned long long)dropped);
    family(out, "memory_shortages_total", "counter",
           "Times that a connection needed memory and there was none but the reserve.");
    text_buffer_format(out, "penstock_memory_shortages_total %llu\n",
                       (unsigned long long)shortages);
}

static void write_refusals(text_buffer *out, const service *s)
{
    static const char *const reasons[SERVICE_REFUSALS] = {"no_key", "wrong_key", "no_right"};
    family(out, "access_refusals_total", "counter",
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
    family(out, "build_info", "gauge", "Version.");
    text_buffer_put(out, "penstock_build_info{version=\"" PENSTOCK_VERSION "\"} 1\n");
    gauge(out, "ready",
          "1 when the models asked for are ready (readiness) and the server is not draining.",
          is_ready);
    gauge(out, "device_missing", "1 when a device that was asked for could not be started.",
          is_open && missing[0] != 0);
    family(out, "device_start_failures_total", "counter", "Tries to start a device that failed.");
    text_buffer_format(out, "penstock_device_start_failures_total %llu\n",
                       (unsigned long long)atomic_load(&s->start_failures));
    gauge(out, "connections", "Open connections.", atomic_load(&s->connections));
    write_closures(out, s);
    write_refusals(out, s);
    write_held(out, &s->budget);
    gauge(out, "requests_open", "Requests being handled.", service_open_requests(s));
    write_loop_totals(out, s);
    gauge(out, "uptime_seconds", "Time since start.", (double)(now_ns - s->start_ns) / 1e9);
    gauge(out, "resident_bytes", "Resident memory.", resident_bytes());
}

static void write_all(request *r, const void *about, text_buffer *out)
{
    service *s = request_service(r);
    uint64_t now_ns = clock_now_ns();
    (void)about;
    bool is_open = service_is_open(s);
    const model **models = malloc(MODELS_MAX * sizeof(*models));
    int count = models && is_open ? repository_ready_models(s->models, models, MODELS_MAX) : 0;
    count = count < MODELS_MAX ? count : MODELS_MAX;
    write_server_gauges(out, s, now_ns);
    write_loops(out, s);
    write_codes(out, s->recorder);
    write_histograms(out, s->recorder, now_ns);
    write_quantiles(out, s->recorder, now_ns);
    write_batch_sizes(out, s->recorder);
    write_models(out, s, models, count);
    write_buckets(out, models, count);
    if (is_open) {
        write_devices(out, s, now_ns);
        write_device_info(out, s);
        write_tenants(out, s);
        write_loads(out, s);
    }
    for (int i = 0; i < count; i++)
        model_release(models[i]);
    free(models);
}

void serve_metrics(request *r)
{
    respond_shared(r, "text/plain; version=0.0.4; charset=utf-8", NULL, write_all);
}

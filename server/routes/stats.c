/* GET /v2/models[/M]/stats: Triton's statistics extension, as tritonclient and perf_analyzer read
 * it, and beside it the quantiles by stage. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "models/planner.h"
#include "models/start/deferred_buckets.h"
#include "server/protocol/text/text_write.h"
#include "server/request/respond.h"
#include "server/routes/routes.h"

#define MODELS_MAX 1024
#define ADVISE_LENGTH_MAX 1024 /* planning takes the square of it in steps, on a loop */

static void put_span(text_buffer *out, const char *name, uint64_t count, uint64_t ns, bool is_last)
{
    text_buffer_format(out, "\"%s\":{\"count\":%llu,\"ns\":%llu}%s", name,
                       (unsigned long long)count, (unsigned long long)ns, is_last ? "" : ",");
}

static uint64_t sum(const record_totals *t, stage from, stage to)
{
    uint64_t ns = 0;
    for (int i = from; i <= (int)to; i++)
        ns += t->stage_sum_ns[i];
    return ns;
}

static void write_batches(text_buffer *out, const recorder *r, const model_record *m)
{
    bool is_first = true;
    text_buffer_put(out, "},\"batch_stats\":[");
    for (int rows = 1; rows <= RECORD_BATCH_SIZES; rows++) {
        record_batches b;
        if (!record_read_size(r, m, rows, &b))
            continue;
        text_buffer_format(out, "%s{\"batch_size\":%d,", is_first ? "" : ",", rows);
        put_span(out, "compute_input", b.count, b.input_ns, false);
        put_span(out, "compute_infer", b.count, b.infer_ns, false);
        put_span(out, "compute_output", b.count, b.output_ns, true);
        text_buffer_put(out, "}");
        is_first = false;
    }
    text_buffer_put(out, "]");
}

/* "p50":..., "p99.9":... in milliseconds, after the count. */
static void put_quantiles(text_buffer *out, const histogram *h)
{
    static const struct {
        const char *name;
        double q;
    } wanted[] = {{"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}, {"p99.9", 0.999}};
    text_buffer_format(out, "{\"count\":%llu", (unsigned long long)h->count);
    for (int i = 0; i < 4; i++)
        text_buffer_format(out, ",\"%s\":%.6f", wanted[i].name,
                           (double)histogram_quantile(h, wanted[i].q) / 1e6);
    text_buffer_put(out, "}");
}

static void write_buckets(text_buffer *out, const recorder *r, const model_record *m,
                          uint64_t now_ns)
{
    histogram h;
    record_shape shape;
    bool is_first = true;
    text_buffer_put(out, ",\"buckets\":[");
    for (int bucket = 0; bucket < MODEL_BUCKETS_MAX; bucket++) {
        if (!record_read_bucket(r, m, bucket, 0, false, now_ns, &h, &shape))
            continue;
        text_buffer_format(out,
                           "%s{\"batch\":%lld,\"sequence\":%lld,\"packed\":%s,\"latency_ms\":{",
                           is_first ? "" : ",", (long long)shape.size.batch,
                           (long long)shape.size.sequence, shape.is_packed ? "true" : "false");
        for (int i = 0; i < 2 * RECORD_BUCKET_SERIES; i++) {
            int series = i % RECORD_BUCKET_SERIES;
            bool is_window = i < RECORD_BUCKET_SERIES;
            record_read_bucket(r, m, bucket, series, is_window, now_ns, &h, &shape);
            if (series == 0)
                text_buffer_put(out, is_window ? "\"60s\":{" : "},\"start\":{");
            text_buffer_format(out, "%s\"%s\":", series ? "," : "",
                               record_bucket_series_name(series));
            put_quantiles(out, &h);
        }
        text_buffer_put(out, "}}}");
        is_first = false;
    }
    text_buffer_put(out, "]");
}

static void write_latency(text_buffer *out, const recorder *r, const model_record *m,
                          uint64_t now_ns)
{
    histogram h;
    text_buffer_put(out, ",\"latency_ms\":{");
    for (int is_window = 1; is_window >= 0; is_window--) {
        text_buffer_put(out, is_window ? "\"60s\":{" : ",\"start\":{");
        bool is_first = true;
        for (int series = 0; series < RECORD_SERIES; series++) {
            record_read(r, m, series, is_window, now_ns, &h);
            if (h.count == 0)
                continue;
            text_buffer_format(out, "%s\"%s\":", is_first ? "" : ",", record_series_name(series));
            put_quantiles(out, &h);
            is_first = false;
        }
        text_buffer_put(out, "}");
    }
    text_buffer_put(out, "}");
}

static void write_plan(text_buffer *out, const char *name, const planner_plan *plan)
{
    text_buffer_format(out, ",\"%s\":{\"sequence\":[", name);
    for (int i = 0; i < plan->count; i++)
        text_buffer_format(out, "%s%lld", i ? "," : "", (long long)plan->buckets[i].sequence);
    text_buffer_format(out, "],\"waste\":%.6f}", plan->waste);
}

/* Lengths asked for so far, the waste of today's buckets, and which would waste least. */
static void write_lengths(text_buffer *out, const model *m)
{
    const length_histogram *h = m->lengths;
    planner_plan today, advised;
    uint64_t total = h ? length_histogram_total(h) : 0;
    if (total == 0)
        return;
    text_buffer_format(out,
                       ",\"lengths\":{\"count\":%llu,\"mean\":%.3f,\"p50\":%lld,\"p95\":%lld,"
                       "\"max\":%lld",
                       (unsigned long long)total, length_histogram_mean(h),
                       (long long)length_histogram_quantile(h, 0.5),
                       (long long)length_histogram_quantile(h, 0.95),
                       (long long)length_histogram_quantile(h, 1));
    if (!model_is_exact(m)) {
        planner_measure(h, m->sequence_buckets, m->sequence_bucket_count, NULL, &today);
        write_plan(out, "buckets", &today);
        if (h->length_max <= ADVISE_LENGTH_MAX &&
            !planner_make(h, m->sequence_bucket_count, NULL, m->batching.sequence_max, &advised))
            write_plan(out, "advised_buckets", &advised);
    }
    text_buffer_put(out, "}");
}

/* Buckets that were not made before ready, and how far they are. */
static void write_deferred(text_buffer *out, const model *m)
{
    bool is_first = true;
    text_buffer_put(out, ",\"deferred_buckets\":[");
    for (int i = 0; i < m->bucket_count; i++) {
        deferred_state state = deferred_buckets_state(m, i);
        if (state == DEFERRED_NOT)
            continue;
        text_buffer_format(out, "%s{\"batch\":%lld,\"sequence\":%lld,\"state\":\"%s\"}",
                           is_first ? "" : ",", (long long)m->buckets[i].shape.batch,
                           (long long)m->buckets[i].shape.sequence, deferred_state_name(state));
        is_first = false;
    }
    text_buffer_put(out, "]");
}

/* "int8 static: why" as the members of an object. The scales are the last word before the colon:
 * "as exported none". */
static void put_how(text_buffer *out, const char *how)
{
    size_t end = strcspn(how, ":"), space = end;
    while (space > 0 && how[space] != ' ')
        space--;
    size_t scales = space > 0 ? space + 1 : end;
    text_buffer_format(out, "\"arithmetic\":\"%.*s\",\"scales\":\"%.*s\",\"reason\":",
                       (int)(space > 0 ? space : end), how, (int)(end - scales), how + scales);
    text_write_json_text(out, how + end + 2 * (how[end] == ':'));
}

/* Devices of one kind have the same programs: those of the first are told. */
static bool tells_programs(const model *m, int device_index)
{
    const device *on = m->devices[device_index];
    for (int i = 0; i < device_index; i++)
        if (strcmp(m->devices[i]->kind, on->kind) == 0)
            return false;
    return on->interface->explain != NULL;
}

/* What the programs of each bucket compute in on devices with static shapes, and why. */
static void write_programs(text_buffer *out, const model *m)
{
    const char *separator = "";
    text_buffer_put(out, ",\"device_programs\":[");
    for (int d = 0; d + 1 < m->device_count; d++) {
        for (int i = 0; i < m->bucket_count && tells_programs(m, d); i++) {
            const model_bucket *b = &m->buckets[i];
            char how[700];
            const device_program *program = deferred_buckets_program(m, i, d);
            if (program == NULL)
                continue;
            m->devices[d]->interface->explain(m->devices[d], program, how, sizeof how);
            text_buffer_format(out, "%s{\"device\":", separator);
            text_write_json_text(out, m->devices[d]->kind);
            text_buffer_format(out, ",\"batch\":%lld,\"sequence\":%lld,\"packed\":%s,",
                               (long long)b->shape.batch, (long long)b->shape.sequence,
                               b->sequences > 0 ? "true" : "false");
            put_how(out, how);
            text_buffer_put(out, "}");
            separator = ",";
        }
    }
    text_buffer_put(out, "]");
}

/* The accelerators: how copies and executions overlap, and what became of the compile cache. */
static void write_devices(text_buffer *out, const model *m)
{
    const char *separator = "";
    text_buffer_put(out, ",\"devices\":[");
    for (int d = 0; d + 1 < m->device_count; d++) {
        device_status at = {0};
        m->devices[d]->interface->describe(m->devices[d], &at);
        if (at.pipeline_depth == 0)
            continue;
        text_buffer_format(out, "%s{\"device\":", separator);
        text_write_json_text(out, m->devices[d]->name);
        text_buffer_format(out,
                           ",\"pipeline_depth\":%d,\"pipeline_idle_fraction\":%.4f,"
                           "\"computing_s\":%.6f,\"transfer_s\":%.6f,\"pinned_bytes\":%llu",
                           at.pipeline_depth, at.pipeline_idle_fraction,
                           (double)at.computing_ns / 1e9, (double)at.transfer_ns / 1e9,
                           (unsigned long long)at.pinned_bytes);
        text_buffer_format(out,
                           ",\"compiles\":%llu,\"cache_hits\":%llu,\"cache_misses\":%llu,"
                           "\"cache_corrupt\":%llu,\"cache_refused\":%llu}",
                           (unsigned long long)at.compiles, (unsigned long long)at.cache_hits,
                           (unsigned long long)at.cache_misses,
                           (unsigned long long)at.cache_corrupt,
                           (unsigned long long)at.cache_refused);
        separator = ",";
    }
    text_buffer_put(out, "]");
}

static void write_usage(text_buffer *out, const model *m, uint64_t now_ns)
{
    usage_summary u;
    usage_read(m->usage, now_ns, &u);
    text_buffer_format(out,
                       ",\"last_minute\":{\"tokens_per_s\":%.3f,\"padding_waste\":%.6f,"
                       "\"mfu\":%.6f,\"dollars_per_million_tokens\":%.6g}",
                       u.tokens_per_s, u.waste, u.mfu, u.dollars_per_million_tokens);
}

static void write_one(text_buffer *out, service *s, const model *m, uint64_t now_ns)
{
    const model_record *record = record_of_model(s->recorder, m);
    record_totals t;
    record_read_totals(s->recorder, record, &t);
    uint64_t last_ms = t.last_ns ? (clock_wall_ns() - (now_ns - t.last_ns)) / 1000000 : 0;
    uint64_t batches = atomic_load(&m->counters->batches);
    text_buffer_put(out, "{\"name\":");
    text_write_json_text(out, m->name);
    text_buffer_format(out,
                       ",\"version\":\"%lld\",\"last_inference\":%llu,\"inference_count\":%llu,"
                       "\"execution_count\":%llu,\"inference_stats\":{",
                       (long long)m->version, (unsigned long long)last_ms,
                       (unsigned long long)t.rows, (unsigned long long)batches);
    put_span(out, "success", t.success_count, t.success_ns, false);
    put_span(out, "fail", t.failure_count, t.failure_ns, false);
    put_span(out, "queue", t.success_count, sum(&t, STAGE_QUEUE, STAGE_QUEUE), false);
    put_span(out, "compute_input", t.success_count, sum(&t, STAGE_FORM, STAGE_PLACE), false);
    put_span(out, "compute_infer", t.success_count, sum(&t, STAGE_EXECUTE, STAGE_EXECUTE), false);
    put_span(out, "compute_output", t.success_count, sum(&t, STAGE_SLICE, STAGE_SLICE), false);
    put_span(out, "cache_hit", 0, 0, false);
    put_span(out, "cache_miss", 0, 0, true);
    write_batches(out, s->recorder, record);
    text_buffer_format(out,
                       ",\"batch_rows\":%llu,\"real_tokens\":%llu,\"computed_tokens\":%llu,"
                       "\"queue_rows\":%lld",
                       (unsigned long long)atomic_load(&m->counters->batch_rows),
                       (unsigned long long)atomic_load(&m->counters->real_tokens),
                       (unsigned long long)atomic_load(&m->counters->computed_tokens),
                       (long long)scheduler_queued_rows(s->work, m));
    write_usage(out, m, now_ns);
    write_latency(out, s->recorder, record, now_ns);
    write_buckets(out, s->recorder, record, now_ns);
    write_deferred(out, m);
    write_programs(out, m);
    write_devices(out, m);
    write_lengths(out, m);
    text_buffer_put(out, "}");
}

static void write_model(request *r, const void *about, text_buffer *out)
{
    text_buffer_put(out, "{\"model_stats\":[");
    write_one(out, request_service(r), about, clock_now_ns());
    text_buffer_put(out, "]}");
}

/* Of the ready models, or of those with that name. */
static void write_models(request *r, const void *about, text_buffer *out)
{
    service *s = request_service(r);
    uint64_t now_ns = clock_now_ns();
    const char *name = about;
    const model **models = malloc(MODELS_MAX * sizeof(*models));
    int count = models ? repository_ready_models(s->models, models, MODELS_MAX) : 0, written = 0;
    text_buffer_put(out, "{\"model_stats\":[");
    for (int i = 0; i < count && i < MODELS_MAX; i++) {
        if (name == NULL || strcmp(models[i]->name, name) == 0) {
            text_buffer_put(out, written++ ? "," : "");
            write_one(out, s, models[i], now_ns);
        }
        model_release(models[i]);
    }
    free(models);
    text_buffer_put(out, "]}");
}

void serve_stats(request *r)
{
    const model *m = NULL;
    if (r->route.kind != ROUTE_MODEL_STATS) {
        respond_shared(r, "application/json", NULL, write_models);
        return;
    }
    status failure = request_find_model(r, &m);
    if (failure) {
        respond_status(r, failure, status_message());
        return;
    }
    if (r->route.version != 0)
        respond_shared(r, "application/json", m, write_model);
    else
        respond_shared(r, "application/json", m->name, write_models);
    model_release(m);
}

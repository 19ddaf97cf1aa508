#include "base/text/text_buffer.h"
#include "loadtest/report/report.h"
#include "loadtest/wire/memory.h"

#include "loadtest/workload/quantity.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const report_quantile report_quantiles[] = {{"p50", 0.5},       {"p75", 0.75}, {"p90", 0.9},
                                            {"p95", 0.95},      {"p99", 0.99}, {"p99.9", 0.999},
                                            {"p99.99", 0.9999}, {NULL, 0}};

#define SCHEMA 1

static json_t *rounded(double value)
{
    /* Seven digits: more than the histograms resolve. */
    if (!isfinite(value))
        return json_null();
    if (value == 0)
        return json_real(0);
    double scale = pow(10, 7 - ceil(log10(fabs(value))));
    return json_real(round(value * scale) / scale);
}

static json_t *quantiles_ms(const histogram *h)
{
    json_t *out = json_object();
    double count = (double)h->count;
    json_object_set_new(out, "mean", rounded(count > 0 ? (double)h->sum / count / 1e6 : 0));
    for (const report_quantile *p = report_quantiles; p->name != NULL; p++)
        json_object_set_new(out, p->name, rounded((double)histogram_quantile(h, p->q) / 1e6));
    json_object_set_new(out, "max", rounded((double)h->max / 1e6));
    return out;
}

static json_t *timeline(const result *r)
{
    json_t *list = json_array();
    double seconds = (double)r->slice_ns / 1e9;
    for (unsigned i = 0; i < r->slice_count; i++) {
        const result_slice *s = &r->slices[i];
        json_array_append_new(
            list, json_pack("{s:o,s:I,s:I,s:I,s:o,s:o,s:o,s:o}", "t", rounded(i * seconds), "sent",
                            (json_int_t)s->sent, "answered", (json_int_t)s->succeeded, "errors",
                            (json_int_t)s->failed, "p50_ms",
                            rounded((double)histogram_quantile(&s->latency, 0.5) / 1e6), "p95_ms",
                            rounded((double)histogram_quantile(&s->latency, 0.95) / 1e6), "p99_ms",
                            rounded((double)histogram_quantile(&s->latency, 0.99) / 1e6), "max_ms",
                            rounded((double)s->latency.max / 1e6)));
    }
    return list;
}

static json_t *slices(const result *r)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < r->slice_count; i++)
        json_array_append_new(list, result_histogram_to_json(&r->slices[i].latency));
    return json_pack("{s:I,s:o}", "slice_ns", (json_int_t)r->slice_ns, "latency", list);
}

static json_t *histograms(const result *r)
{
    json_t *stages = json_object();
    for (unsigned i = 0; i < r->stage_count; i++)
        json_object_set_new(stages, r->stages[i].name,
                            result_histogram_to_json(&r->stages[i].duration));
    return json_pack(
        "{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "latency", result_histogram_to_json(&r->latency),
        "latency_ok", result_histogram_to_json(&r->latency_ok), "service",
        result_histogram_to_json(&r->service), "lag", result_histogram_to_json(&r->lag),
        "connection_wait", result_histogram_to_json(&r->connection_wait), "server",
        result_histogram_to_json(&r->server), "refused", result_histogram_to_json(&r->refused),
        "stages", stages, "timeline", slices(r));
}

static json_t *setup(const result_setup *s)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:o,s:I,s:I,s:I,s:I,s:I,s:o,s:o,s:o,s:o}",
                     "url", s->url, "model", s->model, "protocol", s->protocol, "format", s->format,
                     "loop", s->loop, "arrivals", s->arrivals, "io", s->io, "machine", s->machine,
                     "rate_target", rounded(s->rate_target), "concurrency",
                     (json_int_t)s->concurrency, "threads", (json_int_t)s->threads, "connections",
                     (json_int_t)s->connections, "parts", (json_int_t)s->parts, "seed",
                     (json_int_t)s->seed, "duration_s", rounded((double)s->duration_ns / 1e9),
                     "warm_up_s", rounded((double)s->warm_up_ns / 1e9), "timeout_s",
                     rounded((double)s->timeout_ns / 1e9), "started",
                     json_real(round((double)s->started_wall_ns / 1e6) / 1e3));
}

static json_t *client(const result *r)
{
    char text[256];
    const char *bottleneck = result_bottleneck(r, text, sizeof text);
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:b,s:o,s:I,s:I,s:I}", "lag_ms", quantiles_ms(&r->lag),
                     "connection_wait_ms", quantiles_ms(&r->connection_wait), "busy",
                     rounded(r->loop_busy), "cpu_s", rounded(r->cpu_s), "steal",
                     rounded(r->steal_share), "bottleneck", bottleneck != NULL, "warning",
                     bottleneck ? json_string(bottleneck) : json_null(), "connections_opened",
                     (json_int_t)r->connections_opened, "connections_lost",
                     (json_int_t)r->connections_lost, "retries", (json_int_t)r->retries);
}

static json_t *errors_by_kind(const result *r, json_t **reasons)
{
    json_t *kinds = json_object();
    *reasons = json_object();
    for (int k = 0; k < REQUEST_ERROR_COUNT; k++) {
        const char *name = result_error_name((request_error)k);
        json_object_set_new(kinds, name, json_integer((json_int_t)r->errors[k]));
        /* A server's text may not be UTF-8; jansson refuses it, and it is left out. */
        if (r->reasons[k][0] != 0)
            json_object_set_new(*reasons, name, json_string(r->reasons[k]));
    }
    return kinds;
}

static json_t *objectives(const report *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->slo_count; i++) {
        double measured;
        bool held = result_slo_held(p->result, &p->slo[i], &measured);
        double unit = p->slo[i].kind == SLO_QUANTILE ? 1e6 : 1;
        json_array_append_new(list, json_pack("{s:s,s:o,s:o,s:b}", "objective", p->slo[i].text,
                                              "limit", rounded(p->slo[i].limit / unit), "measured",
                                              rounded(measured / unit), "held", held));
    }
    return list;
}

static json_t *points(const report *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->point_count; i++) {
        const report_point *at = &p->points[i];
        json_array_append_new(
            list,
            json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:b,s:b,s:b}", "rate", rounded(at->rate),
                      "rate_sent", rounded(at->rate_sent), "goodput", rounded(at->goodput),
                      "p50_ms", rounded(at->p50_ms), "p95_ms", rounded(at->p95_ms), "p99_ms",
                      rounded(at->p99_ms), "errors_share", rounded(at->failed_share), "held",
                      at->held, "confirmation", at->confirmation, "stopped_early", at->aborted));
    }
    return list;
}

static void add_counts(json_t *root, const result *r)
{
    json_t *codes = json_object(), *reasons;
    for (int code = 0; code < RESULT_CODES; code++)
        if (r->codes[code] != 0) {
            char name[8];
            snprintf(name, sizeof name, "%d", code);
            json_object_set_new(codes, name, json_integer((json_int_t)r->codes[code]));
        }
    json_object_set_new(root, "requests", json_integer((json_int_t)r->sent));
    json_object_set_new(root, "answered", json_integer((json_int_t)r->succeeded));
    json_object_set_new(root, "answered_in_window",
                        json_integer((json_int_t)r->completed_in_window));
    json_object_set_new(root, "within_slo", json_integer((json_int_t)r->within_slo));
    json_object_set_new(root, "errors", json_integer((json_int_t)result_failed(r)));
    json_object_set_new(root, "unfinished", json_integer((json_int_t)r->unfinished));
    if (r->unfinished != 0)
        json_object_set_new(root, "unfinished_oldest_s",
                            rounded((double)r->unfinished_oldest_ns / 1e9));
    json_object_set_new(root, "errors_by_kind", errors_by_kind(r, &reasons));
    json_object_set_new(root, "first_error_of_kind", reasons);
    json_object_set_new(root, "codes", codes);
    json_object_set_new(root, "verified", json_integer((json_int_t)r->verified));
    json_object_set_new(root, "tokens", json_integer((json_int_t)r->tokens));
    json_object_set_new(root, "bytes_sent", json_integer((json_int_t)r->bytes_sent));
    json_object_set_new(root, "bytes_received", json_integer((json_int_t)r->bytes_received));
}

static json_t *report_object(const report *p)
{
    const result *r = p->result;
    double seconds = (double)r->setup.duration_ns / 1e9;
    json_t *root = json_object(), *stages = json_object();
    for (unsigned i = 0; i < r->stage_count; i++)
        json_object_set_new(stages, r->stages[i].name, quantiles_ms(&r->stages[i].duration));
    json_object_set_new(root, "schema", json_integer(SCHEMA));
    if (p->title != NULL)
        json_object_set_new(root, "title", json_string(p->title));
    json_object_set_new(root, "setup", setup(&r->setup));
    json_object_set_new(root, "rate", rounded(result_rate(r)));
    json_object_set_new(root, "rate_sent", rounded(result_rate_sent(r)));
    json_object_set_new(root, "rate_target", rounded(r->setup.rate_target));
    json_object_set_new(root, "goodput", rounded(result_goodput(r)));
    json_object_set_new(root, "tokens_per_s",
                        rounded(seconds > 0 ? (double)r->tokens / seconds : 0));
    if (p->dollars_per_hour > 0)
        json_object_set_new(root, "dollars_per_million_tokens",
                            rounded(report_dollars_per_million_tokens(p)));
    add_counts(root, r);
    json_object_set_new(root, "latency_ms", quantiles_ms(&r->latency));
    json_object_set_new(root, "latency_ok_ms", quantiles_ms(&r->latency_ok));
    json_object_set_new(root, "service_ms", quantiles_ms(&r->service));
    if (r->server.count != 0)
        json_object_set_new(root, "server_ms", quantiles_ms(&r->server));
    if (r->refused.count != 0)
        json_object_set_new(root, "refused_ms", quantiles_ms(&r->refused));
    json_object_set_new(root, "stages_ms", stages);
    json_object_set_new(root, "client", client(r));
    json_object_set_new(root, "interrupted", json_boolean(r->aborted || p->cut_short));
    if (p->slo_count != 0) {
        json_object_set_new(root, "slo", objectives(p));
        bool held = p->search != NULL && strcmp(p->search, "find_max") == 0
                        ? p->found_rate > 0
                        : result_slo_all_held(r, p->slo, p->slo_count);
        json_object_set_new(root, "slo_held", json_boolean(held));
    }
    if (p->search != NULL) {
        json_object_set_new(
            root, p->search,
            json_pack("{s:o,s:o}", "rate", rounded(p->found_rate), "runs", points(p)));
    }
    json_object_set_new(root, "timeline", timeline(r));
    json_object_set_new(root, "histograms", histograms(r));
    return root;
}

status report_write(const char *path, const char *text, size_t bytes)
{
    FILE *f = strcmp(path, "-") == 0 ? stdout : fopen(path, "wb");
    if (f == NULL)
        return status_fail(STATUS_IO, "%s: %s", path, strerror(errno));
    bool failed = fwrite(text, 1, bytes, f) != bytes || fflush(f) != 0;
    if (f != stdout)
        failed |= fclose(f) != 0;
    return failed ? status_fail(STATUS_IO, "%s: cannot be written", path) : STATUS_OK;
}

status report_json(const report *p, const char *path)
{
    json_t *root = report_object(p);
    /* Histograms are compact, or they would fill screens; the rest is indented. */
    json_t *bulk = json_incref(json_object_get(root, "histograms"));
    json_object_del(root, "histograms");
    char *text = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
    char *compact = json_dumps(bulk, JSON_COMPACT);
    text_buffer b = {0};
    text_buffer_append(&b, text, strlen(text) - 2); /* without its last brace */
    text_buffer_format(&b, ",\n \"histograms\": %s\n}\n", compact);
    status s = report_write(path, text_buffer_string(&b), b.bytes);
    text_buffer_dispose(&b);
    free(text);
    free(compact);
    json_decref(bulk);
    json_decref(root);
    return s;
}

static void read_text(char *to, size_t bytes, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    snprintf(to, bytes, "%s", text ? text : "");
}

/* 0 where there is none; anything but a count sets `*failed`. */
static uint64_t read_count(const json_t *object, const char *key, status *failed)
{
    const json_t *there = json_object_get(object, key);
    json_int_t value = json_integer_value(there);
    if (there != NULL && (!json_is_integer(there) || value < 0)) {
        *failed = status_fail(STATUS_CORRUPT, "%s: expected a whole number, 0 or more", key);
        return 0;
    }
    return (uint64_t)value;
}

static uint64_t read_seconds(const json_t *object, const char *key, status *failed)
{
    const json_t *there = json_object_get(object, key);
    double seconds = json_number_value(there);
    if (there != NULL && (!json_is_number(there) || !(seconds >= 0 && seconds < 9e9))) {
        *failed = status_fail(STATUS_CORRUPT, "%s: expected seconds, from 0 to 9e9", key);
        return 0;
    }
    return (uint64_t)llround(seconds * 1e9);
}

static status read_setup(result_setup *s, const json_t *json)
{
    status failed = STATUS_OK;
    read_text(s->url, sizeof s->url, json, "url");
    read_text(s->model, sizeof s->model, json, "model");
    read_text(s->protocol, sizeof s->protocol, json, "protocol");
    read_text(s->format, sizeof s->format, json, "format");
    read_text(s->loop, sizeof s->loop, json, "loop");
    read_text(s->arrivals, sizeof s->arrivals, json, "arrivals");
    read_text(s->io, sizeof s->io, json, "io");
    read_text(s->machine, sizeof s->machine, json, "machine");
    s->rate_target = json_number_value(json_object_get(json, "rate_target"));
    s->concurrency = (unsigned)read_count(json, "concurrency", &failed);
    s->threads = (unsigned)read_count(json, "threads", &failed);
    s->connections = (unsigned)read_count(json, "connections", &failed);
    s->parts = (unsigned)read_count(json, "parts", &failed);
    s->seed = read_count(json, "seed", &failed);
    s->duration_ns = read_seconds(json, "duration_s", &failed);
    s->warm_up_ns = read_seconds(json, "warm_up_s", &failed);
    s->timeout_ns = read_seconds(json, "timeout_s", &failed);
    s->started_wall_ns = read_seconds(json, "started", &failed);
    return failed;
}

static status read_counts(result *r, const json_t *root)
{
    status failed = STATUS_OK;
    r->sent = read_count(root, "requests", &failed);
    r->succeeded = read_count(root, "answered", &failed);
    r->completed_in_window = read_count(root, "answered_in_window", &failed);
    r->within_slo = read_count(root, "within_slo", &failed);
    r->unfinished = read_count(root, "unfinished", &failed);
    r->unfinished_oldest_ns = read_seconds(root, "unfinished_oldest_s", &failed);
    r->verified = read_count(root, "verified", &failed);
    r->tokens = read_count(root, "tokens", &failed);
    r->bytes_sent = read_count(root, "bytes_sent", &failed);
    r->bytes_received = read_count(root, "bytes_received", &failed);
    const json_t *kinds = json_object_get(root, "errors_by_kind");
    const json_t *reasons = json_object_get(root, "first_error_of_kind");
    for (int k = 0; k < REQUEST_ERROR_COUNT; k++) {
        const char *name = result_error_name((request_error)k);
        r->errors[k] = read_count(kinds, name, &failed);
        read_text(r->reasons[k], RESULT_REASON_BYTES, reasons, name);
    }
    const json_t *codes = json_object_get(root, "codes");
    const char *code;
    json_t *count;
    json_object_foreach((json_t *)codes, code, count)
    {
        int number = atoi(code);
        if (number > 0 && number < RESULT_CODES)
            r->codes[number] = read_count(codes, code, &failed);
    }
    const json_t *c = json_object_get(root, "client");
    r->loop_busy = json_number_value(json_object_get(c, "busy"));
    r->cpu_s = json_number_value(json_object_get(c, "cpu_s"));
    r->steal_share = json_number_value(json_object_get(c, "steal"));
    r->connections_opened = read_count(c, "connections_opened", &failed);
    r->connections_lost = read_count(c, "connections_lost", &failed);
    r->retries = read_count(c, "retries", &failed);
    r->aborted = json_is_true(json_object_get(root, "interrupted"));
    return failed;
}

static status read_slices(result *r, const json_t *root)
{
    const json_t *bulk = json_object_get(json_object_get(root, "histograms"), "timeline");
    const json_t *list = json_object_get(bulk, "latency"),
                 *lines = json_object_get(root, "timeline");
    status failed = STATUS_OK;
    r->slice_ns = read_count(bulk, "slice_ns", &failed);
    if (r->slice_ns == 0 || json_array_size(list) > RESULT_SLICES_MAX ||
        json_array_size(list) != json_array_size(lines))
        return status_fail(STATUS_CORRUPT, "the timeline is invalid");
    r->slice_count = (unsigned)json_array_size(list);
    r->slices = memory_allocate(r->slice_count, sizeof *r->slices);
    for (unsigned i = 0; i < r->slice_count; i++) {
        const json_t *line = json_array_get(lines, i);
        r->slices[i].sent = read_count(line, "sent", &failed);
        r->slices[i].succeeded = read_count(line, "answered", &failed);
        r->slices[i].failed = read_count(line, "errors", &failed);
        status s = result_histogram_from_json(&r->slices[i].latency, json_array_get(list, i));
        if (s)
            return status_prefix(s, "histograms.timeline.latency[%u]", i);
    }
    return failed;
}

static status read_histograms(result *r, const json_t *root)
{
    const json_t *all = json_object_get(root, "histograms");
    const struct {
        const char *name;
        histogram *to;
    } list[] = {{"latency", &r->latency},
                {"latency_ok", &r->latency_ok},
                {"service", &r->service},
                {"lag", &r->lag},
                {"connection_wait", &r->connection_wait},
                {"server", &r->server},
                {"refused", &r->refused}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        /* Reports of versions before 0.4 have no rejections. */
        if (list[i].to == &r->refused && json_object_get(all, list[i].name) == NULL)
            continue;
        status s = result_histogram_from_json(list[i].to, json_object_get(all, list[i].name));
        if (s)
            return status_prefix(s, "histograms.%s", list[i].name);
    }
    const char *name;
    json_t *stage;
    json_object_foreach(json_object_get(all, "stages"), name, stage)
    {
        histogram *h = result_stage_of(r, name);
        status s = h ? result_histogram_from_json(h, stage) : STATUS_OK;
        if (s)
            return status_prefix(s, "histograms.stages.%s", name);
    }
    return read_slices(r, root);
}

status report_read(result *r, const char *path)
{
    char *text;
    size_t bytes;
    status s = quantity_read_file(path, &text, &bytes);
    if (s)
        return s;
    json_error_t error;
    json_t *root = json_loadb(text, bytes, 0, &error);
    free(text);
    if (root == NULL)
        return status_fail(STATUS_CORRUPT, "%s:%d: %s", path, error.line, error.text);
    if (json_integer_value(json_object_get(root, "schema")) != SCHEMA)
        s = status_fail(STATUS_UNSUPPORTED, "not a report of this version of penstock-load");
    if (!s)
        s = read_setup(&r->setup, json_object_get(root, "setup"));
    if (!s)
        s = read_counts(r, root);
    if (!s)
        s = read_histograms(r, root);
    json_decref(root);
    return s ? status_prefix(s, "%s", path) : STATUS_OK;
}

/* Inference requests: how many, why some were not served, and what the others took. */
#include "base/clock.h"
#include "server/routes/metrics/exposition.h"
#include "server/routes/metrics/parts.h"

/* Upper bounds of a decade in equal steps on a logarithmic scale, rounded: a quantile of the
 * histogram is off by a cell at most, 25% where cells are widest. */
static const double decade[] = {1, 1.2, 1.5, 1.8, 2.2, 2.7, 3.3, 3.9, 4.7, 5.6, 6.8, 8.2};
#define DECADE_CELLS ((int)(sizeof decade / sizeof *decade))
#define DECADES 5 /* 100 us to 10 s */
#define CELL_NS 100000.0

static const double quantiles[] = {0.5, 0.95, 0.99, 0.999};
#define QUANTILES ((int)(sizeof quantiles / sizeof *quantiles))

static const model_record *first_model(const recorder *r)
{
    return record_next(record_first(r)); /* the first is for requests without a model */
}

static void open_record(text_buffer *out, const char *name, const model_record *m)
{
    exposition_open_model(out, name, record_name(m), record_version(m));
}

static void write_codes(text_buffer *out, const recorder *r)
{
    exposition_family(out, "requests_total", "counter",
                      "Inference requests by API and HTTP code (0: other codes).");
    for (const model_record *m = record_first(r); m != NULL; m = record_next(m)) {
        record_totals totals;
        record_read_totals(r, m, &totals);
        for (int k = 0; k < RECORD_PROTOCOLS; k++) {
            for (int i = 0; i < RECORD_CODES; i++) {
                if (totals.codes[k][i] == 0)
                    continue;
                open_record(out, "requests_total", m);
                exposition_label(out, false, "protocol", record_protocol_name(k));
                text_buffer_format(out, ",code=\"%d\"", record_code(i));
                exposition_close_count(out, totals.codes[k][i]);
            }
        }
    }
}

static bool has_any(const uint64_t *codes)
{
    for (int i = 0; i < RECORD_CODES; i++)
        if (codes[i] > 0)
            return true;
    return false;
}

static void write_reasons_of(text_buffer *out, const recorder *r, const model_record *m)
{
    record_totals totals;
    record_read_totals(r, m, &totals);
    bool is_model = m != record_first(r);
    for (int k = 0; k < RECORD_PROTOCOLS; k++) {
        /* What begins at 0 shows its first increase. */
        bool has_all = is_model && has_any(totals.codes[k]);
        for (int i = RECORD_SERVED + 1; i < RECORD_REASONS; i++) {
            if (!has_all && totals.reasons[k][i] == 0)
                continue;
            open_record(out, "request_failures_total", m);
            exposition_label(out, false, "protocol", record_protocol_name(k));
            exposition_label(out, false, "reason", record_reason_name((record_reason)i));
            exposition_close_count(out, totals.reasons[k][i]);
        }
    }
}

/* All reasons of the APIs that a model was used by; without a model, those that were seen. */
static void write_reasons(text_buffer *out, const recorder *r)
{
    exposition_family(out, "request_failures_total", "counter",
                      "Inference requests that were not served, by API and reason.");
    for (const model_record *m = record_first(r); m != NULL; m = record_next(m))
        write_reasons_of(out, r, m);
}

static void write_stage(text_buffer *out, const recorder *r, const model_record *m, int series,
                        uint64_t now_ns)
{
    histogram h;
    const char *of = record_series_name(series);
    record_read(r, m, series, true, now_ns, &h);
    for (int q = 0; h.count > 0 && q < QUANTILES; q++) {
        open_record(out, "stage_seconds", m);
        text_buffer_format(out, ",stage=\"%s\",quantile=\"%g\"", of, quantiles[q]);
        exposition_close(out, (double)histogram_quantile(&h, quantiles[q]) / 1e9);
    }
    record_read(r, m, series, false, now_ns, &h);
    if (h.count == 0)
        return;
    open_record(out, "stage_seconds_sum", m);
    exposition_label(out, false, "stage", of);
    exposition_close(out, (double)h.sum / 1e9);
    open_record(out, "stage_seconds_count", m);
    exposition_label(out, false, "stage", of);
    exposition_close_count(out, h.count);
}

static void write_stages(text_buffer *out, const recorder *r, uint64_t now_ns)
{
    exposition_family(out, "stage_seconds", "summary",
                      "Time of successful requests by stage; total is from first byte to response. "
                      "Quantiles are of the last minute, exact to 1%.");
    for (const model_record *m = first_model(r); m != NULL; m = record_next(m))
        for (int series = 0; series < RECORD_SERIES; series++)
            write_stage(out, r, m, series, now_ns);
}

static void write_cells(text_buffer *out, const model_record *m, const histogram *h)
{
    double scale = CELL_NS;
    for (int d = 0; d <= DECADES; d++, scale *= 10) {
        for (int i = 0; i < (d < DECADES ? DECADE_CELLS : 1); i++) {
            double bound_ns = scale * decade[i];
            open_record(out, "request_seconds_bucket", m);
            text_buffer_format(out, ",le=\"%g\"", bound_ns / 1e9);
            exposition_close_count(out, histogram_count_at_most(h, (uint64_t)(bound_ns + 0.5)));
        }
    }
    open_record(out, "request_seconds_bucket", m);
    text_buffer_put(out, ",le=\"+Inf\"");
    exposition_close_count(out, h->count);
}

static void write_requests(text_buffer *out, const recorder *r, uint64_t now_ns)
{
    histogram h;
    exposition_family(out, "request_seconds", "histogram",
                      "Time of successful requests, from first byte to response; adds up over "
                      "replicas.");
    for (const model_record *m = first_model(r); m != NULL; m = record_next(m)) {
        record_read(r, m, RECORD_STAGE_TOTAL, false, now_ns, &h);
        if (h.count == 0)
            continue;
        write_cells(out, m, &h);
        open_record(out, "request_seconds_sum", m);
        exposition_close(out, (double)h.sum / 1e9);
        open_record(out, "request_seconds_count", m);
        exposition_close_count(out, h.count);
    }
}

static void write_buckets(text_buffer *out, const recorder *r, uint64_t now_ns)
{
    static const char *const names[] = {"bucket_execute_seconds_sum",
                                        "bucket_execute_seconds_count"};
    histogram h;
    record_shape shape;
    exposition_family(out, "bucket_execute_seconds", "summary",
                      "Time that batches took on the device, of each successful request, by "
                      "(batch, sequence) bucket; quantiles: /v2/models/M/stats.");
    for (const model_record *m = first_model(r); m != NULL; m = record_next(m)) {
        for (int bucket = 0; bucket < MODEL_BUCKETS_MAX; bucket++) {
            if (!record_read_bucket(r, m, bucket, RECORD_BUCKET_EXECUTE, false, now_ns, &h, &shape))
                continue;
            for (int i = 0; i < 2; i++) {
                open_record(out, names[i], m);
                text_buffer_format(out, ",batch=\"%lld\",sequence=\"%lld\",packed=\"%s\"",
                                   (long long)shape.size.batch, (long long)shape.size.sequence,
                                   shape.is_packed ? "true" : "false");
                if (i == 0)
                    exposition_close(out, (double)h.sum / 1e9);
                else
                    exposition_close_count(out, h.count);
            }
        }
    }
}

static void write_batch_sizes(text_buffer *out, const recorder *r)
{
    exposition_family(out, "request_batch_rows", "histogram",
                      "Rows of the batch that a successful request was computed in.");
    for (const model_record *m = first_model(r); m != NULL; m = record_next(m)) {
        record_totals totals;
        record_read_totals(r, m, &totals);
        uint64_t so_far = 0;
        for (int i = 0; i < RECORD_BATCH_CELLS; i++) {
            so_far += totals.batch_cells[i];
            open_record(out, "request_batch_rows_bucket", m);
            if (i == RECORD_BATCH_CELLS - 1)
                text_buffer_put(out, ",le=\"+Inf\"");
            else
                text_buffer_format(out, ",le=\"%d\"", 1 << i);
            exposition_close_count(out, so_far);
        }
        open_record(out, "request_batch_rows_sum", m);
        exposition_close_count(out, totals.batch_rows);
        open_record(out, "request_batch_rows_count", m);
        exposition_close_count(out, so_far);
    }
    exposition_family(out, "rows_total", "counter", "Rows of successful requests.");
    for (const model_record *m = first_model(r); m != NULL; m = record_next(m)) {
        record_totals totals;
        record_read_totals(r, m, &totals);
        open_record(out, "rows_total", m);
        exposition_close_count(out, totals.rows);
    }
}

void metrics_write_requests(text_buffer *out, const recorder *r, uint64_t now_ns)
{
    write_codes(out, r);
    write_reasons(out, r);
    write_stages(out, r, now_ns);
    write_requests(out, r, now_ns);
    write_buckets(out, r, now_ns);
    write_batch_sizes(out, r);
}

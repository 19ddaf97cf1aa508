/* The names that clients of Triton Inference Server read: endpoint pickers, perf_analyzer. They are
 * Triton's own (docs/user_guide/metrics.md of its repository): neither units nor counters are named
 * as Prometheus recommends. */
#include "server/protocol/text/text_write.h"
#include "server/routes/metrics/exposition.h"
#include "server/routes/metrics/parts.h"

enum {
    SUCCESS,
    REJECTED,
    CANCELED,
    OTHER,
    ROWS,
    BATCHES,
    REQUEST_US,
    QUEUE_US,
    INPUT_US,
    INFER_US,
    OUTPUT_US,
    PENDING,
    VALUES
};

static const struct {
    const char *name, *reason, *type, *help; /* help NULL: of the family above */
} samples[VALUES] = {
    [SUCCESS] = {"request_success", NULL, "counter", "Requests that were served."},
    [REJECTED] = {"request_failure", "REJECTED", "counter", "Requests that were not, by reason."},
    [CANCELED] = {"request_failure", "CANCELED", NULL, NULL},
    [OTHER] = {"request_failure", "OTHER", NULL, NULL},
    [ROWS] = {"count", NULL, "counter", "Rows of requests that were served."},
    [BATCHES] = {"exec_count", NULL, "counter", "Batches executed."},
    [REQUEST_US] = {"request_duration_us", NULL, "counter", "Time of requests."},
    [QUEUE_US] = {"queue_duration_us", NULL, "counter", "Time of requests in the queue."},
    [INPUT_US] = {"compute_input_duration_us", NULL, "counter", "Time to form batches."},
    [INFER_US] = {"compute_infer_duration_us", NULL, "counter", "Time to execute batches."},
    [OUTPUT_US] = {"compute_output_duration_us", NULL, "counter", "Time to take batches apart."},
    [PENDING] = {"pending_request_count", NULL, "gauge", "Rows that wait to be executed."},
};

static uint64_t stages_us(const record_totals *t, stage from, stage to)
{
    uint64_t ns = 0;
    for (int i = from; i <= (int)to; i++)
        ns += t->stage_sum_ns[i];
    return ns / 1000;
}

static void count_failures(const record_totals *t, uint64_t values[VALUES])
{
    for (int k = 0; k < RECORD_PROTOCOLS; k++) {
        for (int i = RECORD_SERVED + 1; i < RECORD_REASONS; i++) {
            bool is_rejected = i == RECORD_QUEUE_FULL || i == RECORD_QUOTA ||
                               i == RECORD_CONNECTION_LIMIT || i == RECORD_DEADLINE_ADMISSION ||
                               i == RECORD_DEADLINE_QUEUE;
            values[is_rejected               ? REJECTED
                   : i == RECORD_CLIENT_GONE ? CANCELED
                                             : OTHER] += t->reasons[k][i];
        }
    }
}

static void read_values(service *s, const model *m, uint64_t values[VALUES])
{
    record_totals t;
    record_read_totals(s->recorder, record_of_model(s->recorder, m), &t);
    count_failures(&t, values);
    values[SUCCESS] = t.success_count;
    values[ROWS] = t.rows;
    values[BATCHES] = atomic_load_explicit(&m->counters->batches, memory_order_relaxed);
    values[REQUEST_US] = t.success_ns / 1000;
    values[QUEUE_US] = stages_us(&t, STAGE_QUEUE, STAGE_QUEUE);
    values[INPUT_US] = stages_us(&t, STAGE_FORM, STAGE_PLACE);
    values[INFER_US] = stages_us(&t, STAGE_EXECUTE, STAGE_EXECUTE);
    values[OUTPUT_US] = stages_us(&t, STAGE_SLICE, STAGE_SLICE);
    values[PENDING] = (uint64_t)scheduler_queued_rows(s->work, m);
}

void metrics_write_triton(text_buffer *out, service *s, const model **models, int count)
{
    for (int v = 0; v < VALUES; v++) {
        const char *name = samples[v].name;
        if (samples[v].help != NULL)
            text_buffer_format(out, "# HELP nv_inference_%s %s\n# TYPE nv_inference_%s %s\n", name,
                               samples[v].help, name, samples[v].type);
        for (int i = 0; i < count; i++) {
            uint64_t values[VALUES] = {0};
            read_values(s, models[i], values);
            text_buffer_format(out, "nv_inference_%s{", name);
            exposition_label(out, true, "model", models[i]->name);
            text_buffer_format(out, ",version=\"%lld\"", (long long)models[i]->version);
            if (samples[v].reason != NULL)
                exposition_label(out, false, "reason", samples[v].reason);
            exposition_close_count(out, values[v]);
        }
    }
}

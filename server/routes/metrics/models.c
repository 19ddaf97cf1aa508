/* What models do with their requests: batches, queues, programs and buckets. */
#include <stdio.h>

#include "base/clock.h"
#include "models/start/deferred_buckets.h"
#include "server/routes/metrics/exposition.h"
#include "server/routes/metrics/parts.h"

static uint64_t counter(_Atomic uint64_t *c)
{
    return atomic_load_explicit(c, memory_order_relaxed);
}

/* One line a model of a counter or gauge. */
static void model_line(text_buffer *out, const char *name, const model *m, const char *more,
                       double value)
{
    exposition_open_model(out, name, m->name, m->version);
    text_buffer_put(out, more);
    exposition_close(out, value);
}

static void write_buckets(text_buffer *out, const model **models, int count)
{
    char label[100];
    exposition_family(
        out, "buckets", "gauge",
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

static void write_counters(text_buffer *out, service *s, const model **models, int count)
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
        exposition_family(out, families[f].name, families[f].type, families[f].help);
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
}

/* Of the last minute. */
static void write_usage(text_buffer *out, const model **models, int count, uint64_t now_ns)
{
    static const struct {
        const char *name, *help;
    } families[] = {
        {"recent_tokens_per_second", "Tokens of requests, over the last minute."},
        {"recent_padding_waste_ratio",
         "Share of computed tokens that was padding, over the last minute."},
        {"recent_mfu_ratio",
         "Operations on tokens of requests, of what the devices could have done meanwhile in bf16; "
         "0: not known."},
        {"recent_dollars_per_million_tokens",
         "Price of the device time used, over the last minute; 0: not known."},
    };
    for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
        exposition_family(out, families[f].name, "gauge", families[f].help);
        for (int i = 0; i < count; i++) {
            usage_summary u;
            usage_read(models[i]->usage, now_ns, &u);
            double values[] = {u.tokens_per_s, u.waste, u.mfu, u.dollars_per_million_tokens};
            model_line(out, families[f].name, models[i], "", values[f]);
        }
    }
}

static void write_programs(text_buffer *out, const model **models, int count)
{
    char label[100];
    exposition_family(
        out, "compiles_total", "counter",
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
    exposition_family(out, "cache_loads_total", "counter",
                      "Programs that were not made but taken from the compile cache.");
    for (int i = 0; i < count; i++)
        model_line(out, "cache_loads_total", models[i], "",
                   (double)counter(&models[i]->counters->cache_loads));
    exposition_family(out, "fallbacks_total", "counter",
                      "Batches that ran on the CPU beside a device.");
    for (int i = 0; i < count; i++) {
        for (int p = 0; p < MODEL_FALLBACK_COUNT; p++) {
            snprintf(label, sizeof(label), ",reason=\"%s\"",
                     model_fallback_name((model_fallback)p));
            model_line(out, "fallbacks_total", models[i], label,
                       (double)counter(&models[i]->counters->fallbacks[p]));
        }
    }
}

void metrics_write_models(text_buffer *out, service *s, const model **models, int count)
{
    write_counters(out, s, models, count);
    write_usage(out, models, count, clock_now_ns());
    write_programs(out, models, count);
    write_buckets(out, models, count);
}

/* Devices: what they are, and how they are. */
#include "server/routes/metrics/exposition.h"
#include "server/routes/metrics/parts.h"

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
        {"device_cache_refused_total", "counter", "Cache entries that the plugin refused."},
        {"device_cache_store_failures_total", "counter",
         "Programs that could not be stored in the cache."},
        {"device_restarts_total", "counter", "Restarts of the device's process."},
        {"device_peak_fraction", "gauge", "Achieved share of the peak measured at start."},
        {"device_dollars_per_hour", "gauge", "Price of the device; 0: not known."},
        {"device_memory_bytes", "gauge", "Memory of the device; 0: not known."},
        {"device_memory_claimed_bytes", "gauge",
         "Of it, for weights, programs and batches in flight."},
        {"device_pipeline_depth", "gauge", "Batches in flight at most, by measurement."},
        {"device_pipeline_idle_fraction", "gauge",
         "Share of its time that the device idled with a full pipeline."},
        {"device_computing_seconds_total", "counter", "Time in which the device computed."},
        {"device_transfer_seconds_total", "counter",
         "Time in which batches were copied to the device and back, summed."},
        {"device_pinned_bytes", "gauge", "Memory pinned for transfers."},
    };
    double up_ns = (double)(now_ns - s->start_ns);
    for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
        exposition_family(out, families[f].name, families[f].type, families[f].help);
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
                               (double)at.busy_ns / (up_ns * (d->slots ? device_depth(d) : 1)),
                               (double)at.executions,
                               (double)at.failures,
                               (double)at.compiles,
                               (double)at.cache_hits,
                               (double)at.cache_misses,
                               (double)at.cache_corrupt,
                               (double)at.cache_refused,
                               (double)at.cache_store_failures,
                               (double)at.restarts,
                               at.utilisation_of_peak,
                               d->cost_per_hour,
                               (double)at.memory_bytes,
                               (double)at.claimed_bytes,
                               at.pipeline_depth,
                               at.pipeline_idle_fraction,
                               (double)at.computing_ns / 1e9,
                               (double)at.transfer_ns / 1e9,
                               (double)at.pinned_bytes};
            text_buffer_format(out, "penstock_%s{", families[f].name);
            exposition_label(out, true, "device", d->name);
            exposition_label(out, false, "kind", d->kind);
            exposition_close(out, values[f]);
        }
    }
}

/* What a plugin is, as labels; the value is always 1. */
static void write_device_info(text_buffer *out, service *s)
{
    exposition_family(out, "device_info", "gauge", "1; labels describe the device and its state.");
    for (int i = 0; i < s->device_count; i++) {
        device *d = s->devices[i];
        device_status at = {0};
        if (device_is_absent(d))
            continue;
        d->interface->describe(d, &at);
        text_buffer_put(out, "penstock_device_info{");
        exposition_label(out, true, "device", d->name);
        exposition_label(out, false, "kind", d->kind);
        exposition_label(out, false, "version", at.version ? at.version : "");
        exposition_label(out, false, "detail", at.detail);
        exposition_close(out, 1);
    }
}

void metrics_write_devices(text_buffer *out, service *s, uint64_t now_ns)
{
    write_devices(out, s, now_ns);
    write_device_info(out, s);
}

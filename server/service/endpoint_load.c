#include "server/service/endpoint_load.h"

#include <string.h>

#include "server/protocol/grpc/wire.h"

#define SAMPLE_NS 200000000u
#define MODELS_MAX 64

static double utilisation(endpoint_load *l, const service *s, uint64_t now_ns)
{
    if (now_ns - l->sampled_ns < SAMPLE_NS)
        return l->utilisation;
    uint64_t busy_ns = 0;
    int slots = 0;
    for (int i = 0; i < s->device_count; i++) {
        device_status at = {0};
        if (device_is_absent(s->devices[i]))
            continue;
        s->devices[i]->interface->describe(s->devices[i], &at);
        busy_ns += at.busy_ns;
        slots += s->devices[i]->slots;
    }
    double span_ns = (double)(now_ns - l->sampled_ns) * (slots ? slots : 1);
    double load = l->sampled_ns ? (double)(busy_ns - l->busy_ns) / span_ns : 0;
    l->utilisation = load < 0 ? 0 : load > 1 ? 1 : load;
    l->sampled_ns = now_ns;
    l->busy_ns = busy_ns;
    return l->utilisation;
}

static int64_t count_queued_rows(const service *s)
{
    const model *models[MODELS_MAX];
    int64_t queued_rows = 0;
    int count = repository_ready_models(s->models, models, MODELS_MAX);
    for (int i = 0; i < count && i < MODELS_MAX; i++) {
        int64_t rows = scheduler_queued_rows(s->work, models[i]);
        queued_rows += rows > 0 ? rows : 0;
        model_release(models[i]);
    }
    return queued_rows;
}

void endpoint_load_write(endpoint_load *l, const service *s, uint64_t now_ns, text_buffer *out)
{
    int64_t queued_rows = count_queued_rows(s);
    double load = utilisation(l, s, now_ns);
    text_buffer_format(out, "TEXT application_utilization:%.4f,cpu_utilization:%.4f,", load, load);
    text_buffer_format(out, "named_metrics.queue_depth:%lld", (long long)queued_rows);
}

/* Fields of xds.data.orca.v3.OrcaLoadReport. */
enum { CPU_UTILIZATION = 1, NAMED_METRICS = 8, APPLICATION_UTILIZATION = 9 };

static void put_double(text_buffer *out, uint32_t number, double value)
{
    char tag = (char)(number << 3 | WIRE_I64);
    text_buffer_append(out, &tag, 1);
    text_buffer_append(out, &value, sizeof value); /* little-endian hosts only, as all of ours */
}

void endpoint_load_write_message(endpoint_load *l, const service *s, uint64_t now_ns,
                                 text_buffer *out)
{
    int64_t queued_rows = count_queued_rows(s);
    double load = utilisation(l, s, now_ns);
    put_double(out, CPU_UTILIZATION, load);
    put_double(out, APPLICATION_UTILIZATION, load);
    size_t entry = out->bytes;
    wire_put_bytes(out, 1, "queue_depth", strlen("queue_depth"));
    put_double(out, 2, (double)queued_rows);
    wire_wrap(out, entry, NAMED_METRICS);
}

#include "server/routes/metrics/metrics.h"

#include <stdlib.h>

#include "base/clock.h"
#include "server/request/respond.h"
#include "server/routes/metrics/parts.h"

#define MODELS_MAX 1024

static void write_all(request *r, const void *about, text_buffer *out)
{
    service *s = request_service(r);
    uint64_t now_ns = clock_now_ns();
    (void)about;
    bool is_open = service_is_open(s);
    const model **models = malloc(MODELS_MAX * sizeof(*models));
    int count = models && is_open ? repository_ready_models(s->models, models, MODELS_MAX) : 0;
    count = count < MODELS_MAX ? count : MODELS_MAX;
    metrics_write_server(out, s, now_ns);
    metrics_write_requests(out, s->recorder, now_ns);
    metrics_write_models(out, s, models, count);
    if (is_open)
        metrics_write_devices(out, s, now_ns);
    if (s->options->triton_names)
        metrics_write_triton(out, s, models, count);
    for (int i = 0; i < count; i++)
        model_release(models[i]);
    free(models);
}

void serve_metrics(request *r)
{
    respond_shared(r, "text/plain; version=0.0.4; charset=utf-8", NULL, write_all);
}

/* Liveness, readiness and model readiness. */
#include <stdio.h>
#include <stdlib.h>

#include "server/protocol/text/text_write.h"
#include "server/request/respond.h"
#include "server/routes/routes.h"

#define UNAVAILABLE_MAX 128 /* that are named; the others are counted */

/* What is not served, and why. */
static void write_unavailable(text_buffer *out, service *s)
{
    repository_entry *entries = malloc(UNAVAILABLE_MAX * sizeof(*entries));
    int count = entries ? repository_unavailable(s->models, entries, UNAVAILABLE_MAX) : 0;
    if (count > 0)
        text_buffer_format(out, ",\"unavailable_count\":%d,\"unavailable\":[", count);
    for (int i = 0; i < count && i < UNAVAILABLE_MAX; i++) {
        text_buffer_put(out, i ? ",{\"name\":" : "{\"name\":");
        text_write_json_text(out, entries[i].name);
        text_buffer_format(out, ",\"version\":\"%lld\",\"reason\":", (long long)entries[i].version);
        text_write_json_text(out, entries[i].reason);
        text_buffer_put(out, "}");
    }
    text_buffer_put(out, count > 0 ? "]" : "");
    free(entries);
}

static const char *name_of_state(const service *s, int i, const device_status *at)
{
    static const char *const names[] = {"starting", "healthy", "failed"};
    bool is_idle = atomic_load(&s->devices[i]->slots_in_use) == 0;
    if (at->state == DEVICE_HEALTHY && scheduler_is_draining(s->work, i))
        return is_idle ? "drained" : "draining";
    return names[at->state];
}

/* All but the CPU. */
static void write_devices(text_buffer *out, service *s)
{
    const char *separator = ",\"devices\":[";
    for (int i = 0; i + 1 < s->device_count; i++) {
        device *d = s->devices[i];
        device_status at = {0};
        if (device_is_absent(d))
            continue;
        d->interface->describe(d, &at);
        text_buffer_format(out, "%s{\"name\":", separator);
        text_write_json_text(out, d->name);
        text_buffer_put(out, ",\"kind\":");
        text_write_json_text(out, d->kind);
        text_buffer_format(out, ",\"state\":\"%s\"", name_of_state(s, i, &at));
        if (at.state != DEVICE_HEALTHY) {
            text_buffer_put(out, ",\"reason\":");
            text_write_json_text(out, at.detail);
        }
        text_buffer_put(out, "}");
        separator = ",";
    }
    text_buffer_put(out, separator[1] == 0 ? "]" : "");
}

static void respond_ready(request *r, bool is_ready, const char *state, const char *progress,
                          const char *warning)
{
    text_buffer body = {0};
    bool may_read = (r->rights & ACCESS_READ) != 0; /* models have names */
    progress = may_read ? progress : "";
    warning = may_read ? warning : "";
    text_buffer_put(&body,
                    is_ready ? "{\"ready\":true,\"state\":\"" : "{\"ready\":false,\"state\":\"");
    text_buffer_put(&body, state);
    text_buffer_put(&body, "\"");
    if (progress[0]) {
        /* Errors always carry "error"; "progress" says what is being done. */
        text_buffer_put(&body, ",\"progress\":");
        text_write_json_text(&body, progress);
    }
    if (warning[0]) {
        text_buffer_put(&body, ",\"warning\":");
        text_write_json_text(&body, warning);
    }
    if (!is_ready) {
        text_buffer_put(&body, ",\"error\":");
        const char *why = progress[0] ? progress : state;
        text_write_json_text(&body, why);
        respond_header(r, "retry-after", "1", 1);
    }
    if (r->route.kind == ROUTE_READY && may_read && service_is_open(request_service(r))) {
        write_unavailable(&body, request_service(r));
        write_devices(&body, request_service(r));
    }
    text_buffer_put(&body, "}");
    respond_buffer(r, is_ready ? 200 : 503, "application/json", &body);
    text_buffer_dispose(&body);
}

void serve_starting(request *r)
{
    char progress[SERVICE_PROGRESS_BYTES];
    service_get_progress(request_service(r), progress);
    if (r->route.dialect == ROUTE_GRPC) {
        respond_status(r, STATUS_UNAVAILABLE, progress);
        return;
    }
    respond_ready(r, false, "starting", progress, "");
}

static void serve_model_ready(request *r)
{
    const model *m;
    status failure = request_find_model(r, &m);
    if (failure) {
        respond_status(r, failure, status_message());
        return;
    }
    model_release(m);
    respond_ready(r, true, "ready", "", "");
}

static void serve_live(request *r)
{
    static const char live[] = "{\"live\":true}";
    service *s = request_service(r);
    uint64_t limit_ns = s->options->timeouts.liveness_ms * 1000000, stuck_ns = service_stuck_ns(s);
    if (limit_ns > 0 && stuck_ns > limit_ns) {
        char text[100];
        int n = snprintf(text, sizeof text,
                         "{\"live\":false,\"error\":\"an event loop has been stuck for %.1f s\"}",
                         (double)stuck_ns / 1e9);
        respond_text(r, 503, "application/json", text, (size_t)n);
    } else {
        respond_text(r, 200, "application/json", live, sizeof(live) - 1);
    }
}

void serve_health(request *r)
{
    service *s = request_service(r);
    char progress[256] = "", missing[SERVICE_PROGRESS_BYTES];
    service_get_missing(s, missing);
    if (r->route.kind == ROUTE_LIVE) {
        serve_live(r);
    } else if (atomic_load(&s->is_draining)) {
        respond_ready(r, false, "draining", "the server is shutting down", "");
    } else if (!service_is_open(s)) {
        serve_starting(r);
    } else if (r->route.kind == ROUTE_MODEL_READY) {
        serve_model_ready(r);
    } else if (repository_is_ready(s->models, progress, sizeof(progress))) {
        respond_ready(r, true, "ready", "", missing);
    } else {
        respond_ready(r, false, "loading", progress, missing);
    }
}

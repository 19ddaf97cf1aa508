/* Liveness, readiness and model readiness. */
#include <stdio.h>
#include <string.h>

#include "server/http/edge.h"
#include "server/protocol/text/text_write.h"

static void respond_ready(exchange *e, bool is_ready, const char *state, const char *progress,
                          const char *warning)
{
    text_buffer body = {0};
    text_buffer_put(&body,
                    is_ready ? "{\"ready\":true,\"state\":\"" : "{\"ready\":false,\"state\":\"");
    text_buffer_put(&body, state);
    text_buffer_put(&body, "\"");
    if (progress[0]) {
        /* Errors always carry "error"; "progress" says what is being done. */
        text_buffer_put(&body, ",\"progress\":");
        text_write_json_string(&body, progress, strlen(progress));
    }
    if (warning[0]) {
        text_buffer_put(&body, ",\"warning\":");
        text_write_json_string(&body, warning, strlen(warning));
    }
    if (!is_ready) {
        text_buffer_put(&body, ",\"error\":");
        const char *why = progress[0] ? progress : state;
        text_write_json_string(&body, why, strlen(why));
        respond_header(e, "retry-after", "1", 1);
    }
    text_buffer_put(&body, "}");
    respond_text(e, is_ready ? 200 : 503, "application/json", body.data, body.bytes);
    text_buffer_dispose(&body);
}

void serve_starting(exchange *e)
{
    server *s = e->connection->loop->server;
    char progress[sizeof(s->progress)];
    pthread_mutex_lock(&s->progress_lock);
    memcpy(progress, s->progress, sizeof(progress));
    pthread_mutex_unlock(&s->progress_lock);
    respond_ready(e, false, "starting", progress, "");
}

static void serve_model_ready(exchange *e, server *s)
{
    const model *m;
    status failure =
        repository_find(s->models, e->route.name, e->route.name_bytes, e->route.version, &m);
    if (failure) {
        respond_status(e, failure, status_message());
        return;
    }
    model_release(m);
    respond_ready(e, true, "ready", "", "");
}

void serve_health(exchange *e)
{
    server *s = e->connection->loop->server;
    char progress[256] = "";
    if (e->route.kind == ROUTE_LIVE) {
        static const char live[] = "{\"live\":true}";
        respond_text(e, 200, "application/json", live, sizeof(live) - 1);
    } else if (atomic_load(&s->is_draining)) {
        respond_ready(e, false, "draining", "the server is shutting down", "");
    } else if (!server_is_open(s)) {
        serve_starting(e);
    } else if (e->route.kind == ROUTE_MODEL_READY) {
        serve_model_ready(e, s);
    } else if (repository_is_ready(s->models, progress, sizeof(progress))) {
        respond_ready(e, true, "ready", "", s->missing_device);
    } else {
        respond_ready(e, false, "loading", progress, s->missing_device);
    }
}

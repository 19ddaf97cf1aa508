/* POST /v2/repository/...: the index at once; load and unload answer when the loading thread is
 * done, by way of the loop's mailbox. */
#include <stdlib.h>
#include <string.h>

#include "server/http/edge.h"
#include "server/protocol/text/text_write.h"

#define ENTRIES_MAX 1024

static void serve_index(exchange *e, server *s)
{
    static const char *const states[] = {"LOADING", "READY", "UNAVAILABLE", "UNAVAILABLE"};
    repository_entry *entries = malloc(ENTRIES_MAX * sizeof(*entries));
    int count = entries ? repository_list(s->models, entries, ENTRIES_MAX) : 0, written = 0;
    /* {"ready": true} lists ready ones only. */
    bool only_ready = false;
    arena memory = {0};
    json_scan scan;
    json_object o;
    json_string key;
    bool has_key;
    h2o_iovec_t body_in = e->request->entity;
    if (body_in.base != NULL && body_in.len > 0) {
        json_scan_init(&scan, body_in.base, body_in.len, s->options->limits.json_depth_max, false,
                       &memory);
        status failure = json_open_object(&scan, &o);
        while (!failure && !(failure = json_object_next(&scan, &o, &key, &has_key)) && has_key)
            failure = json_string_is(key, "ready") ? json_read_bool(&scan, &only_ready)
                                                   : json_skip_value(&scan);
        arena_dispose(&memory);
        if (failure) {
            free(entries);
            respond_status(e, failure, status_message());
            return;
        }
    }
    text_buffer body = {0};
    text_buffer_put(&body, "[");
    for (int i = 0; i < count && i < ENTRIES_MAX; i++) {
        const repository_entry *entry = &entries[i];
        if (only_ready && entry->state != MODEL_READY)
            continue;
        text_buffer_put(&body, written++ ? ",{\"name\":" : "{\"name\":");
        text_write_json_string(&body, entry->name, strlen(entry->name));
        text_buffer_format(&body, ",\"version\":\"%lld\",\"state\":\"%s\",\"reason\":",
                           (long long)entry->version, states[entry->state]);
        const char *reason = entry->state == MODEL_UNLOADED ? "unloaded" : entry->reason;
        text_write_json_string(&body, reason, strlen(reason));
        text_buffer_put(&body, "}");
    }
    text_buffer_put(&body, "]");
    free(entries);
    respond_text(e, 200, "application/json", body.data, body.bytes);
    text_buffer_dispose(&body);
}

struct control {
    mailbox_node node;
    loop *loop;
    exchange *exchange; /* NULL: the client has gone */
    status result;
    char error[STATUS_MESSAGE_BYTES_MAX];
};

/* On the loading thread. */
static void on_loaded(void *context, status result, const char *error)
{
    control *c = context;
    c->result = result;
    strncpy(c->error, error ? error : "", sizeof(c->error) - 1);
    mailbox_post(&c->loop->controls, &c->node);
    loop_command(c->loop, COMMAND_CONTROL);
}

void repository_routes_finish(loop *l)
{
    mailbox_node *node = mailbox_take_all(&l->controls);
    while (node != NULL) {
        control *c = (control *)node;
        node = node->next;
        exchange *e = c->exchange;
        if (e != NULL) {
            e->control = NULL;
            if (c->result == STATUS_OK)
                respond_text(e, 200, "application/json", "{}", 2);
            else
                respond_status(e,
                               c->result == STATUS_INTERNAL ? STATUS_INVALID_ARGUMENT : c->result,
                               c->error);
        }
        free(c);
    }
}

void repository_routes_abandon(control *c)
{
    c->exchange = NULL;
}

void serve_repository(exchange *e)
{
    loop *l = e->connection->loop;
    server *s = l->server;
    if (e->route.kind == ROUTE_INDEX) {
        serve_index(e, s);
        return;
    }
    if (!s->options->repository_control) {
        respond_error(e, 400, "loading and unloading over HTTP is turned off");
        return;
    }
    control *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        respond_status(e, STATUS_OUT_OF_MEMORY, "no memory for a request");
        return;
    }
    c->loop = l;
    c->exchange = e;
    e->control = c;
    if (e->route.kind == ROUTE_LOAD)
        repository_load(s->models, e->route.name, on_loaded, c);
    else
        repository_unload(s->models, e->route.name, on_loaded, c);
}

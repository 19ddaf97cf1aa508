/* POST /v2/repository/...: the index at once; load and unload when the loading thread is done. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "server/protocol/text/json_scan.h"
#include "server/protocol/text/text_write.h"
#include "server/request/respond.h"
#include "server/routes/routes.h"

/* {"ready": true} asks for ready ones only; an empty body for all. */
static status read_index_body(const request *r, bool *only_ready)
{
    arena memory = {0};
    json_scan scan;
    json_object o;
    json_string key;
    bool has_key;
    *only_ready = false;
    if (r->body.bytes == 0)
        return STATUS_OK;
    json_scan_init(&scan, r->body.data, r->body.bytes,
                   request_service(r)->options->limits.json_depth_max, false, &memory);
    status failure = json_open_object(&scan, &o);
    while (!failure && !(failure = json_object_next(&scan, &o, &key, &has_key)) && has_key)
        failure = json_string_is(key, "ready") ? json_read_bool(&scan, only_ready)
                                               : json_skip_value(&scan);
    if (!failure)
        failure = json_expect_end(&scan);
    arena_dispose(&memory);
    return failure;
}

static void write_entry(text_buffer *out, const repository_entry *entry)
{
    static const char *const states[MODEL_STATES] = {"LOADING", "READY", "UNAVAILABLE",
                                                     "UNAVAILABLE", "UNAVAILABLE"};
    const char *reason = entry->state == MODEL_UNLOADED ? "unloaded" : entry->reason;
    text_buffer_put(out, "{\"name\":");
    text_write_json_text(out, entry->name);
    text_buffer_format(out, ",\"version\":\"%lld\",\"state\":\"%s\",\"reason\":",
                       (long long)entry->version, states[entry->state]);
    text_write_json_text(out, reason);
    text_buffer_put(out, "}");
}

static const char only_ready_index, whole_index;

static void write_index(request *r, const void *about, text_buffer *out)
{
    int count;
    repository_entry *entries = repository_list_all(request_service(r)->models, &count);
    text_buffer_put(out, "[");
    for (int i = 0, written = 0; i < count; i++) {
        if (about == &only_ready_index && entries[i].state != MODEL_READY)
            continue;
        text_buffer_put(out, written++ ? "," : "");
        write_entry(out, &entries[i]);
    }
    text_buffer_put(out, "]");
    free(entries);
}

static void serve_index(request *r)
{
    bool only_ready;
    status failure = read_index_body(r, &only_ready);
    if (failure)
        respond_status(r, failure, status_message());
    else
        respond_shared(r, "application/json", only_ready ? &only_ready_index : &whole_index,
                       write_index);
}

/* A load or unload that a request waits for. */
typedef struct change {
    request_message message; /* first */
    repository_order order;
    status result;
    char error[STATUS_MESSAGE_BYTES_MAX];
} change;

/* On the loading thread, or in cancel_change(). */
static void on_changed(repository_order *o, status result, const char *error)
{
    change *c = (change *)((char *)o - offsetof(change, order));
    c->result = result;
    strncpy(c->error, error, sizeof(c->error) - 1);
    request_post(&c->message);
}

static void cancel_change(request *r)
{
    change *c = r->waits_for;
    repository_cancel(request_service(r)->models, &c->order);
}

static void respond_changed(request *r)
{
    change *c = r->waits_for;
    r->on_cancel = NULL;
    /* A failure of ours while a model is loaded is the model's; so is its size, not the request's.
     */
    bool is_models = c->result == STATUS_INTERNAL || c->result == STATUS_TOO_LARGE;
    status result = is_models ? STATUS_INVALID_ARGUMENT : c->result;
    if (!request_has_ended(r)) {
        if (result == STATUS_OK)
            respond_text(r, 200, "application/json", "{}", 2);
        else
            respond_status(r, result, c->error);
    }
    free(c);
}

static status order_change(request *r, change *c)
{
    repository *models = request_service(r)->models;
    if (c == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a request");
    c->message.request = r;
    c->order.on_done = on_changed;
    return r->route.kind == ROUTE_LOAD ? repository_load(models, r->route.name, &c->order)
                                       : repository_unload(models, r->route.name, &c->order);
}

void serve_repository(request *r)
{
    if (r->route.kind == ROUTE_INDEX) {
        serve_index(r);
        return;
    }
    change *c = calloc(1, sizeof(*c));
    status failure = order_change(r, c);
    if (failure) {
        free(c);
        respond_status(r, failure, status_message());
        return;
    }
    r->waits_for = c;
    r->resume = respond_changed;
    r->on_cancel = cancel_change;
    r->connection->transport->watch(r);
}

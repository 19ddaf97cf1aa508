/* POST /v2/repository/...: the index at once; load and unload when the loading thread is done. */
#include <stdlib.h>

#include "server/protocol/text/text_write.h"
#include "server/request/model_change.h"
#include "server/request/respond.h"
#include "server/routes/fields.h"
#include "server/routes/routes.h"

static status read_index_field(json_scan *s, json_string key, void *only_ready)
{
    return json_string_is(key, "ready") ? json_read_bool(s, only_ready) : json_skip_value(s);
}

/* {"ready": true} asks for ready ones only; an empty body for all. */
static status read_index_body(const request *r, bool *only_ready)
{
    arena memory = {0};
    *only_ready = false;
    if (r->body.bytes == 0)
        return STATUS_OK;
    status failure = request_read_fields(r, &memory, read_index_field, only_ready);
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

/* What a client sends with a load or unload: {"parameters": {...}}. Each is honoured, or refused by
 * its name. `config` lies in `memory`. */
typedef struct change_body {
    bool is_load;
    arena *memory;
    const char *config; /* NULL: none */
} change_body;

static status read_parameter(json_scan *s, json_string key, change_body *body)
{
    json_string text;
    bool flag;
    if (!body->is_load && json_string_is(key, "unload_dependents"))
        return json_read_bool(s, &flag); /* no model depends on another one */
    if (!body->is_load || !json_string_is(key, "config"))
        return status_fail(STATUS_UNSUPPORTED, "parameter \"%.*s\" is not supported%s",
                           (int)(key.bytes < 200 ? key.bytes : 200), key.text,
                           key.bytes > 5 && memcmp(key.text, "file:", 5) == 0
                               ? ": models come from the server's own folders"
                               : "");
    status failure = json_read_string(s, &text);
    if (!failure && memchr(text.text, 0, text.bytes) != NULL)
        return status_fail(STATUS_INVALID_ARGUMENT, "config: contains a zero byte");
    if (!failure)
        body->config = arena_copy_string(body->memory, text.text, text.bytes);
    return failure || body->config != NULL
               ? failure
               : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a load");
}

static status read_change_field(json_scan *s, json_string key, void *into)
{
    change_body *body = into;
    json_object parameters;
    bool has_key;
    if (!json_string_is(key, "parameters"))
        return status_fail(STATUS_UNSUPPORTED, "\"%.*s\" is not supported",
                           (int)(key.bytes < 200 ? key.bytes : 200), key.text);
    status failure = json_open_object(s, &parameters);
    while (!failure && !(failure = json_object_next(s, &parameters, &key, &has_key)) && has_key)
        failure = read_parameter(s, key, body);
    return failure;
}

static status read_change_body(const request *r, arena *memory, const char **config)
{
    change_body body = {.is_load = r->route.kind == ROUTE_LOAD, .memory = memory};
    status failure =
        r->body.bytes > 0 ? request_read_fields(r, memory, read_change_field, &body) : STATUS_OK;
    *config = body.config;
    return failure;
}

static void respond_changed(request *r, status result, const char *error)
{
    if (result == STATUS_OK)
        respond_text(r, 200, "application/json", "{}", 2);
    else
        respond_status(r, result, error);
}

void serve_repository(request *r)
{
    arena memory = {0};
    const char *config;
    if (r->route.kind == ROUTE_INDEX) {
        serve_index(r);
        return;
    }
    status failure = read_change_body(r, &memory, &config);
    if (!failure)
        failure = model_change_begin(r, r->route.kind == ROUTE_LOAD, config, respond_changed);
    arena_dispose(&memory);
    if (failure)
        respond_status(r, failure, status_message());
}

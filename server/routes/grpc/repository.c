/* The repository's index, load and unload over gRPC, with the same rights as over HTTP; and what
 * Triton has and Penstock does not. */
#include <stdlib.h>
#include <string.h>

#include "server/protocol/grpc/inference.pb-c.h"
#include "server/request/model_change.h"
#include "server/request/respond.h"
#include "server/routes/grpc/methods.h"

typedef Inference__RepositoryIndexResponse__ModelIndex index_message;

/* False: no memory. */
static bool fill_entry(index_message *to, const repository_entry *entry, arena *memory)
{
    static const char *const states[MODEL_STATES] = {"LOADING", "READY", "UNAVAILABLE",
                                                     "UNAVAILABLE", "UNAVAILABLE"};
    const char *reason = entry->state == MODEL_UNLOADED ? "unloaded" : entry->reason;
    *to = (index_message)INFERENCE__REPOSITORY_INDEX_RESPONSE__MODEL_INDEX__INIT;
    to->name = arena_copy_string(memory, entry->name, strlen(entry->name));
    to->version = arena_format(memory, "%lld", (long long)entry->version);
    to->state = (char *)(uintptr_t)states[entry->state];
    to->reason = arena_copy_string(memory, reason, strlen(reason));
    return to->name != NULL && to->version != NULL && to->reason != NULL;
}

static bool fill_index(Inference__RepositoryIndexResponse *out, const service *s, bool only_ready,
                       arena *memory)
{
    int count;
    repository_entry *entries = repository_list_all(s->models, &count);
    bool is_whole = entries != NULL;
    out->models = arena_allocate(memory, (size_t)count * sizeof *out->models + 1);
    for (int i = 0; is_whole && out->models != NULL && i < count; i++) {
        if (only_ready && entries[i].state != MODEL_READY)
            continue;
        index_message *to = arena_allocate(memory, sizeof *to);
        is_whole = to != NULL && fill_entry(to, &entries[i], memory);
        out->models[out->n_models++] = to;
    }
    free(entries);
    return is_whole && out->models != NULL;
}

void method_index(request *r, const ProtobufCMessage *in, arena *memory)
{
    const Inference__RepositoryIndexRequest *asked = (const Inference__RepositoryIndexRequest *)in;
    Inference__RepositoryIndexResponse out = INFERENCE__REPOSITORY_INDEX_RESPONSE__INIT;
    if (fill_index(&out, request_service(r), asked->ready, memory))
        method_reply(r, &out.base);
    else
        respond_status(r, STATUS_OUT_OF_MEMORY, "no memory for the response");
}

static void respond_changed(request *r, status result, const char *error)
{
    Inference__RepositoryModelLoadResponse out = INFERENCE__REPOSITORY_MODEL_LOAD_RESPONSE__INIT;
    if (result == STATUS_OK)
        method_reply(r, &out.base); /* empty, as the other one */
    else
        respond_status(r, result, error);
}

static void change(request *r, bool is_load, const char *name, const char *config)
{
    status failure = route_set_name(&r->route, "model_name", name, strlen(name));
    if (!failure)
        failure = model_change_begin(r, is_load, config, respond_changed);
    if (failure)
        respond_status(r, failure, status_message());
}

static void refuse_parameter(request *r, const char *key)
{
    status failure = status_fail(STATUS_UNSUPPORTED, "parameter \"%.200s\" is not supported", key);
    respond_status(r, failure, status_message());
}

void method_load(request *r, const ProtobufCMessage *in, arena *memory)
{
    const Inference__RepositoryModelLoadRequest *asked =
        (const Inference__RepositoryModelLoadRequest *)in;
    const char *config = NULL;
    (void)memory;
    for (size_t i = 0; i < asked->n_parameters; i++) {
        const Inference__ModelRepositoryParameter *value = asked->parameters[i]->value;
        bool is_text = value != NULL &&
                       value->parameter_choice_case ==
                           INFERENCE__MODEL_REPOSITORY_PARAMETER__PARAMETER_CHOICE_STRING_PARAM;
        if (strcmp(asked->parameters[i]->key, "config") != 0 || !is_text) {
            refuse_parameter(r, asked->parameters[i]->key);
            return;
        }
        config = value->string_param;
    }
    change(r, true, asked->model_name, config);
}

/* No model depends on another one: `unload_dependents` asks for nothing. */
void method_unload(request *r, const ProtobufCMessage *in, arena *memory)
{
    const Inference__RepositoryModelUnloadRequest *asked =
        (const Inference__RepositoryModelUnloadRequest *)in;
    (void)memory;
    for (size_t i = 0; i < asked->n_parameters; i++) {
        if (strcmp(asked->parameters[i]->key, "unload_dependents") != 0) {
            refuse_parameter(r, asked->parameters[i]->key);
            return;
        }
    }
    change(r, false, asked->model_name, NULL);
}

/* The settings there are: none. Asking for them is answered, setting one is refused by its name. */
void method_trace_setting(request *r, const ProtobufCMessage *in, arena *memory)
{
    const Inference__TraceSettingRequest *asked = (const Inference__TraceSettingRequest *)in;
    Inference__TraceSettingResponse out = INFERENCE__TRACE_SETTING_RESPONSE__INIT;
    (void)memory;
    if (asked->n_settings == 0)
        method_reply(r, &out.base);
    else
        refuse_parameter(r, asked->settings[0]->key);
}

void method_log_settings(request *r, const ProtobufCMessage *in, arena *memory)
{
    const Inference__LogSettingsRequest *asked = (const Inference__LogSettingsRequest *)in;
    Inference__LogSettingsResponse out = INFERENCE__LOG_SETTINGS_RESPONSE__INIT;
    (void)memory;
    if (asked->n_settings == 0)
        method_reply(r, &out.base);
    else
        refuse_parameter(r, asked->settings[0]->key);
}

/* What the server and its models are, over gRPC. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/options/version.h"
#include "server/protocol/grpc/call.h"
#include "server/protocol/grpc/inference.pb-c.h"
#include "server/protocol/signature.h"
#include "server/request/respond.h"
#include "server/routes/grpc/methods.h"

#define ENTRIES_MAX 1024
#define EXTENSIONS_MAX 6

typedef Inference__ModelMetadataResponse__TensorMetadata tensor_message;

void method_live(request *r, const ProtobufCMessage *in, arena *memory)
{
    Inference__ServerLiveResponse out = INFERENCE__SERVER_LIVE_RESPONSE__INIT;
    (void)in, (void)memory;
    out.live = service_is_live(request_service(r));
    method_reply(r, &out.base);
}

void method_ready(request *r, const ProtobufCMessage *in, arena *memory)
{
    Inference__ServerReadyResponse out = INFERENCE__SERVER_READY_RESPONSE__INIT;
    (void)in, (void)memory;
    out.ready = service_is_ready(request_service(r));
    method_reply(r, &out.base);
}

/* A model that is not there is not ready, as Triton has it: no error. */
void method_model_ready(request *r, const ProtobufCMessage *in, arena *memory)
{
    const Inference__ModelReadyRequest *asked = (const Inference__ModelReadyRequest *)in;
    Inference__ModelReadyResponse out = INFERENCE__MODEL_READY_RESPONSE__INIT;
    service *s = request_service(r);
    const model *m;
    int64_t version;
    (void)memory;
    if (grpc_read_version(asked->version, strlen(asked->version), &version) ==
        STATUS_INVALID_ARGUMENT) {
        respond_status(r, STATUS_INVALID_ARGUMENT, status_message());
        return;
    }
    bool is_there = !repository_find(s->models, asked->name, strlen(asked->name), version, &m);
    if (is_there)
        model_release(m);
    out.ready = is_there && !atomic_load(&s->is_draining);
    method_reply(r, &out.base);
}

void method_server_metadata(request *r, const ProtobufCMessage *in, arena *memory)
{
    const char *extensions[EXTENSIONS_MAX] = {"binary_tensor_data", "model_configuration",
                                              "parameters", "statistics"};
    size_t count = 4;
    if ((r->rights & ACCESS_ADMIN) != 0)
        extensions[count++] = "model_repository";
    if ((r->rights & ACCESS_SHARED_MEMORY) != 0)
        extensions[count++] = "system_shared_memory";
    Inference__ServerMetadataResponse out = INFERENCE__SERVER_METADATA_RESPONSE__INIT;
    (void)in, (void)memory;
    out.name = (char *)(uintptr_t) "penstock";
    out.version = (char *)(uintptr_t)PENSTOCK_VERSION;
    out.extensions = (char **)(uintptr_t)extensions;
    out.n_extensions = count;
    method_reply(r, &out.base);
}

static bool fill_tensor(tensor_message *to, const model_tensor *t, arena *memory)
{
    *to = (tensor_message)INFERENCE__MODEL_METADATA_RESPONSE__TENSOR_METADATA__INIT;
    to->name = (char *)(uintptr_t)t->name;
    to->datatype = (char *)(uintptr_t)dtype_kserve_name(t->dtype);
    to->n_shape = (size_t)t->rank;
    to->shape = arena_allocate(memory, (size_t)t->rank * sizeof *to->shape + 1);
    for (int i = 0; to->shape != NULL && i < t->rank; i++)
        to->shape[i] = signature_dim(t, i);
    return to->shape != NULL;
}

/* NULL: no memory. */
static tensor_message **make_tensors(const model_tensor *tensors, int count, arena *memory)
{
    tensor_message **list = arena_allocate(memory, (size_t)count * sizeof *list + 1);
    tensor_message *all = arena_allocate(memory, (size_t)count * sizeof *all + 1);
    if (list == NULL || all == NULL)
        return NULL;
    for (int i = 0; i < count; i++) {
        list[i] = &all[i];
        if (!fill_tensor(&all[i], &tensors[i], memory))
            return NULL;
    }
    return list;
}

/* The ready versions of that name. NULL: no memory. */
static char **make_versions(const service *s, const char *name, size_t *count, arena *memory)
{
    repository_entry *entries = malloc(ENTRIES_MAX * sizeof *entries);
    int found = entries != NULL ? repository_list(s->models, entries, ENTRIES_MAX) : 0;
    char **versions = arena_allocate(memory, ENTRIES_MAX * sizeof *versions);
    *count = 0;
    for (int i = 0; versions != NULL && i < found && i < ENTRIES_MAX; i++) {
        if (strcmp(entries[i].name, name) != 0 || entries[i].state != MODEL_READY)
            continue;
        versions[*count] = arena_format(memory, "%lld", (long long)entries[i].version);
        if (versions[(*count)++] == NULL)
            versions = NULL;
    }
    free(entries);
    return entries != NULL ? versions : NULL;
}

void method_model_metadata(request *r, const ProtobufCMessage *in, arena *memory)
{
    const Inference__ModelMetadataRequest *asked = (const Inference__ModelMetadataRequest *)in;
    Inference__ModelMetadataResponse out = INFERENCE__MODEL_METADATA_RESPONSE__INIT;
    model_tensor inputs[SIGNATURE_INPUTS_MAX];
    const model *m;
    if (!method_find_model(r, asked->name, asked->version, &m))
        return;
    int input_count = signature_inputs(m, inputs);
    out.name = (char *)(uintptr_t)m->name;
    out.platform = (char *)(uintptr_t)m->platform;
    out.versions = make_versions(request_service(r), m->name, &out.n_versions, memory);
    out.inputs = make_tensors(inputs, input_count, memory);
    out.n_inputs = (size_t)input_count;
    out.outputs = make_tensors(m->outputs, m->output_count, memory);
    out.n_outputs = (size_t)m->output_count;
    if (out.versions == NULL || out.inputs == NULL || out.outputs == NULL)
        respond_status(r, STATUS_OUT_OF_MEMORY, "no memory for the response");
    else
        method_reply(r, &out.base);
    model_release(m);
}

#include "server/routes/grpc/methods.h"

#include <assert.h>
#include <string.h>

#include "server/call/open.h"
#include "server/protocol/grpc/call.h"
#include "server/protocol/grpc/health.pb-c.h"
#include "server/protocol/grpc/inference.pb-c.h"
#include "server/protocol/grpc/orca_service.pb-c.h"
#include "server/protocol/grpc/reflection_v1.pb-c.h"
#include "server/protocol/grpc/tensorflow_serving.pb-c.h"
#include "server/request/respond.h"

static const struct {
    const ProtobufCMessageDescriptor *type; /* of the request; NULL: it is not looked at */
    grpc_method *serve;
} methods[ROUTE_KIND_COUNT] = {
    [ROUTE_GRPC_LIVE] = {NULL, method_live},
    [ROUTE_GRPC_READY] = {NULL, method_ready},
    [ROUTE_GRPC_MODEL_READY] = {&inference__model_ready_request__descriptor, method_model_ready},
    [ROUTE_GRPC_SERVER_METADATA] = {NULL, method_server_metadata},
    [ROUTE_GRPC_MODEL_METADATA] = {&inference__model_metadata_request__descriptor,
                                   method_model_metadata},
    [ROUTE_GRPC_MODEL_CONFIG] = {&inference__model_config_request__descriptor, method_model_config},
    [ROUTE_GRPC_MODEL_STATS] = {&inference__model_statistics_request__descriptor,
                                method_model_statistics},
    [ROUTE_GRPC_INDEX] = {&inference__repository_index_request__descriptor, method_index},
    [ROUTE_GRPC_LOAD] = {&inference__repository_model_load_request__descriptor, method_load},
    [ROUTE_GRPC_UNLOAD] = {&inference__repository_model_unload_request__descriptor, method_unload},
    [ROUTE_GRPC_SHARED_STATUS] = {&inference__system_shared_memory_status_request__descriptor,
                                  method_shared_status},
    [ROUTE_GRPC_SHARED_REGISTER] = {&inference__system_shared_memory_register_request__descriptor,
                                    method_shared_register},
    [ROUTE_GRPC_SHARED_UNREGISTER] =
        {&inference__system_shared_memory_unregister_request__descriptor, method_shared_unregister},
    [ROUTE_GRPC_CUDA_STATUS] = {&inference__cuda_shared_memory_status_request__descriptor,
                                method_cuda_status},
    [ROUTE_GRPC_CUDA_REGISTER] = {NULL, method_cuda_register},
    [ROUTE_GRPC_CUDA_UNREGISTER] = {NULL, method_cuda_unregister},
    [ROUTE_GRPC_TRACE_SETTING] = {&inference__trace_setting_request__descriptor,
                                  method_trace_setting},
    [ROUTE_GRPC_LOG_SETTINGS] = {&inference__log_settings_request__descriptor, method_log_settings},
    [ROUTE_GRPC_HEALTH_CHECK] = {&grpc__health__v1__health_check_request__descriptor,
                                 method_health_check},
    [ROUTE_GRPC_HEALTH_WATCH] = {&grpc__health__v1__health_check_request__descriptor,
                                 method_health_watch},
    [ROUTE_GRPC_TF_METADATA] = {&tensorflow__serving__get_model_metadata_request__descriptor,
                                method_tensorflow_metadata},
    [ROUTE_GRPC_TF_CLASSIFY] = {&tensorflow__serving__classification_request__descriptor,
                                method_tensorflow_classify},
    [ROUTE_GRPC_TF_REGRESS] = {&tensorflow__serving__regression_request__descriptor,
                               method_tensorflow_regress},
    [ROUTE_GRPC_TF_MULTI] = {&tensorflow__serving__multi_inference_request__descriptor,
                             method_tensorflow_multi},
    [ROUTE_GRPC_TF_STATUS] = {&tensorflow__serving__get_model_status_request__descriptor,
                              method_tensorflow_status},
    [ROUTE_GRPC_TF_RELOAD] = {NULL, method_tensorflow_reload},
    [ROUTE_GRPC_LOAD_REPORTS] = {&xds__service__orca__v3__orca_load_report_request__descriptor,
                                 method_load_report},
    [ROUTE_GRPC_REFLECTION] = {&grpc__reflection__v1__server_reflection_request__descriptor,
                               method_reflection},
};

static void serve(request *r, status failure)
{
    arena memory = {0};
    ProtobufCMessage *in = NULL;
    const ProtobufCMessageDescriptor *type = methods[r->route.kind].type;
    if (!failure && type != NULL)
        failure = grpc_unpack(type, &memory, r->body.data, r->body.bytes, &in);
    if (failure)
        respond_status(r, failure, status_message());
    else
        methods[r->route.kind].serve(r, in, &memory);
    arena_dispose(&memory);
}

void serve_method(request *r)
{
    assert(methods[r->route.kind].serve != NULL);
    call_open(r, serve);
}

void method_reply(request *r, const ProtobufCMessage *message)
{
    static const char head[GRPC_FRAME_HEAD_BYTES];
    text_buffer out = {0};
    text_buffer_append(&out, head, sizeof head);
    grpc_pack(&out, message);
    respond_grpc(r, &out);
    text_buffer_dispose(&out);
}

bool method_find_model(request *r, const char *name, const char *version, const model **out)
{
    status failure = grpc_read_version(version, strlen(version), &r->route.version);
    if (!failure)
        failure =
            repository_find(request_service(r)->models, name, strlen(name), r->route.version, out);
    if (failure)
        respond_status(r, failure, status_message());
    return failure == STATUS_OK;
}

#include "server/protocol/route_method.h"

#include <string.h>

#define INFERENCE "inference.GRPCInferenceService"
#define HEALTH "grpc.health.v1.Health"
#define PREDICTION "tensorflow.serving.PredictionService"
#define MODELS "tensorflow.serving.ModelService"
#define LOAD_REPORTS "xds.service.orca.v3.OpenRcaService"
#define REFLECTION "grpc.reflection.v1.ServerReflection"
#define REFLECTION_ALPHA "grpc.reflection.v1alpha.ServerReflection"

static const struct {
    const char *service, *method;
    route_kind kind;
} methods[] = {
    {INFERENCE, "ModelInfer", ROUTE_GRPC_INFER},
    {INFERENCE, "ServerLive", ROUTE_GRPC_LIVE},
    {INFERENCE, "ServerReady", ROUTE_GRPC_READY},
    {INFERENCE, "ModelReady", ROUTE_GRPC_MODEL_READY},
    {INFERENCE, "ServerMetadata", ROUTE_GRPC_SERVER_METADATA},
    {INFERENCE, "ModelMetadata", ROUTE_GRPC_MODEL_METADATA},
    {INFERENCE, "ModelConfig", ROUTE_GRPC_MODEL_CONFIG},
    {INFERENCE, "ModelStatistics", ROUTE_GRPC_MODEL_STATS},
    {INFERENCE, "RepositoryIndex", ROUTE_GRPC_INDEX},
    {INFERENCE, "RepositoryModelLoad", ROUTE_GRPC_LOAD},
    {INFERENCE, "RepositoryModelUnload", ROUTE_GRPC_UNLOAD},
    {INFERENCE, "SystemSharedMemoryStatus", ROUTE_GRPC_SHARED_STATUS},
    {INFERENCE, "SystemSharedMemoryRegister", ROUTE_GRPC_SHARED_REGISTER},
    {INFERENCE, "SystemSharedMemoryUnregister", ROUTE_GRPC_SHARED_UNREGISTER},
    {INFERENCE, "CudaSharedMemoryStatus", ROUTE_GRPC_CUDA_STATUS},
    {INFERENCE, "CudaSharedMemoryRegister", ROUTE_GRPC_CUDA_REGISTER},
    {INFERENCE, "CudaSharedMemoryUnregister", ROUTE_GRPC_CUDA_UNREGISTER},
    {INFERENCE, "TraceSetting", ROUTE_GRPC_TRACE_SETTING},
    {INFERENCE, "LogSettings", ROUTE_GRPC_LOG_SETTINGS},
    {INFERENCE, "ModelStreamInfer", ROUTE_GRPC_STREAM_INFER},
    {PREDICTION, "Predict", ROUTE_GRPC_TF_PREDICT},
    {PREDICTION, "GetModelMetadata", ROUTE_GRPC_TF_METADATA},
    {PREDICTION, "Classify", ROUTE_GRPC_TF_CLASSIFY},
    {PREDICTION, "Regress", ROUTE_GRPC_TF_REGRESS},
    {PREDICTION, "MultiInference", ROUTE_GRPC_TF_MULTI},
    {MODELS, "GetModelStatus", ROUTE_GRPC_TF_STATUS},
    {MODELS, "HandleReloadConfigRequest", ROUTE_GRPC_TF_RELOAD},
    {LOAD_REPORTS, "StreamCoreMetrics", ROUTE_GRPC_LOAD_REPORTS},
    {HEALTH, "Check", ROUTE_GRPC_HEALTH_CHECK},
    {HEALTH, "Watch", ROUTE_GRPC_HEALTH_WATCH},
    {REFLECTION, "ServerReflectionInfo", ROUTE_GRPC_REFLECTION},
    {REFLECTION_ALPHA, "ServerReflectionInfo", ROUTE_GRPC_REFLECTION},
};

route_kind route_method_find(const char *path, size_t bytes)
{
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        size_t service = strlen(methods[i].service), method = strlen(methods[i].method);
        if (bytes == service + method + 2 && path[0] == '/' &&
            memcmp(path + 1, methods[i].service, service) == 0 && path[1 + service] == '/' &&
            memcmp(path + 2 + service, methods[i].method, method) == 0)
            return methods[i].kind;
    }
    return ROUTE_UNKNOWN;
}

const char *const *route_method_services(void)
{
    static const char *const services[] = {INFERENCE,    PREDICTION, MODELS,           HEALTH,
                                           LOAD_REPORTS, REFLECTION, REFLECTION_ALPHA, NULL};
    return services;
}

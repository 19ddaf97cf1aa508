#include "server/routes/routes.h"

#include "server/infer/infer.h"
#include "server/infer/language.h"
#include "server/request/respond.h"
#include "server/routes/grpc/methods.h"
#include "server/routes/metrics/metrics.h"

void serve_unknown(request *r)
{
    if (r->route.dialect == ROUTE_GRPC) {
        respond_error(r, 501, "no such service or method");
        return;
    }
    respond_error(r, r->route.dialect == ROUTE_TENSORFLOW ? 400 : 404, "no such route");
}

const request_routes *routes_table(void)
{
    static const request_routes table = {
        .of =
            {
                [ROUTE_UNKNOWN] = {serve_unknown, .is_early = true},
                [ROUTE_STATUS_PAGE] = {serve_status_page, .is_early = true},
                [ROUTE_METRICS] = {serve_metrics, .is_early = true},
                [ROUTE_SERVER_METADATA] = {serve_metadata},
                [ROUTE_LIVE] = {serve_health, .is_early = true},
                [ROUTE_READY] = {serve_health, .is_early = true},
                [ROUTE_MODEL_METADATA] = {serve_metadata},
                [ROUTE_MODEL_READY] = {serve_health},
                [ROUTE_MODEL_CONFIG] = {serve_metadata},
                [ROUTE_MODEL_STATS] = {serve_stats},
                [ROUTE_ALL_STATS] = {serve_stats},
                [ROUTE_INFER] = {infer_handle},
                [ROUTE_INDEX] = {serve_repository},
                [ROUTE_LOAD] = {serve_repository},
                [ROUTE_UNLOAD] = {serve_repository},
                [ROUTE_SHARED_STATUS... ROUTE_CUDA_UNREGISTER] = {serve_shared_memory},
                [ROUTE_TF_STATUS] = {serve_tensorflow_metadata},
                [ROUTE_TF_METADATA] = {serve_tensorflow_metadata},
                [ROUTE_TF_PREDICT] = {infer_handle},
                [ROUTE_TF_CLASSIFY] = {serve_other_signature},
                [ROUTE_TF_REGRESS] = {serve_other_signature},
                [ROUTE_MODELS] = {serve_models},
                [ROUTE_EMBEDDINGS... ROUTE_DECODE] = {language_handle},
                [ROUTE_INFO] = {serve_text_info},
                [ROUTE_HEALTH] = {serve_text_health},
                [ROUTE_INVOCATIONS] = {infer_handle},
                [ROUTE_MULTI_LIST... ROUTE_MULTI_UNLOAD] = {serve_multi_models},
                [ROUTE_OPENAPI] = {serve_openapi, .is_early = true},
                [ROUTE_PROFILE] = {serve_profile},
                [ROUTE_GRPC_INFER] = {infer_handle},
                [ROUTE_GRPC_LIVE] = {serve_method, .is_early = true},
                [ROUTE_GRPC_READY] = {serve_method, .is_early = true},
                [ROUTE_GRPC_MODEL_READY... ROUTE_GRPC_LOG_SETTINGS] = {serve_method},
                [ROUTE_GRPC_TF_PREDICT] = {infer_handle},
                [ROUTE_GRPC_TF_METADATA... ROUTE_GRPC_TF_RELOAD] = {serve_method},
                [ROUTE_GRPC_HEALTH_CHECK] = {serve_method, .is_early = true},
                [ROUTE_GRPC_STREAM_INFER] = {infer_handle},
                [ROUTE_GRPC_HEALTH_WATCH] = {serve_method, .is_early = true},
                [ROUTE_GRPC_LOAD_REPORTS] = {serve_method},
                [ROUTE_GRPC_REFLECTION] = {serve_method, .is_early = true},
            },
        .starting = serve_starting,
    };
    return &table;
}

static void serve_elsewhere(request *r)
{
    respond_error(r, 404, "this address serves /v2/health/live, /v2/health/ready and /metrics");
}

const request_routes *routes_health_table(void)
{
    static const request_routes table = {
        .of =
            {
                [0 ... ROUTE_METRICS - 1] = {serve_elsewhere, .is_early = true, .is_absent = true},
                [ROUTE_METRICS] = {serve_metrics, .is_early = true},
                [ROUTE_METRICS + 1 ... ROUTE_LIVE - 1] = {serve_elsewhere, .is_early = true,
                                                          .is_absent = true},
                [ROUTE_LIVE] = {serve_health, .is_early = true},
                [ROUTE_READY] = {serve_health, .is_early = true},
                [ROUTE_READY + 1 ... ROUTE_KIND_COUNT - 1] = {serve_elsewhere, .is_early = true,
                                                              .is_absent = true},
            },
        .starting = serve_starting,
    };
    return &table;
}

#include "server/access/rights.h"

#include <string.h>

access_right access_right_of(route_kind kind)
{
    static const access_right table[ROUTE_KIND_COUNT] = {
        [ROUTE_UNKNOWN] = ACCESS_OPEN, /* 404 */
        [ROUTE_STATUS_PAGE] = ACCESS_READ,
        [ROUTE_METRICS] = ACCESS_READ,
        [ROUTE_SERVER_METADATA] = ACCESS_READ,
        [ROUTE_LIVE] = ACCESS_OPEN,
        [ROUTE_READY] = ACCESS_OPEN,
        [ROUTE_MODEL_METADATA] = ACCESS_READ,
        [ROUTE_MODEL_READY] = ACCESS_OPEN,
        [ROUTE_MODEL_CONFIG] = ACCESS_READ,
        [ROUTE_MODEL_STATS] = ACCESS_READ,
        [ROUTE_ALL_STATS] = ACCESS_READ,
        [ROUTE_INFER] = ACCESS_INFER,
        [ROUTE_INDEX] = ACCESS_READ,
        [ROUTE_LOAD] = ACCESS_ADMIN,
        [ROUTE_UNLOAD] = ACCESS_ADMIN,
        [ROUTE_TF_STATUS] = ACCESS_READ,
        [ROUTE_TF_METADATA] = ACCESS_READ,
        [ROUTE_TF_PREDICT] = ACCESS_INFER,
        [ROUTE_TF_CLASSIFY] = ACCESS_INFER,
        [ROUTE_TF_REGRESS] = ACCESS_INFER,
        [ROUTE_MODELS] = ACCESS_READ,
        [ROUTE_EMBEDDINGS] = ACCESS_INFER,
        [ROUTE_V1_RERANK] = ACCESS_INFER,
        [ROUTE_EMBED] = ACCESS_INFER,
        [ROUTE_EMBED_ALL] = ACCESS_INFER,
        [ROUTE_EMBED_SPARSE] = ACCESS_INFER,
        [ROUTE_RERANK] = ACCESS_INFER,
        [ROUTE_PREDICT] = ACCESS_INFER,
        [ROUTE_SIMILARITY] = ACCESS_INFER,
        [ROUTE_TOKENIZE] = ACCESS_INFER,
        [ROUTE_DECODE] = ACCESS_INFER,
        [ROUTE_INFO] = ACCESS_READ,
        [ROUTE_HEALTH] = ACCESS_OPEN,
        [ROUTE_GRPC_INFER] = ACCESS_INFER,
        [ROUTE_GRPC_LIVE] = ACCESS_OPEN,
        [ROUTE_GRPC_READY] = ACCESS_OPEN,
        [ROUTE_GRPC_MODEL_READY] = ACCESS_OPEN,
        [ROUTE_GRPC_SERVER_METADATA] = ACCESS_READ,
        [ROUTE_GRPC_MODEL_METADATA] = ACCESS_READ,
        [ROUTE_GRPC_MODEL_CONFIG] = ACCESS_READ,
        [ROUTE_GRPC_MODEL_STATS] = ACCESS_READ,
        [ROUTE_GRPC_INDEX] = ACCESS_READ,
        [ROUTE_GRPC_LOAD] = ACCESS_ADMIN,
        [ROUTE_GRPC_UNLOAD] = ACCESS_ADMIN,
        [ROUTE_GRPC_SHARED_MEMORY] = ACCESS_ADMIN,
        [ROUTE_GRPC_TRACE_SETTING] = ACCESS_ADMIN,
        [ROUTE_GRPC_LOG_SETTINGS] = ACCESS_ADMIN,
        [ROUTE_GRPC_TF_PREDICT] = ACCESS_INFER,
        [ROUTE_GRPC_TF_METADATA] = ACCESS_READ,
        [ROUTE_GRPC_TF_CLASSIFY] = ACCESS_INFER,
        [ROUTE_GRPC_TF_REGRESS] = ACCESS_INFER,
        [ROUTE_GRPC_TF_MULTI] = ACCESS_INFER,
        [ROUTE_GRPC_TF_STATUS] = ACCESS_READ,
        [ROUTE_GRPC_TF_RELOAD] = ACCESS_ADMIN,
        [ROUTE_GRPC_HEALTH_CHECK] = ACCESS_OPEN,
        [ROUTE_GRPC_STREAM_INFER] = ACCESS_INFER,
        [ROUTE_GRPC_HEALTH_WATCH] = ACCESS_OPEN,
        [ROUTE_GRPC_LOAD_REPORTS] = ACCESS_READ,
        [ROUTE_GRPC_REFLECTION] = ACCESS_READ,
    };
    return table[kind];
}

access_right access_right_named(const char *name, size_t bytes)
{
    static const struct {
        const char *name;
        access_right right;
    } rights[] = {{"infer", ACCESS_INFER}, {"read", ACCESS_READ}, {"admin", ACCESS_ADMIN}};
    for (size_t i = 0; i < sizeof rights / sizeof *rights; i++)
        if (strlen(rights[i].name) == bytes && memcmp(name, rights[i].name, bytes) == 0)
            return rights[i].right;
    return (access_right)0;
}

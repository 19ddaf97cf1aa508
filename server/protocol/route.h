#ifndef SERVER_PROTOCOL_ROUTE_H
#define SERVER_PROTOCOL_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* From a request's path to what it asks for. Pure. */
typedef enum route_kind {
    ROUTE_UNKNOWN,
    ROUTE_STATUS_PAGE,     /* GET / */
    ROUTE_METRICS,         /* GET /metrics */
    ROUTE_SERVER_METADATA, /* GET /v2 */
    ROUTE_LIVE,            /* GET /v2/health/live */
    ROUTE_READY,           /* GET /v2/health/ready */
    ROUTE_MODEL_METADATA,  /* GET /v2/models/M[/versions/V] */
    ROUTE_MODEL_READY,     /* .../ready */
    ROUTE_MODEL_CONFIG,    /* .../config */
    ROUTE_MODEL_STATS,     /* .../stats */
    ROUTE_ALL_STATS,       /* GET /v2/models/stats */
    ROUTE_INFER,           /* POST .../infer */
    ROUTE_INDEX,           /* POST /v2/repository/index */
    ROUTE_LOAD,            /* POST /v2/repository/models/M/load */
    ROUTE_UNLOAD,          /* .../unload */
    /* /v2/systemsharedmemory[/region/R]/status, .../register, .../unregister; the same of
     * cudasharedmemory, in that order */
    ROUTE_SHARED_STATUS,
    ROUTE_SHARED_REGISTER,
    ROUTE_SHARED_UNREGISTER,
    ROUTE_CUDA_STATUS,
    ROUTE_CUDA_REGISTER,
    ROUTE_CUDA_UNREGISTER,
    ROUTE_TF_STATUS,    /* GET /v1/models/M[/versions/V|/labels/L] */
    ROUTE_TF_METADATA,  /* .../metadata */
    ROUTE_TF_PREDICT,   /* POST ...:predict */
    ROUTE_TF_CLASSIFY,  /* POST ...:classify */
    ROUTE_TF_REGRESS,   /* POST ...:regress */
    ROUTE_MODELS,       /* GET /v1/models */
    ROUTE_EMBEDDINGS,   /* POST [/v1]/embeddings; these may stand below /models/M */
    ROUTE_V1_RERANK,    /* POST /v1/rerank, /v2/rerank */
    ROUTE_EMBED,        /* POST /embed */
    ROUTE_EMBED_ALL,    /* POST /embed_all */
    ROUTE_EMBED_SPARSE, /* POST /embed_sparse */
    ROUTE_RERANK,       /* POST /rerank */
    ROUTE_PREDICT,      /* POST /predict */
    ROUTE_SIMILARITY,   /* POST /similarity */
    ROUTE_TOKENIZE,     /* POST /tokenize */
    ROUTE_DECODE,       /* POST /decode */
    ROUTE_INFO,         /* GET /info */
    ROUTE_HEALTH,       /* GET /health, /ping */
    ROUTE_INVOCATIONS,  /* POST /invocations, /models/M/invoke */
    ROUTE_MULTI_LIST,   /* GET /models: of an endpoint of many models */
    ROUTE_MULTI_LOAD,   /* POST /models */
    ROUTE_MULTI_STATUS, /* GET /models/M */
    ROUTE_MULTI_UNLOAD, /* DELETE /models/M */
    ROUTE_OPENAPI,      /* GET /openapi.json */
    ROUTE_PROFILE,      /* POST /v2/profile */
    ROUTE_GRPC_INFER,   /* gRPC: POST /inference.GRPCInferenceService/ModelInfer */
    ROUTE_GRPC_LIVE,    /* ServerLive, and so on */
    ROUTE_GRPC_READY,
    ROUTE_GRPC_MODEL_READY,
    ROUTE_GRPC_SERVER_METADATA,
    ROUTE_GRPC_MODEL_METADATA,
    ROUTE_GRPC_MODEL_CONFIG,
    ROUTE_GRPC_MODEL_STATS,
    ROUTE_GRPC_INDEX,
    ROUTE_GRPC_LOAD,
    ROUTE_GRPC_UNLOAD,
    ROUTE_GRPC_SHARED_STATUS, /* SystemSharedMemoryStatus, and so on */
    ROUTE_GRPC_SHARED_REGISTER,
    ROUTE_GRPC_SHARED_UNREGISTER,
    ROUTE_GRPC_CUDA_STATUS,
    ROUTE_GRPC_CUDA_REGISTER,
    ROUTE_GRPC_CUDA_UNREGISTER,
    ROUTE_GRPC_TRACE_SETTING,
    ROUTE_GRPC_LOG_SETTINGS,
    ROUTE_GRPC_TF_PREDICT, /* tensorflow.serving.PredictionService/Predict */
    ROUTE_GRPC_TF_METADATA,
    ROUTE_GRPC_TF_CLASSIFY,
    ROUTE_GRPC_TF_REGRESS,
    ROUTE_GRPC_TF_MULTI,
    ROUTE_GRPC_TF_STATUS, /* ModelService/GetModelStatus */
    ROUTE_GRPC_TF_RELOAD,
    ROUTE_GRPC_HEALTH_CHECK, /* grpc.health.v1.Health/Check */
    ROUTE_GRPC_STREAM_INFER, /* these are streams of messages */
    ROUTE_GRPC_HEALTH_WATCH,
    ROUTE_GRPC_LOAD_REPORTS, /* xds.service.orca.v3.OpenRcaService/StreamCoreMetrics */
    ROUTE_GRPC_REFLECTION,   /* v1 and v1alpha */
    ROUTE_KIND_COUNT
} route_kind;

/* Whose API a route belongs to: they differ in the codes and bodies of errors. */
typedef enum route_dialect {
    ROUTE_KSERVE, /* and our own */
    ROUTE_TENSORFLOW,
    ROUTE_OPENAI,
    ROUTE_TEI, /* Hugging Face's text-embeddings-inference */
    ROUTE_COHERE,
    ROUTE_PLATFORM, /* SageMaker, Vertex AI */
    ROUTE_GRPC,     /* whatever its path: a request of content type application/grpc */
    ROUTE_DIALECT_COUNT
} route_dialect;

typedef enum route_verb { ROUTE_GET, ROUTE_POST, ROUTE_DELETE } route_verb;

#define ROUTE_NAME_BYTES 256

typedef struct route {
    route_kind kind;
    route_verb verb; /* the one the resource takes; GET includes HEAD */
    route_dialect dialect;
    char name[ROUTE_NAME_BYTES], label[ROUTE_NAME_BYTES]; /* decoded; "" when absent */
    size_t name_bytes, label_bytes;
    int64_t version; /* 0: none named */
} route;

/* Is it a stream of messages? Each is a request of its own. */
static inline bool route_is_streamed(route_kind kind)
{
    return kind >= ROUTE_GRPC_STREAM_INFER && kind <= ROUTE_GRPC_REFLECTION;
}
/* Has it one message, which is answered again and again? */
static inline bool route_is_repeated(route_kind kind)
{
    return kind == ROUTE_GRPC_HEALTH_WATCH || kind == ROUTE_GRPC_LOAD_REPORTS;
}
static inline bool route_is_grpc_infer(route_kind kind)
{
    return kind == ROUTE_GRPC_INFER || kind == ROUTE_GRPC_STREAM_INFER ||
           kind == ROUTE_GRPC_TF_PREDICT;
}

/* Names a model: STATUS_INVALID_ARGUMENT, with `field`: too short, or too long. */
status route_set_name(route *r, const char *field, const char *name, size_t bytes) MUST_CHECK;
status route_set_label(route *r, const char *field, const char *label, size_t bytes) MUST_CHECK;

static inline bool route_is_inference(route_kind kind)
{
    return kind == ROUTE_INFER || kind == ROUTE_TF_PREDICT || kind == ROUTE_INVOCATIONS ||
           route_is_grpc_infer(kind) || (kind >= ROUTE_EMBEDDINGS && kind <= ROUTE_SIMILARITY);
}

/* "kserve", "tensorflow", ... Static. */
const char *route_dialect_name(route_dialect dialect);

/* `path` is everything before '?', still percent-encoded. */
void route_parse(const char *path, size_t bytes, route *out);

/* Of paths that mean another thing with each method: the route of that one, if there is one. */
void route_choose(route *r, const char *method, size_t bytes);
/* The methods that the path takes: "GET, HEAD". Static. */
const char *route_methods(const route *r);

#endif

#ifndef SERVER_PROTOCOL_ROUTE_H
#define SERVER_PROTOCOL_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    ROUTE_TF_STATUS,       /* GET /v1/models/M[/versions/V|/labels/L] */
    ROUTE_TF_METADATA,     /* .../metadata */
    ROUTE_TF_PREDICT,      /* POST ...:predict */
    ROUTE_KIND_COUNT
} route_kind;

typedef enum route_verb { ROUTE_GET, ROUTE_POST } route_verb;

#define ROUTE_NAME_BYTES 256

typedef struct route {
    route_kind kind;
    route_verb verb;    /* the one the resource takes; GET includes HEAD */
    bool is_tensorflow; /* below /v1: its error codes differ */
    char name[ROUTE_NAME_BYTES], label[ROUTE_NAME_BYTES]; /* decoded; "" when absent */
    size_t name_bytes, label_bytes;
    int64_t version; /* 0: none named */
} route;

/* `path` is everything before '?', still percent-encoded. */
void route_parse(const char *path, size_t bytes, route *out);

#endif

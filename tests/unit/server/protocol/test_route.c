#include <criterion/criterion.h>
#include <string.h>

#include "server/protocol/route.h"

Test(route, paths_find_their_kind)
{
    static const struct {
        const char *path;
        route_kind kind;
        const char *name;
        int64_t version;
    } cases[] = {{"/", ROUTE_STATUS_PAGE, "", 0},
                 {"/v2", ROUTE_SERVER_METADATA, "", 0},
                 {"/v2/", ROUTE_SERVER_METADATA, "", 0},
                 {"/v2/health/ready", ROUTE_READY, "", 0},
                 {"/v2/models/a", ROUTE_MODEL_METADATA, "a", 0},
                 {"/v2/models/a/versions/3/infer", ROUTE_INFER, "a", 3},
                 {"/v2/models/a%2Fb/infer", ROUTE_INFER, "a/b", 0},
                 {"/v2/models/stats", ROUTE_ALL_STATS, "", 0},
                 {"/v2/models/a/versions/0/infer", ROUTE_UNKNOWN, "a", 0},
                 {"/v2/models/a/versions/x", ROUTE_UNKNOWN, "a", 0},
                 {"/v2/models//infer", ROUTE_UNKNOWN, "", 0},
                 {"/v2/models/a%zz/infer", ROUTE_UNKNOWN, "", 0},
                 {"/v2/models/a%00/infer", ROUTE_UNKNOWN, "", 0},
                 {"/v2/repository/index", ROUTE_INDEX, "", 0},
                 {"/v2/profile", ROUTE_PROFILE, "", 0},
                 {"/v2/profile/x", ROUTE_UNKNOWN, "", 0},
                 {"/inference.GRPCInferenceService/ModelInfer", ROUTE_GRPC_INFER, "", 0},
                 {"/inference.GRPCInferenceService/LogSettings", ROUTE_GRPC_LOG_SETTINGS, "", 0},
                 {"/grpc.health.v1.Health/Check", ROUTE_GRPC_HEALTH_CHECK, "", 0},
                 {"/grpc.health.v1.Health/Watch", ROUTE_GRPC_HEALTH_WATCH, "", 0},
                 {"/inference.GRPCInferenceService/ModelInfe", ROUTE_UNKNOWN, "", 0},
                 {"/inference.GRPCInferenceService/", ROUTE_UNKNOWN, "", 0},
                 {"/inference.GRPCInferenceServic/ModelInfer", ROUTE_UNKNOWN, "", 0},
                 {"/v2/repository/models/a/unload", ROUTE_UNLOAD, "a", 0},
                 {"/v1/models/a:predict", ROUTE_TF_PREDICT, "a", 0},
                 {"/v1/models/a%3Apredict", ROUTE_TF_PREDICT, "a", 0},
                 {"/v1/models/a/versions/2:predict", ROUTE_TF_PREDICT, "a", 2},
                 {"/v1/models/a/labels/stable:predict", ROUTE_TF_PREDICT, "a", 0},
                 {"/v1/models/a/metadata", ROUTE_TF_METADATA, "a", 0},
                 {"/v1/models/a:classify", ROUTE_TF_CLASSIFY, "a", 0},
                 {"/v1/models/a/versions/3%3aregress", ROUTE_TF_REGRESS, "a", 3},
                 {"/v1/models/a:b:predict", ROUTE_TF_PREDICT, "a:b", 0},
                 {"/v1/models/:predict", ROUTE_TF_STATUS, ":predict", 0},
                 {"/v1/models/predict", ROUTE_TF_STATUS, "predict", 0},
                 {"/v1/models/a:explain", ROUTE_TF_STATUS, "a:explain", 0},
                 {"/v1/models", ROUTE_MODELS, "", 0},
                 {"/v1/embeddings", ROUTE_EMBEDDINGS, "", 0},
                 {"/embeddings", ROUTE_EMBEDDINGS, "", 0},
                 {"/v1/rerank", ROUTE_V1_RERANK, "", 0},
                 {"/v2/rerank", ROUTE_V1_RERANK, "", 0},
                 {"/models/a/v2/rerank", ROUTE_V1_RERANK, "a", 0},
                 {"/models/a/v1/embeddings", ROUTE_EMBEDDINGS, "a", 0},
                 {"/embed", ROUTE_EMBED, "", 0},
                 {"/embed_all", ROUTE_EMBED_ALL, "", 0},
                 {"/models/a%2Fb/embed_sparse", ROUTE_EMBED_SPARSE, "a/b", 0},
                 {"/models/a/info", ROUTE_INFO, "a", 0},
                 {"/health", ROUTE_HEALTH, "", 0},
                 {"/ping", ROUTE_HEALTH, "", 0},
                 {"/embed/x", ROUTE_UNKNOWN, "", 0},
                 {"/models/a/b", ROUTE_UNKNOWN, "", 0},
                 {"/models/a/models/b/embed", ROUTE_UNKNOWN, "", 0},
                 {"/metrics", ROUTE_METRICS, "", 0},
                 {"/metrics/x", ROUTE_UNKNOWN, "", 0},
                 {"*", ROUTE_UNKNOWN, "", 0},
                 {"/a/b/c/d/e/f/g/h/i/j", ROUTE_UNKNOWN, "", 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        route r;
        route_parse(cases[i].path, strlen(cases[i].path), &r);
        cr_assert_eq(r.kind, cases[i].kind, "%s", cases[i].path);
        if (r.kind != ROUTE_UNKNOWN) {
            cr_assert_str_eq(r.name, cases[i].name);
            cr_assert_eq(r.version, cases[i].version);
        }
    }
}

Test(route, some_paths_mean_another_thing_with_each_method)
{
    static const struct {
        const char *path, *method;
        route_kind kind;
        const char *methods;
    } cases[] = {{"/models/", "GET", ROUTE_MULTI_LIST, "GET, HEAD, POST"},
                 {"/invocations", "POST", ROUTE_INVOCATIONS, "POST"},
                 {"/models/a/invoke", "POST", ROUTE_INVOCATIONS, "POST"},
                 {"/models/a/invocations", "POST", ROUTE_UNKNOWN, "GET, HEAD"},
                 {"/invocations/a", "POST", ROUTE_UNKNOWN, "GET, HEAD"},
                 {"/models/a", "GET", ROUTE_MULTI_STATUS, "GET, HEAD, DELETE"},
                 {"/models", "GET", ROUTE_MULTI_LIST, "GET, HEAD, POST"},
                 {"/models", "POST", ROUTE_MULTI_LOAD, "GET, HEAD, POST"},
                 {"/models", "DELETE", ROUTE_MULTI_LIST, "GET, HEAD, POST"},
                 {"/models/a", "DELETE", ROUTE_MULTI_UNLOAD, "GET, HEAD, DELETE"},
                 {"/models/a", "POST", ROUTE_MULTI_STATUS, "GET, HEAD, DELETE"},
                 {"/v2/models/a", "DELETE", ROUTE_MODEL_METADATA, "GET, HEAD"},
                 {"/v2/models/a/infer", "GET", ROUTE_INFER, "POST"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        route r;
        route_parse(cases[i].path, strlen(cases[i].path), &r);
        route_choose(&r, cases[i].method, strlen(cases[i].method));
        cr_assert_eq(r.kind, cases[i].kind, "%s %s", cases[i].method, cases[i].path);
        cr_assert_str_eq(route_methods(&r), cases[i].methods);
    }
}

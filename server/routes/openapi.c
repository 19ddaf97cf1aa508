/* GET /openapi.json: OpenAPI 3.1, made of the table of operations below, whose methods and rights
 * are those of the routes. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "server/access/rights.h"
#include "server/options/version.h"
#include "server/protocol/text/text_write.h"
#include "server/request/respond.h"
#include "server/routes/routes.h"

/* components.schemas, a file of its own, put into the binary by the assembler. */
__asm__(".section .rodata\n"
        "openapi_schemas_begin: .incbin \"" PENSTOCK_OPENAPI_SCHEMAS "\"\n"
        "openapi_schemas_end: .byte 0\n"
        ".previous\n");
extern const char openapi_schemas_begin[], openapi_schemas_end[];

typedef struct operation {
    const char *path, *summary;
    const char *body;     /* its schema; NULL: none */
    const char *response; /* schema of JSON, or a media type */
    bool needs_body;
} operation;

#define VERSIONED(base, end, ...)                                                                  \
    {base end, __VA_ARGS__},                                                                       \
    {                                                                                              \
        base "/versions/{version}" end, __VA_ARGS__                                                \
    }
#define LABELLED(base, end, ...)                                                                   \
    VERSIONED(base, end, __VA_ARGS__),                                                             \
    {                                                                                              \
        base "/labels/{label}" end, __VA_ARGS__                                                    \
    }
#define TEXT_ROUTE(path, ...)                                                                      \
    {path, __VA_ARGS__},                                                                           \
    {                                                                                              \
        "/models/{model}" path, __VA_ARGS__                                                        \
    }
#define V2 "/v2/models/{model}"
#define REGION "/v2/systemsharedmemory/region/{region}"
#define V1 "/v1/models/{model}"

static const operation operations[] = {
    {"/", "A page for people", NULL, "text/html", false},
    {"/metrics", "Prometheus metrics", NULL, "text/plain", false},
    {"/openapi.json", "This document", NULL, "Object", false},
    {"/v2", "The server and its extensions", NULL, "ServerMetadata", false},
    {"/v2/health/live", "Is the server live?", NULL, "Live", false},
    {"/v2/health/ready", "Is the server ready?", NULL, "Ready", false},
    VERSIONED(V2, "", "Inputs and outputs of a model", NULL, "ModelMetadata", false),
    VERSIONED(V2, "/ready", "Is a model ready?", NULL, "Ready", false),
    VERSIONED(V2, "/config", "Configuration of a model, as Triton's", NULL, "Object", false),
    VERSIONED(V2, "/stats", "Statistics of a model", NULL, "Statistics", false),
    {"/v2/models/stats", "Statistics of all models", NULL, "Statistics", false},
    VERSIONED(V2, "/infer", "Inference (KServe)", "InferRequest", "InferResponse", true),
    {"/v2/repository/index", "All models", "IndexRequest", "Index", false},
    {"/v2/repository/models/{model}/load", "Load a model", "LoadRequest", "Object", false},
    {"/v2/repository/models/{model}/unload", "Unload a model", "UnloadRequest", "Object", false},
    {"/v2/profile", "Profile an accelerator", "ProfileRequest", "application/octet-stream", false},
    {"/v2/systemsharedmemory/status", "Regions of shared memory", NULL, "Regions", false},
    {REGION "/status", "A region", NULL, "Regions", false},
    {REGION "/register", "Register a region", "RegionRequest", "Any", true},
    {REGION "/unregister", "Forget a region", NULL, "Any", false},
    {"/v2/systemsharedmemory/unregister", "Forget all regions", NULL, "Any", false},
    {"/v2/cudasharedmemory/status", "Regions of devices' memory: none", NULL, "Any", false},
    {"/v2/cudasharedmemory/region/{region}/register", "Refused: there is no such memory", "Any",
     "Any", true},
    {"/v2/cudasharedmemory/region/{region}/unregister", "Refused: there is no such memory", NULL,
     "Any", false},
    LABELLED(V1, "", "State of the versions of a model", NULL, "ModelStatus", false),
    LABELLED(V1, "/metadata", "Signature of a model", NULL, "Object", false),
    LABELLED(V1, ":predict", "Inference (TensorFlow Serving)", "PredictRequest", "PredictResponse",
             true),
    LABELLED(V1, ":classify", "Refused, as for a model without that signature", "Object", "Object",
             false),
    LABELLED(V1, ":regress", "Refused, as for a model without that signature", "Object", "Object",
             false),
    {"/v1/models", "Models (OpenAI)", NULL, "ModelList", false},
    TEXT_ROUTE("/v1/embeddings", "Embeddings (OpenAI)", "EmbeddingsRequest", "Object", true),
    TEXT_ROUTE("/v1/rerank", "Rerank (Cohere, Jina)", "RerankDocumentsRequest", "Object", true),
    TEXT_ROUTE("/embed", "Embeddings (text-embeddings-inference)", "TextRequest", "Any", true),
    TEXT_ROUTE("/embed_all", "Embeddings of each token", "TextRequest", "Any", true),
    TEXT_ROUTE("/embed_sparse", "Sparse embeddings", "TextRequest", "Any", true),
    TEXT_ROUTE("/rerank", "Rerank", "RerankRequest", "Any", true),
    TEXT_ROUTE("/predict", "Classes of texts", "ClassifyRequest", "Any", true),
    TEXT_ROUTE("/similarity", "Similarity of texts", "SimilarityRequest", "Any", true),
    TEXT_ROUTE("/tokenize", "Tokens of texts", "TextRequest", "Any", true),
    TEXT_ROUTE("/decode", "Texts of tokens", "DecodeRequest", "Any", true),
    TEXT_ROUTE("/info", "What the model is", NULL, "Object", false),
    TEXT_ROUTE("/health", "Is the server ready?", NULL, "text/plain", false),
    {"/invocations", "Inference (SageMaker, Vertex AI)", "Invocation", "Object", true},
    {"/models/{model}/invoke", "Inference (SageMaker)", "Invocation", "Object", true},
    {"/models", "Loaded models", NULL, "Object", false},
    {"/models", "Load a model", "MultiLoad", "Object", true},
    {"/models/{model}", "A loaded model", NULL, "Object", false},
    {"/models/{model}", "Unload a model", NULL, "Object", false},
};
#define OPERATIONS ((int)(sizeof operations / sizeof *operations))

/* A path of the table as the route that it is: what is in braces becomes a name. */
static void find_route(const operation *o, int of_path, route *out)
{
    char path[200];
    size_t n = 0;
    for (const char *at = o->path; *at != 0; at++) {
        if (*at == '{') {
            at = strchr(at, '}');
            path[n++] = '1'; /* a name, or a version */
        } else {
            path[n++] = *at;
        }
    }
    route_parse(path, n, out);
    /* The second operation of a path is that of its other method. */
    if (of_path > 0)
        route_choose(out, out->kind == ROUTE_MULTI_LIST ? "POST" : "DELETE",
                     out->kind == ROUTE_MULTI_LIST ? 4 : 6);
}

static const char *method_of(const route *r)
{
    return r->verb == ROUTE_GET ? "get" : r->verb == ROUTE_POST ? "post" : "delete";
}

static void write_parameters(text_buffer *out, const char *path)
{
    const char *separator = "";
    text_buffer_put(out, ",\"parameters\":[");
    for (const char *at = path; (at = strchr(at, '{')) != NULL; at++) {
        size_t n = strcspn(at + 1, "}");
        bool is_version = n == 7 && memcmp(at + 1, "version", 7) == 0;
        text_buffer_format(out,
                           "%s{\"name\":\"%.*s\",\"in\":\"path\",\"required\":true,\"schema\":%s}",
                           separator, (int)n, at + 1,
                           is_version ? "{\"type\":\"integer\",\"minimum\":1}"
                                      : "{\"type\":\"string\",\"minLength\":1}");
        separator = ",";
    }
    text_buffer_put(out, "]");
}

static void write_schema(text_buffer *out, const char *name)
{
    text_buffer_format(out, "{\"schema\":{\"$ref\":\"#/components/schemas/%s\"}}", name);
}

static const char *error_schema(route_dialect dialect)
{
    switch (dialect) {
    case ROUTE_OPENAI:
        return "OpenAIError";
    case ROUTE_TEI:
        return "TextError";
    case ROUTE_COHERE:
        return "Object";
    default:
        return "Error";
    }
}

static void write_responses(text_buffer *out, const operation *o, const route *r)
{
    static const struct {
        const char *code, *what;
    } all[] = {{"401", "No key, or a wrong one"},
               {"403", "The key does not allow that"},
               {"404", "No such model or version"},
               {"503", "Not ready, or out of room"}},
      of_body[] = {{"400", "The body or a parameter is wrong"},
                   {"408", "The request did not arrive in time"},
                   {"413", "Over a limit"},
                   {"415", "Unsupported content type or encoding"},
                   {"422", "A text cannot become tokens"},
                   {"424", "The model is of another kind"},
                   {"429", "A queue or a quota is full"},
                   {"500", "A fault of the server or of the model"},
                   {"504", "The deadline passed, or cannot be met"}};
    bool is_type = strchr(o->response, '/') != NULL, is_ready = strcmp(o->response, "Ready") == 0;
    text_buffer_put(out, ",\"responses\":{\"200\":{\"description\":\"OK\",\"content\":{");
    if (is_type) {
        text_buffer_format(out, "\"%s\":{}", o->response);
    } else {
        text_buffer_put(out, "\"application/json\":");
        write_schema(out, o->response);
        if (r->kind == ROUTE_INFER || r->kind == ROUTE_INVOCATIONS)
            text_buffer_put(out, ",\"application/octet-stream\":{}");
        if (r->kind == ROUTE_INVOCATIONS)
            text_buffer_put(out, ",\"application/jsonlines\":{},\"text/csv\":{}");
    }
    text_buffer_put(out, "}}");
    size_t bodies = r->verb == ROUTE_GET ? 1 : sizeof of_body / sizeof *of_body;
    for (size_t i = 0; i < sizeof all / sizeof *all + bodies; i++) {
        size_t of_all = sizeof all / sizeof *all;
        const char *code = i < of_all ? all[i].code : of_body[i - of_all].code;
        const char *what = i < of_all ? all[i].what : of_body[i - of_all].what;
        text_buffer_format(
            out, ",\"%s\":{\"description\":\"%s\",\"content\":{\"application/json\":", code, what);
        write_schema(out, is_ready && i == of_all - 1 ? "Ready" : error_schema(r->dialect));
        text_buffer_put(out, "}}");
    }
    if (r->kind == ROUTE_MULTI_LOAD)
        text_buffer_put(out, ",\"409\":{\"description\":\"It is loaded already\"},"
                             "\"507\":{\"description\":\"No memory for it\"}");
    text_buffer_put(out, "}");
}

static void write_body(text_buffer *out, const operation *o)
{
    text_buffer_format(out, ",\"requestBody\":{\"required\":%s,\"content\":{\"application/json\":",
                       o->needs_body ? "true" : "false");
    write_schema(out, o->body);
    text_buffer_put(out, "}}");
}

/* A name for generated clients, of the method and the words of the path: get_v2_models_model_stats.
 */
static void write_operation_id(text_buffer *out, const char *method, const char *path)
{
    text_buffer_put(out, method);
    bool is_between = true;
    for (; *path != 0; path++) {
        if (!isalnum((unsigned char)*path)) {
            is_between = true;
            continue;
        }
        if (is_between)
            text_buffer_put(out, "_");
        is_between = false;
        text_buffer_append(out, path, 1);
    }
}

static void write_operation(text_buffer *out, const operation *o, const route *r)
{
    static const char *const scopes[] = {"infer", "read", "admin", "shared_memory"};
    access_right right = access_right_of(r->kind);
    text_buffer_format(out, "\"%s\":{\"operationId\":\"", method_of(r));
    write_operation_id(out, method_of(r), o->path);
    text_buffer_format(out, "\",\"tags\":[\"%s\"],\"summary\":", route_dialect_name(r->dialect));
    text_write_json_text(out, o->summary);
    text_buffer_put(out, ",\"description\":\"Right: ");
    text_buffer_put(out, right == ACCESS_INFER           ? scopes[0]
                         : right == ACCESS_READ          ? scopes[1]
                         : right == ACCESS_ADMIN         ? scopes[2]
                         : right == ACCESS_SHARED_MEMORY ? scopes[3]
                                                         : "none");
    /* Without keys everybody may run models and read: {} is that. */
    text_buffer_put(out, right == ACCESS_OPEN
                             ? "\",\"security\":[]"
                             : "\",\"security\":[{},{\"bearer\":[]},{\"key\":[]}]");
    write_parameters(out, o->path);
    if (o->body != NULL)
        write_body(out, o);
    write_responses(out, o, r);
    text_buffer_put(out, "}");
}

/* Of one dimension after the other, and of a number in the end. */
static void write_row(text_buffer *out, const model_tensor *t)
{
    int open = 0;
    for (int d = 1; d < t->rank; d++, open++) {
        bool is_fixed = d != t->sequence_axis && t->dims[d] > 0;
        text_buffer_format(out, "{\"type\":\"array\",\"minItems\":%lld,",
                           is_fixed ? (long long)t->dims[d] : 1ll);
        if (is_fixed)
            text_buffer_format(out, "\"maxItems\":%lld,", (long long)t->dims[d]);
        text_buffer_put(out, "\"items\":");
    }
    text_buffer_put(out, t->dtype == DTYPE_BYTES  ? "{\"type\":\"string\"}"
                         : t->dtype == DTYPE_BOOL ? "{\"type\":\"boolean\"}"
                         : dtype_is_float(t->dtype)
                             ? "{\"type\":\"number\",\"minimum\":-60000,\"maximum\":60000}"
                             : "{\"type\":\"integer\",\"minimum\":0,\"maximum\":100}");
    for (; open > 0; open--)
        text_buffer_put(out, "}");
}

/* What /invocations takes: rows of the only model, if it has one input; else objects. */
static void write_invocation(text_buffer *out, service *s)
{
    const model *found[2];
    int count = service_is_open(s) ? repository_ready_models(s->models, found, 2) : 0;
    text_buffer_put(out, ",\"Invocation\":{\"type\":\"object\"");
    if (count == 1 && found[0]->input_count == 1 && found[0]->inputs[0].batch_axis == 0) {
        text_buffer_put(out, ",\"required\":[\"instances\"],\"properties\":{\"instances\":{"
                             "\"type\":\"array\",\"minItems\":1,\"items\":");
        write_row(out, &found[0]->inputs[0]);
        text_buffer_put(out, "}}");
    }
    text_buffer_put(out, "}}");
    for (int i = 0; i < count && i < 2; i++)
        model_release(found[i]);
}

static void write_all(request *r, const void *about, text_buffer *out)
{
    (void)about;
    text_buffer_put(out, "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"Penstock\",\"version\":"
                         "\"" PENSTOCK_VERSION "\",\"description\":\"An inference server. gRPC is "
                         "described by reflection.\"},\"servers\":[{\"url\":\"/\"}],\"paths\":{");
    for (int i = 0, of_path = 0; i < OPERATIONS; i++) {
        route at;
        of_path =
            i > 0 && strcmp(operations[i - 1].path, operations[i].path) == 0 ? of_path + 1 : 0;
        find_route(&operations[i], of_path, &at);
        if (of_path == 0) {
            text_buffer_put(out, i > 0 ? "},\"" : "\"");
            text_buffer_put(out, operations[i].path);
            text_buffer_put(out, "\":{");
        } else {
            text_buffer_put(out, ",");
        }
        write_operation(out, &operations[i], &at);
    }
    text_buffer_put(out, "}},\"components\":{\"securitySchemes\":{"
                         "\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\"},"
                         "\"key\":{\"type\":\"apiKey\",\"in\":\"header\",\"name\":\"X-API-Key\"}},"
                         "\"schemas\":");
    size_t bytes = (size_t)(openapi_schemas_end - openapi_schemas_begin);
    while (openapi_schemas_begin[bytes - 1] != '}') /* one more follows */
        bytes--;
    text_buffer_append(out, openapi_schemas_begin, bytes - 1);
    write_invocation(out, request_service(r));
    text_buffer_put(out, "}}");
}

void serve_openapi(request *r)
{
    respond_shared(r, "application/json", NULL, write_all);
}

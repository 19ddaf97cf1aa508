#include "server/call/invocation.h"

#include <string.h>
#include <strings.h>

#include "base/large_memory.h"
#include "server/protocol/compress.h"
#include "server/protocol/rows/lines.h"

#define MODELS_MAX 64
#define BINARY_TYPE "application/vnd.sagemaker-triton.binary+json"
#define HEADER_SIZE ";json-header-size="

/* The type without its parameters. */
static bool is_type(request_text type, const char *wanted)
{
    size_t bytes = 0;
    while (bytes < type.bytes && type.data[bytes] != ';' && type.data[bytes] != ' ')
        bytes++;
    return bytes == strlen(wanted) && strncasecmp(type.data, wanted, bytes) == 0;
}

static bool is_lines_type(request_text type)
{
    return is_type(type, "application/jsonlines") || is_type(type, "application/jsonl") ||
           is_type(type, "application/x-jsonlines") || is_type(type, "application/x-ndjson");
}

bool invocation_find_header_size(request_text type, request_text *digits)
{
    size_t before = sizeof(BINARY_TYPE) - 1, mark = sizeof(HEADER_SIZE) - 1;
    if (type.data == NULL || !is_type(type, BINARY_TYPE))
        return false;
    const char *at = memmem(type.data + before, type.bytes - before, HEADER_SIZE, mark);
    if (at == NULL)
        return false;
    *digits = (request_text){at + mark, type.bytes - (size_t)(at + mark - type.data)};
    return true;
}

infer_rows_as invocation_rows_as(const request *r)
{
    request_text accept = request_header(r, "accept");
    if (accept.data == NULL || r->route.dialect != ROUTE_PLATFORM)
        return INFER_ROWS_JSON;
    return is_lines_type(accept)         ? INFER_ROWS_LINES
           : is_type(accept, "text/csv") ? INFER_ROWS_CSV
                                         : INFER_ROWS_JSON;
}

/* The only model that is ready, whatever its versions. */
static status find_only_model(request *r)
{
    const model *found[MODELS_MAX];
    int count = repository_ready_models(request_service(r)->models, found, MODELS_MAX);
    int held = count < MODELS_MAX ? count : MODELS_MAX;
    bool is_one = count > 0 && count <= MODELS_MAX;
    for (int i = 1; i < held && is_one; i++)
        is_one = strcmp(found[0]->name, found[i]->name) == 0;
    status failure = STATUS_OK;
    if (is_one)
        failure = route_set_name(&r->route, "name", found[0]->name, strlen(found[0]->name));
    for (int i = 0; i < held; i++)
        model_release(found[i]);
    if (is_one)
        return failure;
    return count == 0 ? status_fail(STATUS_UNAVAILABLE, "no model is ready")
                      : status_fail(STATUS_NOT_FOUND,
                                    "several models are served: set server.default_model, or ask "
                                    "/models/NAME/invoke");
}

static status find_model(request *r)
{
    const char *name = request_service(r)->options->default_model;
    if (r->route.name_bytes > 0)
        return STATUS_OK;
    if (name == NULL)
        return find_only_model(r);
    return route_set_name(&r->route, "server.default_model", name, strlen(name));
}

/* Is it KServe's? Both APIs have "inputs": KServe's is an array of objects with a name. */
static bool is_kserve(const request *r)
{
    arena memory = {0};
    json_scan scan;
    json_object o;
    json_string key;
    bool has_key, is_found = false, is_first = true, has_element = false;
    json_scan_init(&scan, r->body.data, r->body.bytes,
                   request_service(r)->options->limits.json_depth_max, false, &memory);
    status failure = json_open_object(&scan, &o);
    while (!failure && !(failure = json_object_next(&scan, &o, &key, &has_key)) && has_key) {
        if (json_string_is(key, "instances"))
            break;
        if (!json_string_is(key, "inputs")) {
            failure = json_skip_value(&scan);
            continue;
        }
        if (json_peek(&scan) != '[' || json_open_array(&scan) ||
            json_array_next(&scan, &is_first, &has_element) || !has_element)
            break;
        failure = json_peek(&scan) == '{' ? json_open_object(&scan, &o) : STATUS_NOT_FOUND;
        while (!failure && !is_found && !(failure = json_object_next(&scan, &o, &key, &has_key)) &&
               has_key) {
            is_found = json_string_is(key, "datatype");
            failure = is_found ? STATUS_OK : json_skip_value(&scan);
        }
        break;
    }
    arena_dispose(&memory);
    return is_found;
}

/* The body becomes that of a TensorFlow request, in memory of its own. */
static status take_lines(request *r, bool is_csv)
{
    size_t capacity = lines_capacity(r->body.bytes), bytes;
    request_text coding = request_header(r, "content-encoding");
    if (coding.data != NULL && content_coding_parse(coding.data, coding.bytes) != CODING_IDENTITY)
        return status_fail(STATUS_UNSUPPORTED_CODING, "lines and CSV are taken uncompressed");
    if (budget_add(&r->connection->held, capacity) != BUDGET_GRANTED)
        return status_fail(STATUS_UNAVAILABLE, "there is no room for the rows now");
    char *room = large_memory_grow(NULL, 0, capacity);
    if (room == NULL) {
        budget_subtract(&r->connection->held, capacity);
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the rows");
    }
    r->unpacked = room;
    r->unpacked_capacity = capacity;
    status failure = lines_to_instances(is_csv, r->body.data, r->body.bytes, room, &bytes);
    if (!failure)
        r->body = (request_text){room, bytes};
    return failure;
}

status invocation_open(request *r)
{
    request_text type = request_header(r, "content-type"), digits;
    bool has_json_bytes = request_header(r, "inference-header-content-length").data != NULL;
    bool is_binary = invocation_find_header_size(type, &digits) || has_json_bytes;
    status failure = find_model(r);
    if (failure)
        return failure;
    r->route.kind = ROUTE_TF_PREDICT;
    if (is_binary)
        r->route.kind = ROUTE_INFER;
    else if (type.data != NULL && is_type(type, "text/csv"))
        return take_lines(r, true);
    else if (type.data != NULL && is_lines_type(type))
        return take_lines(r, false);
    else if (type.data != NULL && !is_type(type, "application/json") &&
             !is_type(type, "application/x-www-form-urlencoded")) /* which curl -d sends */
        return status_fail(STATUS_UNSUPPORTED_CODING,
                           "content type \"%.*s\": application/json, application/jsonlines, "
                           "text/csv and " BINARY_TYPE " are supported",
                           (int)(type.bytes < 100 ? type.bytes : 100), type.data);
    else if (is_kserve(r))
        r->route.kind = ROUTE_INFER;
    return STATUS_OK;
}

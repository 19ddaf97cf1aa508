/* What a server and a model are, in the words of KServe, Triton and TensorFlow Serving. */
#include <stdlib.h>
#include <string.h>

#include "server/http/edge.h"
#include "server/options/version.h"
#include "server/protocol/text/text_write.h"

#define ENTRIES_MAX 1024

static void respond_json(exchange *e, text_buffer *body)
{
    respond_text(e, 200, "application/json", body->data, body->bytes);
    text_buffer_dispose(body);
}

static void put_string(text_buffer *out, const char *s)
{
    text_write_json_string(out, s, strlen(s));
}

static void write_dims(text_buffer *out, const model_tensor *t, int from)
{
    text_buffer_put(out, "[");
    for (int i = from; i < t->rank; i++) {
        text_buffer_put(out, i > from ? "," : "");
        bool varies = i == t->batch_axis || i == t->sequence_axis;
        text_write_i64(out, varies ? -1 : t->dims[i]);
    }
    text_buffer_put(out, "]");
}

static void write_server(text_buffer *out, const server *s)
{
    text_buffer_put(out,
                    "{\"name\":\"penstock\",\"version\":\"" PENSTOCK_VERSION "\",\"extensions\":["
                    "\"binary_tensor_data\",\"model_configuration\",\"parameters\",\"statistics\"");
    text_buffer_put(out, s->options->repository_control ? ",\"model_repository\"]}" : "]}");
}

static void write_tensors(text_buffer *out, const char *key, const model_tensor *tensors, int count)
{
    text_buffer_format(out, ",\"%s\":[", key);
    for (int i = 0; i < count; i++) {
        text_buffer_put(out, i ? ",{\"name\":" : "{\"name\":");
        put_string(out, tensors[i].name);
        text_buffer_format(out,
                           ",\"datatype\":\"%s\",\"shape\":", dtype_kserve_name(tensors[i].dtype));
        write_dims(out, &tensors[i], 0);
        text_buffer_put(out, "}");
    }
    text_buffer_put(out, "]");
}

static void write_model(text_buffer *out, const model *m, const server *s)
{
    repository_entry *entries = malloc(ENTRIES_MAX * sizeof(*entries));
    int count = entries ? repository_list(s->models, entries, ENTRIES_MAX) : 0;
    text_buffer_put(out, "{\"name\":");
    put_string(out, m->name);
    text_buffer_put(out, ",\"versions\":[");
    int written = 0;
    for (int i = 0; i < count && i < ENTRIES_MAX; i++) {
        if (strcmp(entries[i].name, m->name) == 0 && entries[i].state == MODEL_READY)
            text_buffer_format(out, "%s\"%lld\"", written++ ? "," : "",
                               (long long)entries[i].version);
    }
    free(entries);
    text_buffer_format(out, "],\"platform\":\"%s\"", m->platform);
    write_tensors(out, "inputs", m->inputs, m->input_count);
    write_tensors(out, "outputs", m->outputs, m->output_count);
    text_buffer_put(out, "}");
}

/* Names of Triton's model_config.proto. */
static const char *triton_type(dtype type)
{
    static const char *const names[DTYPE_COUNT] = {
        [DTYPE_BOOL] = "TYPE_BOOL",  [DTYPE_U8] = "TYPE_UINT8",    [DTYPE_U16] = "TYPE_UINT16",
        [DTYPE_U32] = "TYPE_UINT32", [DTYPE_U64] = "TYPE_UINT64",  [DTYPE_I8] = "TYPE_INT8",
        [DTYPE_I16] = "TYPE_INT16",  [DTYPE_I32] = "TYPE_INT32",   [DTYPE_I64] = "TYPE_INT64",
        [DTYPE_F16] = "TYPE_FP16",   [DTYPE_BF16] = "TYPE_BF16",   [DTYPE_F32] = "TYPE_FP32",
        [DTYPE_F64] = "TYPE_FP64",   [DTYPE_BYTES] = "TYPE_STRING"};
    return names[type];
}

/* Can clients add rows of their own? Then dims are given without the batch axis. */
static bool is_batched(const model *m)
{
    for (int i = 0; i < m->input_count; i++) {
        if (m->inputs[i].batch_axis != 0)
            return false;
    }
    return m->input_count > 0;
}

static void write_config_tensors(text_buffer *out, const char *key, const model_tensor *tensors,
                                 int count, bool batched)
{
    text_buffer_format(out, ",\"%s\":[", key);
    for (int i = 0; i < count; i++) {
        text_buffer_put(out, i ? ",{\"name\":" : "{\"name\":");
        put_string(out, tensors[i].name);
        text_buffer_format(out, ",\"data_type\":\"%s\",\"dims\":", triton_type(tensors[i].dtype));
        write_dims(out, &tensors[i], batched && tensors[i].batch_axis == 0 ? 1 : 0);
        if (tensors[i].is_optional)
            text_buffer_put(out, ",\"optional\":true");
        text_buffer_put(out, "}");
    }
    text_buffer_put(out, "]");
}

static void write_config(text_buffer *out, const model *m)
{
    bool batched = is_batched(m);
    text_buffer_put(out, "{\"name\":");
    put_string(out, m->name);
    text_buffer_format(out, ",\"platform\":\"%s\",\"backend\":\"penstock\"", m->platform);
    text_buffer_put(out, ",\"version_policy\":{\"latest\":{\"num_versions\":1}}");
    text_buffer_format(out, ",\"max_batch_size\":%lld",
                       batched ? (long long)m->batching.batch_max : 0ll);
    write_config_tensors(out, "input", m->inputs, m->input_count, batched);
    write_config_tensors(out, "output", m->outputs, m->output_count, batched);
    if (batched && m->batching.can_batch) {
        text_buffer_put(out, ",\"dynamic_batching\":{\"preferred_batch_size\":[");
        for (int i = 0; i < m->batch_bucket_count; i++)
            text_buffer_format(out, "%s%lld", i ? "," : "", (long long)m->batch_buckets[i]);
        text_buffer_format(out, "],\"max_queue_delay_microseconds\":%llu}",
                           (unsigned long long)(m->batching.queue_delay_ns / 1000));
    }
    text_buffer_put(out, "}");
}

static status find(const exchange *e, const model **out)
{
    const route *r = &e->route;
    repository *models = e->connection->loop->server->models;
    return r->label_bytes > 0 ? repository_find_label(models, r->name, r->name_bytes, r->label,
                                                      r->label_bytes, out)
                              : repository_find(models, r->name, r->name_bytes, r->version, out);
}

void serve_metadata(exchange *e)
{
    server *s = e->connection->loop->server;
    text_buffer body = {0};
    if (e->route.kind == ROUTE_SERVER_METADATA) {
        write_server(&body, s);
        respond_json(e, &body);
        return;
    }
    const model *m;
    status failure = find(e, &m);
    if (failure) {
        respond_status(e, failure, status_message());
        return;
    }
    if (e->route.kind == ROUTE_MODEL_CONFIG)
        write_config(&body, m);
    else
        write_model(&body, m, s);
    model_release(m);
    respond_json(e, &body);
}

static const char *tensorflow_state(model_state state)
{
    switch (state) {
    case MODEL_LOADING:
        return "LOADING";
    case MODEL_READY:
        return "AVAILABLE";
    default:
        return "END";
    }
}

static void serve_tensorflow_status(exchange *e, server *s)
{
    repository_entry *entries = malloc(ENTRIES_MAX * sizeof(*entries));
    int count = entries ? repository_list(s->models, entries, ENTRIES_MAX) : 0, written = 0;
    int64_t version = e->route.version;
    const model *m = NULL;
    if (e->route.label_bytes > 0 && !find(e, &m)) {
        version = m->version;
        model_release(m);
    } else if (e->route.label_bytes > 0) {
        free(entries);
        respond_error(e, 404, status_message());
        return;
    }
    text_buffer body = {0};
    text_buffer_put(&body, "{\"model_version_status\":[");
    for (int i = 0; i < count && i < ENTRIES_MAX; i++) {
        const repository_entry *entry = &entries[i];
        if (strcmp(entry->name, e->route.name) != 0 || (version && version != entry->version))
            continue;
        bool is_failed = entry->state == MODEL_FAILED;
        text_buffer_format(
            &body,
            "%s{\"version\":\"%lld\",\"state\":\"%s\",\"status\":{\"error_code\":\"%s\","
            "\"error_message\":",
            written++ ? "," : "", (long long)entry->version, tensorflow_state(entry->state),
            is_failed ? "UNKNOWN" : "OK");
        put_string(&body, is_failed ? entry->reason : "");
        text_buffer_put(&body, "}}");
    }
    text_buffer_put(&body, "]}");
    free(entries);
    if (written > 0) {
        respond_json(e, &body);
        return;
    }
    text_buffer_dispose(&body);
    respond_error(e, 404, "no such model or version");
}

/* A signature's tensor, as SignatureDef is written in JSON. */
static void write_signature(text_buffer *out, const char *key, const model_tensor *tensors,
                            int count)
{
    text_buffer_format(out, "\"%s\":{", key);
    for (int i = 0; i < count; i++) {
        const model_tensor *t = &tensors[i];
        text_buffer_put(out, i ? "," : "");
        put_string(out, t->name);
        text_buffer_format(out, ":{\"dtype\":\"%s\",\"name\":", dtype_tensorflow_name(t->dtype));
        put_string(out, t->name);
        text_buffer_put(out, ",\"tensor_shape\":{\"unknown_rank\":false,\"dim\":[");
        for (int d = 0; d < t->rank; d++) {
            bool varies = d == t->batch_axis || d == t->sequence_axis;
            text_buffer_format(out, "%s{\"size\":\"%lld\",\"name\":\"\"}", d ? "," : "",
                               varies ? -1ll : (long long)t->dims[d]);
        }
        text_buffer_put(out, "]}}");
    }
    text_buffer_put(out, "}");
}

void serve_tensorflow_metadata(exchange *e)
{
    server *s = e->connection->loop->server;
    if (e->route.kind == ROUTE_TF_STATUS) {
        serve_tensorflow_status(e, s);
        return;
    }
    const model *m;
    status failure = find(e, &m);
    if (failure) {
        respond_status(e, failure, status_message());
        return;
    }
    text_buffer body = {0};
    text_buffer_put(&body, "{\"model_spec\":{\"name\":");
    put_string(&body, m->name);
    text_buffer_format(&body, ",\"signature_name\":\"\",\"version\":\"%lld\"},",
                       (long long)m->version);
    text_buffer_put(&body,
                    "\"metadata\":{\"signature_def\":{\"signature_def\":{\"serving_default\":{");
    write_signature(&body, "inputs", m->inputs, m->input_count);
    text_buffer_put(&body, ",");
    write_signature(&body, "outputs", m->outputs, m->output_count);
    text_buffer_put(&body, ",\"method_name\":\"tensorflow/serving/predict\"}}}}}");
    model_release(m);
    respond_json(e, &body);
}

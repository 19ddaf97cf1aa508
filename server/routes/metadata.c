/* What the server and its models are: metadata as KServe has it, configuration as Triton has it. */
#include <stdlib.h>
#include <string.h>

#include "server/options/version.h"
#include "server/protocol/signature.h"
#include "server/protocol/text/text_write.h"
#include "server/request/respond.h"
#include "server/routes/routes.h"

static void write_dims(text_buffer *out, const model_tensor *t, int from)
{
    text_buffer_put(out, "[");
    for (int i = from; i < t->rank; i++) {
        text_buffer_put(out, i > from ? "," : "");
        text_write_i64(out, signature_dim(t, i));
    }
    text_buffer_put(out, "]");
}

static void write_server(text_buffer *out, const request *r)
{
    text_buffer_put(out,
                    "{\"name\":\"penstock\",\"version\":\"" PENSTOCK_VERSION "\",\"extensions\":["
                    "\"binary_tensor_data\",\"model_configuration\",\"parameters\",\"statistics\"");
    text_buffer_put(out, (r->rights & ACCESS_ADMIN) != 0 ? ",\"model_repository\"" : "");
    text_buffer_put(out,
                    (r->rights & ACCESS_SHARED_MEMORY) != 0 ? ",\"system_shared_memory\"" : "");
    text_buffer_put(out, "]}");
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

/* A list of tensors. Metadata has `datatype` and `shape`, with every dimension; a configuration has
 * `data_type` and `dims`, without the batch dimension if `is_batched`. */
static void write_tensors(text_buffer *out, const char *key, const model_tensor *tensors, int count,
                          bool is_config, bool is_batched)
{
    text_buffer_format(out, ",\"%s\":[", key);
    for (int i = 0; i < count; i++) {
        const model_tensor *t = &tensors[i];
        text_buffer_put(out, i ? ",{\"name\":" : "{\"name\":");
        text_write_json_text(out, t->name);
        if (is_config)
            text_buffer_format(out, ",\"data_type\":\"%s\",\"dims\":", triton_type(t->dtype));
        else
            text_buffer_format(out, ",\"datatype\":\"%s\",\"shape\":", dtype_kserve_name(t->dtype));
        write_dims(out, t, is_batched && t->batch_axis == 0 ? 1 : 0);
        text_buffer_put(out, is_config && t->is_optional ? ",\"optional\":true}" : "}");
    }
    text_buffer_put(out, "]");
}

static void write_model(text_buffer *out, const model *m, const service *s)
{
    int count;
    repository_entry *entries = repository_list_all(s->models, &count);
    text_buffer_put(out, "{\"name\":");
    text_write_json_text(out, m->name);
    text_buffer_put(out, ",\"versions\":[");
    int written = 0;
    for (int i = 0; i < count; i++) {
        if (strcmp(entries[i].name, m->name) == 0 && entries[i].state == MODEL_READY)
            text_buffer_format(out, "%s\"%lld\"", written++ ? "," : "",
                               (long long)entries[i].version);
    }
    free(entries);
    text_buffer_format(out, "],\"platform\":\"%s\"", m->platform);
    model_tensor inputs[SIGNATURE_INPUTS_MAX];
    write_tensors(out, "inputs", inputs, signature_inputs(m, inputs), false, false);
    write_tensors(out, "outputs", m->outputs, m->output_count, false, false);
    text_buffer_put(out, "}");
}

static void write_config(text_buffer *out, const model *m)
{
    bool batched = signature_is_batched(m);
    text_buffer_put(out, "{\"name\":");
    text_write_json_text(out, m->name);
    text_buffer_format(out, ",\"platform\":\"%s\",\"backend\":\"penstock\"", m->platform);
    text_buffer_format(out, ",\"version_policy\":%s",
                       m->version_policy ? m->version_policy : "{\"all\":{}}");
    text_buffer_format(out, ",\"max_batch_size\":%lld",
                       batched ? (long long)m->batching.batch_max : 0ll);
    model_tensor inputs[SIGNATURE_INPUTS_MAX];
    write_tensors(out, "input", inputs, signature_inputs(m, inputs), true, batched);
    write_tensors(out, "output", m->outputs, m->output_count, true, batched);
    if (batched && m->batching.can_batch) {
        text_buffer_put(out, ",\"dynamic_batching\":{\"preferred_batch_size\":[");
        for (int i = 0; i < m->batch_bucket_count; i++)
            text_buffer_format(out, "%s%lld", i ? "," : "", (long long)m->batch_buckets[i]);
        text_buffer_format(out, "],\"max_queue_delay_microseconds\":%llu}",
                           (unsigned long long)(m->batching.queue_delay_ns / 1000));
    }
    text_buffer_put(out, "}");
}

void serve_metadata(request *r)
{
    service *s = request_service(r);
    text_buffer body = {0};
    if (r->route.kind == ROUTE_SERVER_METADATA) {
        write_server(&body, r);
        respond_json(r, &body);
        return;
    }
    const model *m;
    status failure = request_find_model(r, &m);
    if (failure) {
        respond_status(r, failure, status_message());
        return;
    }
    if (r->route.kind == ROUTE_MODEL_CONFIG)
        write_config(&body, m);
    else
        write_model(&body, m, s);
    model_release(m);
    respond_json(r, &body);
}

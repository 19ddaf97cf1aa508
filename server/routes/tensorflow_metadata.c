/* What a model is, as TensorFlow Serving has it: the state of its versions, and its signature. */
#include <stdlib.h>
#include <string.h>

#include "server/protocol/text/text_write.h"
#include "server/request/authorize.h"
#include "server/request/respond.h"
#include "server/routes/routes.h"
#include "server/routes/text_models.h"

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

/* KServe's V1 protocol asks for these two. */
static void write_ready(text_buffer *out, const repository_entry *entries, int count,
                        const char *name, int64_t version)
{
    bool is_ready = false;
    for (int i = 0; i < count; i++)
        is_ready |= strcmp(entries[i].name, name) == 0 && entries[i].state == MODEL_READY &&
                    (version == 0 || version == entries[i].version);
    text_buffer_put(out, ",\"name\":");
    text_write_json_text(out, name);
    text_buffer_format(out, ",\"ready\":%s", is_ready ? "true" : "false");
}

static void serve_tensorflow_status(request *r, service *s)
{
    int count, written = 0;
    repository_entry *entries = repository_list_all(s->models, &count);
    int64_t version = r->route.version;
    const model *m = NULL;
    if (r->route.label_bytes > 0 && !request_find_model(r, &m)) {
        version = m->version;
        model_release(m);
    } else if (r->route.label_bytes > 0) {
        free(entries);
        respond_error(r, 404, status_message());
        return;
    }
    text_buffer body = {0};
    text_buffer_put(&body, "{");
    text_models_write_members(&body, s, r->route.name);
    write_ready(&body, entries, count, r->route.name, version);
    text_buffer_put(&body, ",\"model_version_status\":[");
    for (int i = 0; i < count; i++) {
        const repository_entry *entry = &entries[i];
        if (strcmp(entry->name, r->route.name) != 0 || (version && version != entry->version))
            continue;
        bool is_failed = entry->state == MODEL_FAILED;
        text_buffer_format(
            &body,
            "%s{\"version\":\"%lld\",\"state\":\"%s\",\"status\":{\"error_code\":\"%s\","
            "\"error_message\":",
            written++ ? "," : "", (long long)entry->version, tensorflow_state(entry->state),
            is_failed ? "UNKNOWN" : "OK");
        text_write_json_text(&body, is_failed ? entry->reason : "");
        text_buffer_put(&body, "}}");
    }
    text_buffer_put(&body, "]}");
    free(entries);
    if (written > 0) {
        respond_json(r, &body);
        return;
    }
    text_buffer_dispose(&body);
    respond_error(r, 404, "no such model or version");
}

/* A signature's tensor, as SignatureDef is written in JSON. */
static void write_signature(text_buffer *out, const char *key, const model_tensor *tensors,
                            int count)
{
    text_buffer_format(out, "\"%s\":{", key);
    for (int i = 0; i < count; i++) {
        const model_tensor *t = &tensors[i];
        text_buffer_put(out, i ? "," : "");
        text_write_json_text(out, t->name);
        text_buffer_format(out, ":{\"dtype\":\"%s\",\"name\":", dtype_tensorflow_name(t->dtype));
        text_write_json_text(out, t->name);
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

void serve_tensorflow_metadata(request *r)
{
    service *s = request_service(r);
    if (r->route.kind == ROUTE_TF_STATUS) {
        serve_tensorflow_status(r, s);
        return;
    }
    const model *m;
    status failure = request_find_model(r, &m);
    if (failure) {
        respond_status(r, failure, status_message());
        return;
    }
    text_buffer body = {0};
    text_buffer_put(&body, "{\"model_spec\":{\"name\":");
    text_write_json_text(&body, m->name);
    text_buffer_format(&body, ",\"signature_name\":\"\",\"version\":\"%lld\"},",
                       (long long)m->version);
    text_buffer_put(&body,
                    "\"metadata\":{\"signature_def\":{\"signature_def\":{\"serving_default\":{");
    write_signature(&body, "inputs", m->inputs, m->input_count);
    text_buffer_put(&body, ",");
    write_signature(&body, "outputs", m->outputs, m->output_count);
    text_buffer_put(&body, ",\"method_name\":\"tensorflow/serving/predict\"}}}}}");
    model_release(m);
    respond_json(r, &body);
}

void serve_other_signature(request *r)
{
    const model *m;
    bool is_classify = r->route.kind == ROUTE_TF_CLASSIFY;
    if (!authorize_find_model(r, &m))
        return;
    model_release(m);
    respond_error(r, 400,
                  is_classify ? "Expected classification signature method_name to be "
                                "tensorflow/serving/classify. Was: tensorflow/serving/predict"
                              : "Expected regression signature method_name to be "
                                "tensorflow/serving/regress. Was: tensorflow/serving/predict");
}

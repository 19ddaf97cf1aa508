/* Which models there are, as OpenAI's clients ask for it, and what text-embeddings-inference says
 * of itself. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "models/text/model_text.h"
#include "server/infer/language.h"
#include "server/options/version.h"
#include "server/protocol/language/language.h"
#include "server/protocol/text/text_write.h"
#include "server/request/respond.h"
#include "server/routes/routes.h"
#include "server/routes/text_models.h"

void text_models_write_members(text_buffer *out, const service *s, const char *name)
{
    uint64_t created_s = (clock_wall_ns() - (clock_now_ns() - s->start_ns)) / 1000000000;
    text_buffer_put(out, "\"id\":");
    text_write_json_text(out, name);
    text_buffer_put(out, ",\"object\":\"model\",\"created\":");
    text_write_u64(out, created_s);
    text_buffer_put(out, ",\"owned_by\":\"penstock\"");
}

void serve_models(request *r)
{
    service *s = request_service(r);
    const model *ready[MODEL_INDEX_MAX];
    int count = repository_ready_models(s->models, ready, MODEL_INDEX_MAX);
    text_buffer body = {0};
    count = count < MODEL_INDEX_MAX ? count : MODEL_INDEX_MAX;
    text_buffer_put(&body, "{\"object\":\"list\",\"data\":[");
    for (int i = 0, written = 0; i < count; i++) {
        /* Versions of one name follow each other. */
        if (i > 0 && strcmp(ready[i]->name, ready[i - 1]->name) == 0)
            continue;
        text_buffer_put(&body, written++ > 0 ? ",{" : "{");
        text_models_write_members(&body, s, ready[i]->name);
        text_buffer_put(&body, "}");
    }
    text_buffer_put(&body, "]}");
    for (int i = 0; i < count; i++)
        model_release(ready[i]);
    respond_json(r, &body);
}

static void write_labels(text_buffer *out, const model_text *t)
{
    text_buffer_put(out, "{\"id2label\":{");
    for (int i = 0; i < t->label_count; i++) {
        text_buffer_format(out, "%s\"%d\":", i > 0 ? "," : "", i);
        text_write_json_text(out, t->labels[i]);
    }
    text_buffer_put(out, "},\"label2id\":{");
    for (int i = 0; i < t->label_count; i++) {
        text_buffer_put(out, i > 0 ? "," : "");
        text_write_json_text(out, t->labels[i]);
        text_buffer_format(out, ":%d", i);
    }
    text_buffer_put(out, "}}");
}

static void write_type(text_buffer *out, const model *m)
{
    const model_text *t = m->text;
    bool is_reranker = t->logits >= 0 && m->outputs[t->logits].dims[1] == 1;
    if (t->logits >= 0 || t->token_logits >= 0 || t->start_logits >= 0) {
        text_buffer_put(out, is_reranker ? "{\"reranker\":" : "{\"classifier\":");
        write_labels(out, t);
    } else {
        const char *pooling = t->words >= 0      ? "splade"
                              : t->sentence >= 0 ? "model"
                              : t->pools_first   ? "cls"
                                                 : "mean";
        text_buffer_format(out, "{\"embedding\":{\"pooling\":\"%s\"}", pooling);
    }
    text_buffer_put(out, "}");
}

static const char *dtype_of(device_precision precision)
{
    return precision == DEVICE_INT8 ? "int8" : precision == DEVICE_BF16 ? "bfloat16" : "float32";
}

static void write_info(text_buffer *out, const request *r, const model *m)
{
    const server_options *o = request_service(r)->options;
    long long tokens_max = (long long)m->text->tokens_max;
    text_buffer_put(out, "{\"model_id\":");
    text_write_json_text(out, m->name);
    text_buffer_format(out, ",\"model_sha\":null,\"model_dtype\":\"%s\",\"model_type\":",
                       dtype_of(m->on_device.precision));
    write_type(out, m);
    text_buffer_format(out,
                       ",\"max_concurrent_requests\":%lld,\"max_input_length\":%lld,"
                       "\"max_batch_tokens\":%lld,\"max_batch_requests\":%lld,"
                       "\"max_client_batch_size\":%d,\"auto_truncate\":false,"
                       "\"tokenization_workers\":%d,\"version\":\"" PENSTOCK_VERSION
                       "\",\"sha\":null,\"docker_label\":null}",
                       (long long)m->batching.queue_rows_max, tokens_max,
                       (long long)m->batching.batch_max * tokens_max,
                       (long long)m->batching.batch_max, o->limits.text_items_max,
                       request_service(r)->loop_count);
}

static status find(request *r, const model **out)
{
    status failure =
        r->route.name_bytes > 0 ? request_find_model(r, out) : language_default_model(r, out);
    if (failure || (*out)->text != NULL)
        return failure;
    failure = status_fail(STATUS_UNSUPPORTED, "model \"%s\" takes no text: %s", (*out)->name,
                          (*out)->text_note);
    model_release(*out);
    return failure;
}

void serve_text_info(request *r)
{
    const model *m;
    status failure = find(r, &m);
    if (failure) {
        respond_status(r, failure, status_message());
        return;
    }
    text_buffer body = {0};
    write_info(&body, r, m);
    model_release(m);
    respond_json(r, &body);
}

void serve_text_health(request *r)
{
    service *s = request_service(r);
    if (atomic_load(&s->is_draining) || !repository_is_ready(s->models, NULL, 0))
        respond_error(r, 503, "unhealthy");
    else
        respond_text(r, 200, "text/plain", "", 0);
}

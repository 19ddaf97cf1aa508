/* /models: what SageMaker asks of an image that serves the many models of one endpoint. It unpacks
 * each below the repository's folder, as NAME/model. */
#include <stdlib.h>
#include <string.h>

#include "server/protocol/text/text_write.h"
#include "server/request/model_change.h"
#include "server/request/respond.h"
#include "server/routes/fields.h"
#include "server/routes/routes.h"

#define FOLDER "/opt/ml/models/"
#define CODE_CONFLICT 409   /* it is loaded already */
#define CODE_NO_STORAGE 507 /* SageMaker unloads another model and asks again */
#define MODELS_MAX 1024

static void write_entry(text_buffer *out, const char *name)
{
    text_buffer_put(out, "{\"modelName\":");
    text_write_json_text(out, name);
    text_buffer_put(out, ",\"modelUrl\":\"" FOLDER);
    text_buffer escaped = {0};
    text_write_json_text(&escaped, name);
    if (escaped.bytes > 2) /* without its quotes */
        text_buffer_append(out, escaped.data + 1, escaped.bytes - 2);
    out->is_broken |= escaped.is_broken;
    text_buffer_dispose(&escaped);
    text_buffer_put(out, "/model\"}");
}

/* Versions of one name follow each other. */
static void write_list(request *r, const void *about, text_buffer *out)
{
    const model **models = malloc(MODELS_MAX * sizeof(*models));
    repository *all = request_service(r)->models;
    int count = models ? repository_ready_models(all, models, MODELS_MAX) : 0;
    const char *last = NULL;
    (void)about;
    count = count < MODELS_MAX ? count : MODELS_MAX;
    text_buffer_put(out, "{\"models\":[");
    for (int i = 0; i < count; i++) {
        if (last != NULL && strcmp(last, models[i]->name) == 0)
            continue;
        text_buffer_put(out, last != NULL ? "," : "");
        write_entry(out, models[i]->name);
        last = models[i]->name;
    }
    text_buffer_put(out, "]}");
    for (int i = 0; i < count; i++)
        model_release(models[i]);
    free(models);
}

static void serve_one(request *r)
{
    const model *m;
    status failure = request_find_model(r, &m);
    if (failure) {
        respond_error(r, 404, status_message());
        return;
    }
    text_buffer body = {0};
    write_entry(&body, m->name);
    model_release(m);
    respond_json(r, &body);
}

static void respond_changed(request *r, status result, const char *error)
{
    if (result == STATUS_OK)
        respond_text(r, 200, "application/json", "{}", 2);
    else if (result == STATUS_OUT_OF_MEMORY)
        respond_error(r, CODE_NO_STORAGE, error);
    else
        respond_status(r, result, error);
}

typedef struct load_body {
    json_string name, url;
} load_body;

static status read_load_field(json_scan *s, json_string key, void *into)
{
    load_body *body = into;
    return json_string_is(key, "model_name") ? json_read_string(s, &body->name)
           : json_string_is(key, "url")      ? json_read_string(s, &body->url)
                                             : json_skip_value(s);
}

/* {"model_name": NAME, "url": FOLDER NAME "/model"}: the name becomes the route's. */
static status read_load(request *r)
{
    arena memory = {0};
    load_body body = {{NULL, 0}, {NULL, 0}};
    status failure = request_read_fields(r, &memory, read_load_field, &body);
    json_string name = body.name, url = body.url;
    if (!failure && (name.text == NULL || url.text == NULL))
        failure = status_fail(STATUS_INVALID_ARGUMENT, "\"model_name\" or \"url\" is missing");
    if (!failure && memchr(name.text, 0, name.bytes) != NULL)
        failure = status_fail(STATUS_INVALID_ARGUMENT, "\"model_name\" has a zero byte");
    if (!failure)
        failure = route_set_name(&r->route, "model_name", name.text, name.bytes);
    if (!failure && memmem(url.text, url.bytes, name.text, name.bytes) == NULL)
        failure = status_fail(STATUS_INVALID_ARGUMENT,
                              "\"url\" is not in the folder of the model: models are loaded from "
                              "the repository's folder, as NAME/model");
    arena_dispose(&memory);
    return failure;
}

static void serve_load(request *r)
{
    const model *m;
    status failure = read_load(r);
    if (!failure && !request_find_model(r, &m)) {
        model_release(m);
        respond_error(r, CODE_CONFLICT, "the model is loaded already");
        return;
    }
    if (!failure)
        failure = model_change_begin(r, true, NULL, respond_changed);
    if (failure)
        respond_status(r, failure, status_message());
}

void serve_multi_models(request *r)
{
    status failure = STATUS_OK;
    if (r->route.kind == ROUTE_MULTI_LIST)
        respond_shared(r, "application/json", NULL, write_list);
    else if (r->route.kind == ROUTE_MULTI_STATUS)
        serve_one(r);
    else if (r->route.kind == ROUTE_MULTI_LOAD)
        serve_load(r);
    else
        failure = model_change_begin(r, false, NULL, respond_changed);
    if (failure)
        respond_status(r, failure, status_message());
}

#include "loadtest/discover.h"

#include "loadtest/fetch.h"
#include "loadtest/wire/memory.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool discover_path(const char *path, char *model, size_t model_bytes, source_format *format)
{
    bool kserve = strncmp(path, "/v2/models/", 11) == 0;
    if (!kserve && strncmp(path, "/v1/models/", 11) != 0)
        return false;
    const char *name = path + 11;
    size_t bytes = strcspn(name, kserve ? "/?" : "/:?");
    size_t length = strcspn(path, "?");
    const char *suffix = kserve ? "/infer" : ":predict";
    size_t suffix_bytes = strlen(suffix);
    if (bytes == 0 || bytes >= model_bytes || length < suffix_bytes ||
        memcmp(path + length - suffix_bytes, suffix, suffix_bytes) != 0)
        return false;
    snprintf(model, model_bytes, "%.*s", (int)bytes, name);
    *format = kserve ? SOURCE_KSERVE : SOURCE_TENSORFLOW;
    return true;
}

/* A name as one segment of a path (RFC 3986). */
static void append_segment(text_buffer *b, const char *name)
{
    for (const unsigned char *at = (const unsigned char *)name; *at != 0; at++) {
        if (isalnum(*at) || strchr("-._~", *at) != NULL)
            text_buffer_append(b, at, 1);
        else
            text_buffer_format(b, "%%%02X", *at);
    }
}

static char *model_path(const char *root, const char *model, const char *version,
                        const char *suffix)
{
    text_buffer b = {0};
    text_buffer_put(&b, root);
    append_segment(&b, model);
    if (version != NULL) {
        text_buffer_put(&b, "/versions/");
        append_segment(&b, version);
    }
    text_buffer_put(&b, suffix);
    return (char *)text_buffer_string(&b);
}

/* The only model that the server lists. */
static status only_model(const options *o, const target *t, char **model)
{
    text_buffer reply = {0};
    int code;
    status s =
        fetch(t, "POST", "/v2/repository/index", "{}", o->headers, o->header_count, &code, &reply);
    if (s)
        goto done;
    json_t *list = json_loadb(reply.data ? reply.data : "", reply.bytes, 0, NULL), *entry;
    text_buffer names = {0};
    const char *only = NULL;
    size_t i, count = 0;
    json_array_foreach(list, i, entry)
    {
        const char *name = json_string_value(json_object_get(entry, "name"));
        if (name == NULL || (only != NULL && strcmp(name, only) == 0))
            continue; /* another version of it */
        only = name;
        text_buffer_format(&names, "%s%s", count++ ? ", " : "", name);
    }
    if (count == 1)
        *model = memory_copy_string(only, strlen(only));
    else if (count == 0)
        s = status_fail(STATUS_NOT_FOUND, "the server does not list its models: choose one with "
                                          "--model");
    else
        s = status_fail(STATUS_NOT_FOUND,
                        "the server has several models: choose one with "
                        "--model: %s",
                        text_buffer_string(&names));
    text_buffer_dispose(&names);
    json_decref(list);
done:
    text_buffer_dispose(&reply);
    return s;
}

static status parse_metadata(discovery *d, const text_buffer *reply)
{
    const char *text = reply->data ? reply->data : "";
    return d->format == SOURCE_TENSORFLOW
               ? metadata_parse_tensorflow(&d->metadata, text, reply->bytes)
               : metadata_parse_kserve(&d->metadata, text, reply->bytes);
}

/* Fetches the metadata in the dialect of d->format; `*found` is false for any reply but 200. */
static status fetch_metadata(discovery *d, const options *o, const target *t, int *code,
                             text_buffer *reply)
{
    bool tensorflow = d->format == SOURCE_TENSORFLOW;
    char *path = model_path(tensorflow ? "/v1/models/" : "/v2/models/", d->model, o->model_version,
                            tensorflow ? "/metadata" : "");
    text_buffer_clear(reply);
    status s = fetch(t, "GET", path, NULL, o->headers, o->header_count, code, reply);
    free(path);
    return s;
}

static status find_metadata(discovery *d, const options *o, const target *t)
{
    text_buffer reply = {0};
    int code = 0;
    bool any = o->format == FORMAT_AUTO;
    status s = fetch_metadata(d, o, t, &code, &reply);
    if (!s && code != 200 && any) {
        d->format = SOURCE_TENSORFLOW;
        text_buffer first = reply;
        int first_code = code;
        reply = (text_buffer){0};
        s = fetch_metadata(d, o, t, &code, &reply);
        if (!s && code != 200) { /* keep the first reply: it says more */
            text_buffer_dispose(&reply);
            reply = first;
            code = first_code;
            d->format = SOURCE_KSERVE;
        } else {
            text_buffer_dispose(&first);
        }
    }
    if (!s && code != 200)
        s = status_fail(STATUS_NOT_FOUND, "the server has no metadata of model %s: %d %.*s",
                        d->model, code, (int)(reply.bytes < 200 ? reply.bytes : 200),
                        reply.data ? reply.data : "");
    if (!s)
        s = parse_metadata(d, &reply);
    d->has_metadata = !s;
    text_buffer_dispose(&reply);
    return s;
}

status discover(discovery *d, const options *o, const target *t)
{
    static const source_format formats[] = {SOURCE_KSERVE,     SOURCE_KSERVE, SOURCE_KSERVE_BINARY,
                                            SOURCE_TENSORFLOW, SOURCE_OPENAI, SOURCE_TEI,
                                            SOURCE_RAW};
    *d = (discovery){.format = formats[o->format], .method = o->method ? o->method : "POST"};
    char model[256];
    source_format of_path;
    bool bodies = o->data_file != NULL || o->text_file != NULL; /* whole bodies need no metadata */
    bool plain = strcmp(t->path, "/") != 0;
    status s = STATUS_OK;
    if (plain && (o->format == FORMAT_RAW || o->model == NULL)) {
        d->path = memory_copy_string(t->path, strlen(t->path));
        if (!discover_path(t->path, model, sizeof model, &of_path) || o->method != NULL) {
            d->format = SOURCE_RAW;
            if (o->method == NULL && !bodies)
                d->method = "GET";
            if (o->ids_file != NULL)
                s = status_fail(STATUS_INVALID_ARGUMENT, "--ids needs a model, not just a path");
            return s;
        }
        d->model = memory_copy_string(model, strlen(model));
        if (o->format == FORMAT_AUTO || of_path == SOURCE_TENSORFLOW)
            d->format = of_path;
    } else if (o->model != NULL) {
        d->model = memory_copy_string(o->model, strlen(o->model));
    } else if (bodies && o->format == FORMAT_RAW) {
        d->path = memory_copy_string("/", 1);
        return STATUS_OK;
    } else {
        s = only_model(o, t, &d->model);
        if (s)
            return s;
    }
    if (!bodies || o->format == FORMAT_AUTO)
        s = find_metadata(d, o, t);
    if (bodies && d->path != NULL)
        s = STATUS_OK; /* path and bodies are given: no metadata is needed */
    if (!s && d->path == NULL) {
        bool tensorflow = d->format == SOURCE_TENSORFLOW;
        d->path = d->format == SOURCE_OPENAI ? memory_copy_string("/v1/embeddings", 14)
                  : d->format == SOURCE_TEI
                      ? model_path("/models/", d->model, NULL, "/embed")
                      : model_path(tensorflow ? "/v1/models/" : "/v2/models/", d->model,
                                   o->model_version, tensorflow ? ":predict" : "/infer");
    }
    return s;
}

void discovery_dispose(discovery *d)
{
    free(d->path);
    free(d->model);
    metadata_dispose(&d->metadata);
    *d = (discovery){0};
}

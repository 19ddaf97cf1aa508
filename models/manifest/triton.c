#include "models/manifest/triton.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file_reader.h"
#include "models/manifest/manifest.h"
#include "models/manifest/pbtxt.h"

#define FILE_BYTES_MAX ((size_t)1 << 20)

/* Fields that say what the model's file says, too, or that mean nothing here. */
static const char *const ignored[] = {"name",  "platform", "backend",     "runtime",
                                      "input", "output",   "metric_tags", NULL};
/* The other fields of ModelConfig: they would change what is served. */
static const char *const known[] = {"default_model_filename",
                                    "instance_group",
                                    "model_warmup",
                                    "optimization",
                                    "parameters",
                                    "cc_model_filenames",
                                    "batch_input",
                                    "batch_output",
                                    "sequence_batching",
                                    "ensemble_scheduling",
                                    "response_cache",
                                    "model_operations",
                                    "model_transaction_policy",
                                    "model_repository_agents",
                                    "model_metrics",
                                    NULL};

typedef struct conversion {
    json_t *out;
    char *unused;
} conversion;

static bool is_one_of(const char *const *names, const char *name)
{
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static void note_unused(conversion *c, const char *prefix, const char *name)
{
    size_t used = strlen(c->unused);
    snprintf(c->unused + used, TRITON_UNUSED_BYTES - used, "%s%s%s", used ? ", " : "", prefix,
             name);
}

static void set(conversion *c, const char *key, json_t *value)
{
    json_object_set(c->out, key, value); /* not new: it keeps its reference */
}

/* 0 is Triton's word for a model whose requests cannot be batched. */
static void take_batch_size(conversion *c, json_t *value)
{
    if (json_is_integer(value) && json_integer_value(value) == 0)
        set(c, "can_batch", json_false());
    else
        set(c, "batch_max", value);
}

static void take_queue_policy(conversion *c, json_t *policy)
{
    const char *key;
    json_t *value;
    json_object_foreach(policy, key, value)
    {
        bool is_default = json_is_integer(value) && json_integer_value(value) == 0;
        if (strcmp(key, "max_queue_size") != 0)
            note_unused(c, "dynamic_batching.default_queue_policy.", key);
        else if (!is_default)
            set(c, "queue_rows_max", value);
    }
}

static void take_batching(conversion *c, json_t *batching)
{
    const char *key;
    json_t *value;
    json_object_foreach(batching, key, value)
    {
        if (strcmp(key, "max_queue_delay_microseconds") == 0)
            set(c, "queue_delay_us", value);
        else if (strcmp(key, "default_queue_policy") == 0 && json_is_object(value))
            take_queue_policy(c, value);
        else if (strcmp(key, "preferred_batch_size") != 0) /* the buckets are planned */
            note_unused(c, "dynamic_batching.", key);
    }
}

static void take(conversion *c, const char *key, json_t *value)
{
    if (strcmp(key, "max_batch_size") == 0)
        take_batch_size(c, value);
    else if (strcmp(key, "dynamic_batching") == 0 && json_is_object(value))
        take_batching(c, value);
    else if (is_one_of(known, key))
        note_unused(c, "", key);
    else if (!is_one_of(ignored, key))
        set(c, key, value); /* of model.json, or of nobody: its reader says which */
}

static status convert(json_t *config, char **out, char unused[TRITON_UNUSED_BYTES])
{
    const char *key;
    json_t *value;
    conversion c = {.out = json_object(), .unused = unused};
    unused[0] = 0;
    json_object_foreach(config, key, value) take(&c, key, value);
    *out = c.out != NULL ? json_dumps(c.out, 0) : NULL;
    json_decref(c.out);
    return *out != NULL ? STATUS_OK : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a manifest");
}

/* It must be a manifest: what is wrong is told now, by the name of the file. */
static status check(const char *name, char **text)
{
    manifest m;
    status failure = manifest_read_text(name, *text, strlen(*text), &m);
    if (!failure) {
        manifest_dispose(&m);
        return STATUS_OK;
    }
    free(*text);
    *text = NULL;
    return failure;
}

status triton_read_file(const char *path, char **out, char unused[TRITON_UNUSED_BYTES])
{
    void *data;
    size_t bytes;
    json_t *config;
    status failure = file_reader_read_whole(path, FILE_BYTES_MAX, &data, &bytes);
    if (failure)
        return failure;
    failure = pbtxt_read(path, data, bytes, &config);
    free(data);
    if (failure)
        return failure;
    failure = convert(config, out, unused);
    json_decref(config);
    return failure ? failure : check(path, out);
}

status triton_read_config(const char *text, size_t bytes, char **out)
{
    char unused[TRITON_UNUSED_BYTES];
    json_error_t error;
    json_t *config = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(config)) {
        json_decref(config);
        return status_fail(STATUS_INVALID_ARGUMENT, "config: not a JSON object: %s", error.text);
    }
    status failure = convert(config, out, unused);
    json_decref(config);
    if (!failure && unused[0] != 0) {
        free(*out);
        *out = NULL;
        return status_fail(STATUS_INVALID_ARGUMENT, "config: not supported: %s", unused);
    }
    return failure ? failure : check("config", out);
}

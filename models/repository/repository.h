#ifndef MODELS_REPOSITORY_REPOSITORY_H
#define MODELS_REPOSITORY_REPOSITORY_H

#include "models/loading/load.h"
#include "models/repository/entry.h"

/* The models that are served. Loading runs on its own thread; lookups run on any thread and take no
 * lock. */

typedef struct repository repository;

typedef struct repository_model_options { /* one entry of config "models", or
                                                   --model NAME=PATH */
    const char *name, *path;
    device_precision precision; /* before that of model.json, if has_precision */
    bool has_precision;
} repository_model_options;

typedef struct repository_options {
    const char *folder; /* --repository, or NULL */
    const repository_model_options *models;
    int model_count;
    load_options load;
} repository_options;

/* Borrows devices and options until destroyed. Starts loading everything; returns at once. */
status repository_create(const repository_options *options, device *const *devices,
                         int device_count, repository **out) MUST_CHECK;

/* The ready model of that name; version 0: the highest ready one. The caller gets a reference
 * and ends it with model_release(). STATUS_NOT_FOUND: no such name or version; STATUS_UNAVAILABLE:
 * it is loading, failed or unloaded (message says which and why). */
status repository_find(repository *r, const char *name, size_t name_bytes, int64_t version,
                       const model **out) MUST_CHECK;
/* By label ("stable", "canary"), as model.json "labels" maps them to versions. */
status repository_find_label(repository *r, const char *name, size_t name_bytes, const char *label,
                             size_t label_bytes, const model **out) MUST_CHECK;

/* True when all models asked for at start are ready; else `progress` says what is being done:
 * "minilm: warming bucket 7 of 30". */
bool repository_is_ready(repository *r, char *progress, size_t progress_bytes);
/* Blocks until loading has ended. STATUS of the first model that failed. */
status repository_wait(repository *r) MUST_CHECK;

/* Lists every known model version; returns the total, writes at most `capacity`. Any thread. */
int repository_list(repository *r, repository_entry *out, int capacity);

/* The ready models, a reference to each for the caller to release; returns the total, writes at
 * most `capacity`. Any thread. For metrics and the status page. */
int repository_ready_models(repository *r, const model **out, int capacity);

/* Asks the loading thread to (re)load or unload; on_done is called there with the result. */
void repository_load(repository *r, const char *name,
                     void (*on_done)(void *context, status result, const char *error),
                     void *context);
void repository_unload(repository *r, const char *name,
                       void (*on_done)(void *context, status result, const char *error),
                       void *context);

/* Every reference must have been released. Waits for the load in progress. */
void repository_destroy(repository *r);

#endif

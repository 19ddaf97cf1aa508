#ifndef MODELS_REPOSITORY_REPOSITORY_H
#define MODELS_REPOSITORY_REPOSITORY_H

#include "models/loading/load.h"
#include "models/repository/entry.h"
#include "models/repository/order.h"

/* The models that are served. Loading runs on its own thread; lookups run on any thread and take no
 * lock. */

typedef struct repository repository;

typedef struct repository_model_options { /* one entry of config "models", or
                                                   --model NAME=PATH */
    const char *name, *path;
    device_precision precision; /* before that of model.json, if has_precision */
    bool has_precision;
} repository_model_options;

/* When the repository is ready. */
typedef enum repository_readiness_kind {
    READINESS_ALL,     /* the start is over, and nothing that may be a model has failed */
    READINESS_STARTED, /* the start is over, and one model is ready, or none has failed */
    READINESS_ANY,     /* one model is ready */
    READINESS_LIST     /* those of the list are */
} repository_readiness_kind;

typedef struct repository_readiness {
    repository_readiness_kind kind;
    const char *const *names;
    int name_count;
} repository_readiness;

typedef struct repository_options {
    const char *folder;  /* --repository, or NULL */
    bool exits_on_error; /* at the start, when a model fails */
    /* A device is in use and may come: a start at which every model failed for want of a device is
     * no failure. */
    bool waits_for_device;
    repository_readiness readiness;
    uint64_t poll_ns; /* how often the disk is looked at; 0: when repository_rescan() asks */
    const repository_model_options *models;
    int model_count;
    load_options load;
    uint64_t load_limit_ns; /* of one load, all versions of a name; 0: none */
    int orders_max;         /* loads and unloads that may wait; 0: 16 */
} repository_options;

/* How loads have ended since the start, those at the start included. */
typedef enum repository_load_result {
    REPOSITORY_LOAD_OK,
    REPOSITORY_LOAD_FAILED,
    REPOSITORY_LOAD_TIME_LIMIT,
    REPOSITORY_LOAD_CANCELLED, /* whoever asked for it has gone, or the server stops */
    REPOSITORY_LOAD_REJECTED,  /* too many waited */
    REPOSITORY_LOAD_RESULTS
} repository_load_result;

/* Borrows devices and options until destroyed. Starts loading everything; returns at once. */
status repository_create(const repository_options *options, device *const *devices,
                         int device_count, repository **out) MUST_CHECK;

/* The ready model of that name; version 0: the highest ready one. The caller gets a reference
 * and ends it with model_release(). STATUS_NOT_FOUND: no such name or version; STATUS_UNAVAILABLE:
 * it is loading, failed or unloaded (message says which and why), or the folders have not been read
 * yet. */
status repository_find(repository *r, const char *name, size_t name_bytes, int64_t version,
                       const model **out) MUST_CHECK;
/* By label ("stable", "canary"), as model.json "labels" maps them to versions. */
status repository_find_label(repository *r, const char *name, size_t name_bytes, const char *label,
                             size_t label_bytes, const model **out) MUST_CHECK;

/* True while options.readiness is met; else `progress` says what is being done, or missing:
 * "minilm: warming bucket 7 of 30". */
bool repository_is_ready(repository *r, char *progress, size_t progress_bytes);
/* Blocks until the models of the options and of the folder are known, as loading. */
void repository_wait_names(repository *r);
/* Blocks until the loading of the start has ended. STATUS of the first model that failed. */
status repository_wait(repository *r) MUST_CHECK;
/* Afterwards: the start has failed. The options are wrong, a model failed and exits_on_error is
 * set, or no model is ready and there is no folder from which one could come. */
bool repository_must_exit(repository *r);

/* Looks at the disk soon, and a second later if something has changed: what is new or has changed,
 * and does not change between the two, is loaded; what has gone is unloaded. Any thread. */
void repository_rescan(repository *r);

/* Devices [first, first + count), absent so far, are there: the loading thread makes the programs
 * of the models that serve, and loads those again that failed for want of a device. Any thread. */
void repository_join_devices(repository *r, int first, int count);

/* Whether models may still come: the folders have not been read yet, or a version is loading. Any
 * thread. */
bool repository_is_starting(repository *r);
/* Lists every known model version; returns the total, writes at most `capacity`. Any thread. */
int repository_list(repository *r, repository_entry *out, int capacity);
/* The same in memory for free(); NULL, with a count of 0: there is none. */
repository_entry *repository_list_all(repository *r, int *count);

/* How many versions there are in that state, ignored folders included. Any thread. */
int repository_count(repository *r, model_state state);
/* Lists those that have failed or are ignored; returns the total, writes at most `capacity`. */
int repository_unavailable(repository *r, repository_entry *out, int capacity);

/* The ready models, a reference to each for the caller to release; returns the total, writes at
 * most `capacity`. Any thread. For metrics and the status page. */
int repository_ready_models(repository *r, const model **out, int capacity);

/* Asks the loading thread to (re)load or unload a model. Orders for the same thing that wait are
 * done together. Any thread. STATUS_RESOURCE_EXHAUSTED: too many wait;
 * STATUS_UNAVAILABLE: it stops; STATUS_NOT_FOUND; STATUS_OUT_OF_MEMORY. After a failure `on_done`
 * is not called. */
status repository_load(repository *r, const char *name, repository_order *o) MUST_CHECK;
/* The same with settings in the place of those on disk, as JSON with keys of model.json or Triton's
 * names (models/manifest/triton.h); copied. They count until the next load. */
status repository_load_with(repository *r, const char *name, const char *config,
                            repository_order *o) MUST_CHECK;
status repository_unload(repository *r, const char *name, repository_order *o) MUST_CHECK;
/* Nobody waits for this order any more: unless it is done, `on_done` is called in here with
 * STATUS_CANCELLED. What nobody waits for is not begun, and a load under way ends at its next step;
 * the model that served before goes on serving. Any thread. */
void repository_cancel(repository *r, repository_order *o);

/* Loads and unloads that wait, whether one is under way, and how many loads have ended with that
 * result. Any thread. */
int repository_waiting(repository *r, bool *is_one_under_way);
uint64_t repository_loads(repository *r, repository_load_result result);
/* "ok", "failed" ...; static. */
const char *repository_load_result_name(repository_load_result result);

/* Ends the load under way at its next step and begins no other one; what is served stays. Any
 * thread. repository_wait() then returns STATUS_CANCELLED, if it still waited. */
void repository_stop(repository *r);

/* Every reference must have been released. Stops it, and waits for the load under way. */
void repository_destroy(repository *r);

#endif

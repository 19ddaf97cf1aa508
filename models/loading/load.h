#ifndef MODELS_LOADING_LOAD_H
#define MODELS_LOADING_LOAD_H

#include "models/manifest/manifest.h"

/* Makes a model from a folder on disk: manifest, import, tensors, batching probe, buckets, warm-up.
 */

/* Tokens of the longest row of a model for which nothing sets a limit. */
#define LOAD_ROW_MAX ((int64_t)1 << 20)

/* How models are loaded where model.json does not say otherwise. */
typedef struct load_options {
    device_precision precision;
    int64_t batch_max;        /* 0: 16 */
    uint64_t queue_delay_ns;  /* default 0 */
    int64_t queue_rows_max;   /* 0: 2048, as many as OpenAI takes texts */
    int64_t sequence_max;     /* 0: 512; LOAD_ROW_MAX for models whose rows are not padded */
    model_packing packing;    /* of models that do not say otherwise */
    const char *cache_folder; /* or NULL */
    int64_t cache_bytes_max;  /* of what is kept there for the CPU; 0: no limit */
    bool copies_files;        /* nothing of the files stays mapped: they may be written into */
    bool skips_warm_up;       /* for tools: buckets have no programs, nothing can be served */
    const char
        *no_device_reason; /* why only the CPU is there although more was configured, or NULL */
    bool allows_no_device; /* for tools: also loads models that need a device which is not there */
    /* What one run of a model may cost (graph/cost/cost.h); 0: graph_budget_default. */
    int64_t activation_bytes_max, operations_max;
    /* What may run before ready beyond what must (models/start/start_budget.h); 0: no limit, and
     * every bucket is made before ready. */
    int64_t start_operations_max;
} load_options;

typedef struct load_request {
    const char *name;
    int64_t version;
    const char *folder;        /* with the model file; or an .onnx file itself */
    const char *manifest;      /* path of model.json, which need not exist */
    const char *manifest_text; /* instead of what it holds; or NULL */
    const load_options *options;
    const device_precision *precision; /* before model.json and options; or NULL */
    device *const *devices;
    int device_count;
    /* Told what is being done, "minilm: warm-up of bucket 7 of 30"; on one thread at a time. */
    void (*report)(void *context, const char *text);
    void *context;
    const cancel_token *cancel; /* ends the load early, between two of its steps; or NULL */
} load_request;

/* The result has one reference, no index, serial 0 and no on_unused. Errors: what is wrong with the
 * files; STATUS_TOO_LARGE: the model costs more than the options allow; STATUS_UNAVAILABLE: the
 * files changed while they were read; those of cancel_check(). */
status load_model(const load_request *request, model **out) MUST_CHECK;
/* After ready: keeps in the cache folder what a later start can use. Nothing happens where nothing
 * is new. The loading thread. */
void load_keep(const model *m);
/* The last reference is gone. */
void load_destroy(model *m);

#endif

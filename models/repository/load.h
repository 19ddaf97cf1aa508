#ifndef MODELS_REPOSITORY_LOAD_H
#define MODELS_REPOSITORY_LOAD_H

#include "models/manifest/manifest.h"
#include "models/repository/repository.h"

/* From a folder on disk to a model that is ready: manifest, import, describe, probe, buckets,
 * warm-up. */

typedef struct load_request {
    const char *name;
    int64_t version;
    const char *folder;   /* with the model file; or an .onnx file itself */
    const char *manifest; /* path of model.json, which need not exist */
    const repository_options *options;
    const repository_model_options *own; /* or NULL */
    device *const *devices;
    int device_count;
    void (*say)(void *context, const char *text);
    void *context;
} load_request;

/* The result has one reference, no index and no on_unused. */
status load_model(const load_request *request, model **out) MUST_CHECK;
/* For on_unused's end: the last reference is gone. */
void load_destroy(model *m);

/* Does the folder hold a model file itself? */
bool load_has_model_file(const char *folder);
/* Where it does not: what it may have been meant to be, "; it has ...", or "". */
const char *load_hint(const char *folder);

#endif

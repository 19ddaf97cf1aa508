#ifndef CLI_LOADED_MODEL_H
#define CLI_LOADED_MODEL_H

#include "models/repository/repository.h"

/* A model on the CPU of this process, loaded as for serving, for the other commands. */

typedef struct loaded_model_options {
    const char *path; /* as `penstock serve --model` takes it, or NAME=PATH */
    device_precision precision;
    int64_t batch_max;      /* 0: 16, as for serving */
    device_cpu_options cpu; /* its cache folder is also the repository's */
    bool skips_warm_up;     /* buckets have no programs */
    bool allows_no_device;  /* also models that only a PJRT device can run */
} loaded_model_options;

typedef struct loaded_model {
    device *cpu;
    repository *models;
    repository_model_options own;
    repository_options options;
    char name[128];
    const model *model;
} loaded_model;

/* Fills `out`, which must stay where it is; close it in any case. Errors: those of loading. */
status loaded_model_open(const loaded_model_options *o, loaded_model *out) MUST_CHECK;
/* No program of the model may be in use. Also closes what a failed open left. */
void loaded_model_close(loaded_model *c);

#endif

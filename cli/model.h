#ifndef CLI_MODEL_H
#define CLI_MODEL_H

#include "models/repository/repository.h"

/* A model for a command that does not serve: on the CPU of this process, loaded as for serving. */

typedef struct command_model_options {
    const char *path; /* as `penstock serve --model` takes it, or NAME=PATH */
    device_precision precision;
    int64_t batch_max;      /* 0: 16, as for serving */
    device_cpu_options cpu; /* its cache also keeps what the repository keeps */
    bool skips_warm_up;     /* buckets are listed and not run */
    bool allows_no_device;  /* also models that only a PJRT device can run */
} command_model_options;

typedef struct command_model {
    device *cpu;
    repository *models;
    repository_model_options own;
    repository_options options;
    char name[128];
    const model *loaded;
} command_model;

/* Fills `out`, which must stay where it is; close it in any case. Errors: those of loading. */
status command_open_model(const command_model_options *o, command_model *out) MUST_CHECK;
/* No program of the model may be in use. Accepts what open left after a failure. */
void command_close_model(command_model *c);

#endif

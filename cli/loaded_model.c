#include "cli/loaded_model.h"

#include <stdio.h>
#include <string.h>

#include "models/start/start_budget.h"

#define BATCH_MAX_DEFAULT 16

/* The messages of loading name the model; a name that nobody gave only puzzles. */
static status without_name(status failure)
{
    static const char *const prefixes[] = {"model \"model\" version 1: ", "model \"model\": "};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(status_message(), prefixes[i], strlen(prefixes[i])) == 0)
            return status_fail(failure, "%s", status_message() + strlen(prefixes[i]));
    return failure;
}

status loaded_model_open(const loaded_model_options *o, loaded_model *out)
{
    *out = (loaded_model){.name = "model"};
    const char *equals = strchr(o->path, '=');
    if (equals != NULL)
        snprintf(out->name, sizeof out->name, "%.*s", (int)(equals - o->path), o->path);
    out->own = (repository_model_options){.name = out->name,
                                          .path = equals != NULL ? equals + 1 : o->path,
                                          .precision = o->precision,
                                          .has_precision = true};
    out->options = (repository_options){
        .models = &out->own,
        .model_count = 1,
        .load = {.precision = o->precision,
                 .batch_max = o->batch_max > 0 ? o->batch_max : BATCH_MAX_DEFAULT,
                 .queue_rows_max = 2048,
                 .start_operations_max = START_OPERATIONS_DEFAULT,
                 .cache_folder = o->cpu.cache_folder,
                 .skips_warm_up = o->skips_warm_up,
                 .allows_no_device = o->allows_no_device}};
    status s = device_cpu_create_with(&o->cpu, &out->cpu);
    if (!s)
        s = repository_create(&out->options, &out->cpu, 1, &out->models);
    if (!s)
        s = repository_wait(out->models);
    if (!s)
        s = repository_find(out->models, out->name, strlen(out->name), 0, &out->model);
    return s != STATUS_OK && equals == NULL ? without_name(s) : s;
}

void loaded_model_close(loaded_model *c)
{
    if (c->model != NULL)
        model_release(c->model);
    if (c->models != NULL)
        repository_destroy(c->models);
    if (c->cpu != NULL)
        c->cpu->interface->destroy(c->cpu);
    *c = (loaded_model){0};
}

#include <string.h>

#include "models/manifest/reader.h"

/* model.json's "program": inputs and outputs of StableHLO programs. */

static manifest_tensor *last_tensor(const manifest_reader *r, bool is_output)
{
    manifest_program *p = r->out->program;
    return is_output ? &p->outputs[p->output_count - 1] : &p->inputs[p->input_count - 1];
}

static status read_dim(const manifest_reader *r, const json_t *v, int64_t *out)
{
    const char *axis = json_string_value(v);
    if (axis != NULL && strcmp(axis, "batch") == 0)
        *out = MANIFEST_DIM_BATCH;
    else if (axis != NULL && strcmp(axis, "sequence") == 0)
        *out = MANIFEST_DIM_SEQUENCE;
    else if (json_is_integer(v) && json_integer_value(v) >= 1 && json_integer_value(v) <= INT32_MAX)
        *out = json_integer_value(v);
    else
        return manifest_fail(r, "must be \"batch\", \"sequence\" or a size from 1 to 2147483647",
                             NULL);
    return STATUS_OK;
}

static status read_dims(manifest_reader *r, const json_t *v, manifest_tensor *t)
{
    const json_path *outside = r->at;
    status failure = STATUS_OK;
    if (!json_is_array(v) || json_array_size(v) == 0 || json_array_size(v) > TENSOR_RANK_MAX)
        return manifest_fail(r, "must be a list of 1 to 8 dims", NULL);
    for (size_t i = 0; i < json_array_size(v) && !failure; i++) {
        json_path here = {outside, NULL, i};
        r->at = &here;
        failure = read_dim(r, json_array_get(v, i), &t->dims[i]);
        if (!failure && i == 0 && t->dims[0] != MANIFEST_DIM_BATCH)
            failure = manifest_fail(r, "the first dim must be \"batch\"", NULL);
        for (size_t k = 0; k < i && !failure; k++)
            if (t->dims[i] < 0 && t->dims[k] == t->dims[i])
                failure = manifest_fail(r, "each axis may occur once", NULL);
    }
    r->at = outside;
    t->rank = (int)json_array_size(v);
    return failure;
}

static status read_tensor_key(manifest_reader *r, json_t *v, bool is_output)
{
    static const char *const keys[] = {"name", "datatype", "dims"};
    manifest_tensor *t = last_tensor(r, is_output);
    const char *key = r->at->key;
    if (strcmp(key, "name") == 0)
        return manifest_read_string(r, v, &t->name);
    if (strcmp(key, "dims") == 0)
        return read_dims(r, v, t);
    if (strcmp(key, "datatype") != 0)
        return manifest_fail_key(r, keys, 3);
    const char *name = json_is_string(v) ? json_string_value(v) : "";
    if (!dtype_from_kserve_name(name, strlen(name), &t->dtype) || t->dtype == DTYPE_BYTES)
        return manifest_fail(r, "must be a KServe datatype that is a number, such as \"FP32\"",
                             NULL);
    return STATUS_OK;
}

static status read_input_key(manifest_reader *r, json_t *v)
{
    return read_tensor_key(r, v, false);
}

static status read_output_key(manifest_reader *r, json_t *v)
{
    return read_tensor_key(r, v, true);
}

static status check_tensor(const manifest_reader *r, const json_t *v, const manifest_tensor *all,
                           int count)
{
    static const char *const needed[] = {"name", "datatype", "dims"};
    for (int i = 0; i < 3; i++)
        if (json_object_get(v, needed[i]) == NULL)
            return manifest_fail(r, "needs \"name\", \"datatype\" and \"dims\"; it has no ",
                                 needed[i]);
    for (int i = 0; i < count - 1; i++)
        if (strcmp(all[i].name, all[count - 1].name) == 0)
            return manifest_fail(r, "two have the name ", all[i].name);
    return STATUS_OK;
}

static status read_input(manifest_reader *r, json_t *v)
{
    manifest_program *p = r->out->program;
    p->input_count++;
    status failure = manifest_read_object(r, v, read_input_key);
    return failure ? failure : check_tensor(r, v, p->inputs, p->input_count);
}

static status read_output(manifest_reader *r, json_t *v)
{
    manifest_program *p = r->out->program;
    p->output_count++;
    status failure = manifest_read_object(r, v, read_output_key);
    return failure ? failure : check_tensor(r, v, p->outputs, p->output_count);
}

static status read_argument(manifest_reader *r, json_t *v)
{
    manifest_program *p = r->out->program;
    return manifest_read_string(r, v, &p->arguments[p->argument_count++]);
}

static status read_program_key(manifest_reader *r, json_t *v)
{
    static const char *const keys[] = {"inputs", "outputs", "weights", "arguments"};
    manifest_program *p = r->out->program;
    const char *key = r->at->key;
    if (strcmp(key, "inputs") == 0)
        return manifest_read_array(r, v, MODEL_TENSORS_MAX, read_input);
    if (strcmp(key, "outputs") == 0)
        return manifest_read_array(r, v, MODEL_TENSORS_MAX, read_output);
    if (strcmp(key, "weights") == 0) {
        status failure = manifest_read_string(r, v, &p->weights);
        if (!failure && (p->weights[0] == 0 || strchr(p->weights, '/') != NULL))
            failure = manifest_fail(r, "must be the name of a file beside the programs", NULL);
        return failure;
    }
    if (strcmp(key, "arguments") != 0)
        return manifest_fail_key(r, keys, 4);
    p->arguments =
        arena_allocate_zeroed(&r->out->memory, MANIFEST_ARGUMENTS_MAX, sizeof *p->arguments);
    if (p->arguments == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a manifest");
    return manifest_read_array(r, v, MANIFEST_ARGUMENTS_MAX, read_argument);
}

status manifest_read_program(manifest_reader *r, json_t *v)
{
    manifest *m = r->out;
    m->program = arena_allocate_zeroed(&m->memory, 1, sizeof *m->program);
    if (m->program == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a manifest");
    status failure = manifest_read_object(r, v, read_program_key);
    if (failure)
        return failure;
    if (m->program->input_count == 0 || m->program->output_count == 0)
        return manifest_fail(r, "needs \"inputs\" and \"outputs\"", NULL);
    if (m->program->weights != NULL && m->program->arguments == NULL)
        return manifest_fail(r, "needs \"arguments\": with weights, the order matters", NULL);
    return STATUS_OK;
}

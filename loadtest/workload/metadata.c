#include "loadtest/workload/metadata.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "loadtest/wire/memory.h"

static status malformed(const char *what)
{
    return status_fail(STATUS_CORRUPT, "the model's metadata cannot be used: %s", what);
}

static status load(const char *text, size_t bytes, json_t **out)
{
    json_error_t error;
    *out = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    return *out ? STATUS_OK : malformed(error.text);
}

static void begin(metadata *m, size_t count)
{
    *m = (metadata){.inputs = memory_allocate(count, sizeof *m->inputs)};
}

/* Beside other inputs, which stand for the same: tokens. */
static bool is_text(const char *name, dtype type, size_t inputs)
{
    return inputs > 1 && type == DTYPE_BYTES &&
           (strcmp(name, "text") == 0 || strcmp(name, "text_pair") == 0);
}

static status add_kserve(metadata *m, const json_t *entry, size_t inputs)
{
    const char *name = json_string_value(json_object_get(entry, "name"));
    const char *type = json_string_value(json_object_get(entry, "datatype"));
    const json_t *shape = json_object_get(entry, "shape");
    metadata_input *input = &m->inputs[m->input_count];
    if (name == NULL || type == NULL || !json_is_array(shape))
        return malformed("an input without name, datatype or shape");
    if (!dtype_from_kserve_name(type, strlen(type), &input->type))
        return status_fail(STATUS_UNSUPPORTED, "input %s has the unknown datatype %s", name, type);
    if (is_text(name, input->type, inputs))
        return STATUS_OK;
    if (json_array_size(shape) > METADATA_DIMENSIONS_MAX)
        return status_fail(STATUS_UNSUPPORTED, "input %s has over %d dimensions", name,
                           METADATA_DIMENSIONS_MAX);
    size_t i;
    json_t *value;
    json_array_foreach(shape, i, value)
    {
        if (!json_is_integer(value) || json_integer_value(value) < -1)
            return malformed("a shape with something else than integers");
        input->dimensions[input->dimension_count++] = json_integer_value(value);
    }
    input->name = memory_copy_string(name, strlen(name));
    m->input_count++;
    return STATUS_OK;
}

status metadata_parse_kserve(metadata *m, const char *text, size_t bytes)
{
    json_t *root;
    status s = load(text, bytes, &root);
    if (s)
        return s;
    const json_t *inputs = json_object_get(root, "inputs");
    metadata parsed = {0};
    if (!json_is_array(inputs) || json_array_size(inputs) == 0) {
        s = malformed("it lists no inputs");
        goto done;
    }
    begin(&parsed, json_array_size(inputs));
    size_t i;
    json_t *entry;
    json_array_foreach(inputs, i, entry)
    {
        s = add_kserve(&parsed, entry, json_array_size(inputs));
        if (s)
            goto done;
    }
    *m = parsed;
    parsed = (metadata){0};
done:
    metadata_dispose(&parsed);
    json_decref(root);
    return s;
}

static bool tensorflow_type(const char *name, dtype *out)
{
    for (int type = 0; name != NULL && type < DTYPE_COUNT; type++)
        if (strcmp(dtype_tensorflow_name((dtype)type), name) == 0) {
            *out = (dtype)type;
            return true;
        }
    return false;
}

static status add_tensorflow(metadata *m, const char *name, const json_t *entry)
{
    const char *type = json_string_value(json_object_get(entry, "dtype"));
    const json_t *dims = json_object_get(json_object_get(entry, "tensor_shape"), "dim");
    metadata_input *input = &m->inputs[m->input_count];
    if (!tensorflow_type(type, &input->type))
        return status_fail(STATUS_UNSUPPORTED, "input %s has the unknown type %s", name,
                           type ? type : "(none)");
    if (json_array_size(dims) > METADATA_DIMENSIONS_MAX)
        return status_fail(STATUS_UNSUPPORTED, "input %s has over %d dimensions", name,
                           METADATA_DIMENSIONS_MAX);
    size_t i;
    json_t *dim;
    json_array_foreach(dims, i, dim)
    {
        const json_t *size = json_object_get(dim, "size"); /* 64 bits, so a string in JSON */
        int64_t value = json_is_string(size) ? strtoll(json_string_value(size), NULL, 10)
                                             : json_integer_value(size);
        input->dimensions[input->dimension_count++] = value < 0 ? -1 : value;
    }
    input->name = memory_copy_string(name, strlen(name));
    m->input_count++;
    return STATUS_OK;
}

status metadata_parse_tensorflow(metadata *m, const char *text, size_t bytes)
{
    json_t *root;
    status s = load(text, bytes, &root);
    if (s)
        return s;
    metadata parsed = {0};
    json_t *signatures = json_object_get(
        json_object_get(json_object_get(root, "metadata"), "signature_def"), "signature_def");
    json_t *signature = json_object_get(signatures, "serving_default");
    if (signature == NULL && json_object_size(signatures) == 1)
        signature = json_object_iter_value(json_object_iter(signatures));
    json_t *inputs = json_object_get(signature, "inputs"), *entry;
    if (json_object_size(inputs) == 0) {
        s = malformed("it has no signature with inputs");
        goto done;
    }
    begin(&parsed, json_object_size(inputs));
    const char *name;
    json_object_foreach(inputs, name, entry)
    {
        s = add_tensorflow(&parsed, name, entry);
        if (s)
            goto done;
    }
    *m = parsed;
    parsed = (metadata){0};
done:
    metadata_dispose(&parsed);
    json_decref(root);
    return s;
}

void metadata_dispose(metadata *m)
{
    for (size_t i = 0; i < m->input_count; i++)
        free(m->inputs[i].name);
    free(m->inputs);
    *m = (metadata){0};
}

#include "config/models.h"

#include <string.h>

#include "config/values.h"

status config_add_model(config *c, const char *name, size_t name_bytes, const char *path,
                        const device_precision *precision, const config_origin *o,
                        const json_path *where)
{
    if (!config_is_name(name, name_bytes))
        return config_fail(o, where,
                           "\"%.*s\" is not a model name: use 1 to 127 printable ASCII characters "
                           "without spaces and / ? # %% : \" \\",
                           (int)name_bytes, name);
    int index = 0;
    while (index < c->repository.model_count &&
           (strlen(c->model_list[index].name) != name_bytes ||
            memcmp(c->model_list[index].name, name, name_bytes) != 0))
        index++;
    if (index == CONFIG_MODELS_MAX)
        return config_fail(o, where, "more than %d models", CONFIG_MODELS_MAX);
    /* A flag overrides the file. Two flags for one model are a mistake. */
    if (index < c->repository.model_count && o->flag != NULL && c->is_model_of_flag[index])
        return config_fail(o, where, "model \"%.*s\" is given twice", (int)name_bytes, name);
    c->is_model_of_flag[index] = o->flag != NULL;
    char *name_copy = arena_copy_string(&c->memory, name, name_bytes);
    char *path_copy = arena_copy_string(&c->memory, path, strlen(path));
    if (name_copy == NULL || path_copy == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the configuration");
    c->model_list[index] =
        (repository_model_options){.name = name_copy,
                                   .path = path_copy,
                                   .precision = precision != NULL ? *precision : DEVICE_FP32,
                                   .has_precision = precision != NULL};
    if (index == c->repository.model_count)
        c->repository.model_count++;
    c->repository.models = c->model_list;
    return STATUS_OK;
}

static status read_model(config *c, const char *name, json_t *entry, const config_origin *o,
                         const json_path *path)
{
    static const char *const keys[] = {"path", "precision", NULL};
    const json_t *model_path = entry; /* "name": "path" is short for {"path": ...} */
    const json_t *precision = NULL;
    json_path path_here = *path, precision_here = {path, "precision", 0};
    if (json_is_object(entry)) {
        status s = config_check_members(entry, keys, o, path);
        if (s)
            return s;
        model_path = json_object_get(entry, "path");
        precision = json_object_get(entry, "precision");
        path_here = (json_path){path, "path", 0};
        if (model_path == NULL)
            return config_fail(o, path, "the key \"path\" is missing");
    }
    if (!json_is_string(model_path))
        return config_fail_type(o, &path_here, "a string", model_path);
    if (json_string_length(model_path) == 0)
        return config_fail(o, &path_here, "must not be empty");
    int choice = 0;
    bool has_precision = precision != NULL && !json_is_null(precision);
    if (has_precision) {
        status s =
            config_read_choice(device_precision_names, precision, o, &precision_here, &choice);
        if (s)
            return s;
    }
    const device_precision chosen = (device_precision)choice;
    return config_add_model(c, name, strlen(name), json_string_value(model_path),
                            has_precision ? &chosen : NULL, o, path);
}

status config_set_models(config *c, json_t *value, const config_origin *o, const json_path *path)
{
    if (!json_is_object(value))
        return config_fail_type(o, path, "an object of models by name", value);
    const char *name;
    json_t *entry;
    json_object_foreach(value, name, entry)
    {
        json_path here = {path, name, 0};
        status s = read_model(c, name, entry, o, &here);
        if (s)
            return s;
    }
    return STATUS_OK;
}

static const char *const readiness_words[] = {"all", "started", "any", NULL};
_Static_assert(READINESS_ALL == 0 && READINESS_STARTED == 1 && READINESS_ANY == 2,
               "readiness_words");

static status set_readiness_list(config *c, const json_t *value, const config_origin *o,
                                 const json_path *path)
{
    size_t count = json_array_size(value);
    if (count == 0 || count > CONFIG_MODELS_MAX)
        return config_fail(o, path, "must name 1 to %d models", CONFIG_MODELS_MAX);
    for (size_t i = 0; i < count; i++) {
        json_path here = {path, NULL, i};
        const json_t *name = json_array_get(value, i);
        if (!json_is_string(name))
            return config_fail_type(o, &here, "a model's name", name);
        status failure = config_copy_string(c, o, &here, name, &c->ready_names[i]);
        if (failure)
            return failure;
    }
    c->repository.readiness = (repository_readiness){
        .kind = READINESS_LIST, .names = c->ready_names, .name_count = (int)count};
    return STATUS_OK;
}

status config_set_readiness(config *c, const json_t *value, const config_origin *o,
                            const json_path *path)
{
    int choice;
    if (json_is_array(value))
        return set_readiness_list(c, value, o, path);
    status failure = config_read_choice(readiness_words, value, o, path, &choice);
    if (!failure)
        c->repository.readiness = (repository_readiness){.kind = (repository_readiness_kind)choice};
    return failure;
}

json_t *config_readiness_json(const config *c)
{
    const repository_readiness *wanted = &c->repository.readiness;
    if (wanted->kind != READINESS_LIST)
        return json_string(readiness_words[wanted->kind]);
    json_t *list = json_array();
    for (int i = 0; i < wanted->name_count; i++)
        json_array_append_new(list, json_string(wanted->names[i]));
    return list;
}

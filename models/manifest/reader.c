#include "models/manifest/reader.h"

#include <stdio.h>
#include <string.h>

#include "base/text/nearest.h"

status manifest_fail(const manifest_reader *r, const char *what, const char *detail)
{
    char path[JSON_PATH_TEXT_BYTES];
    return status_fail(STATUS_INVALID_ARGUMENT, "%s:%d: %s: %s%s", r->name,
                       json_position_line(r->text, r->bytes, r->at), json_path_text(r->at, path),
                       what, detail ? detail : "");
}

status manifest_fail_key(const manifest_reader *r, const char *const *keys, int count)
{
    const char *nearest = nearest_find(r->at->key, keys, (size_t)count);
    char detail[96] = "";
    if (nearest)
        snprintf(detail, sizeof detail, "; did you mean \"%s\"?", nearest);
    return manifest_fail(r, "no such key", detail);
}

status manifest_read_integer(const manifest_reader *r, const json_t *v, int64_t least, int64_t most,
                             int64_t *out)
{
    char range[96];
    snprintf(range, sizeof range, "%lld to %lld", (long long)least, (long long)most);
    if (!json_is_integer(v))
        return manifest_fail(r, "must be a whole number from ", range);
    if (json_integer_value(v) < least || json_integer_value(v) > most)
        return manifest_fail(r, "must be from ", range);
    *out = json_integer_value(v);
    return STATUS_OK;
}

status manifest_read_string(const manifest_reader *r, const json_t *v, const char **out)
{
    if (!json_is_string(v))
        return manifest_fail(r, "must be a string", NULL);
    *out = arena_copy_string(&r->out->memory, json_string_value(v), json_string_length(v));
    return *out ? STATUS_OK : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a manifest");
}

status manifest_read_object(manifest_reader *r, json_t *object,
                            status (*read)(manifest_reader *r, json_t *value))
{
    const char *key;
    json_t *value;
    if (!json_is_object(object))
        return manifest_fail(r, "must be an object", NULL);
    const json_path *outside = r->at;
    status failure = STATUS_OK;
    json_object_foreach(object, key, value)
    {
        json_path here = {outside, key, 0};
        r->at = &here;
        failure = read(r, value);
        if (failure)
            break;
    }
    r->at = outside;
    return failure;
}

status manifest_read_array(manifest_reader *r, json_t *array, size_t most,
                           status (*read)(manifest_reader *r, json_t *value))
{
    char limit[64];
    snprintf(limit, sizeof limit, "%zu", most);
    if (!json_is_array(array) || json_array_size(array) == 0 || json_array_size(array) > most)
        return manifest_fail(r, "must be a list of 1 to ", limit);
    const json_path *outside = r->at;
    status failure = STATUS_OK;
    for (size_t i = 0; i < json_array_size(array) && !failure; i++) {
        json_path here = {outside, NULL, i};
        r->at = &here;
        failure = read(r, json_array_get(array, i));
    }
    r->at = outside;
    return failure;
}

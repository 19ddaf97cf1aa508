#include "graph/json_file.h"

#include <stdlib.h>

#include "base/io/file_reader.h"

#define JSON_FILE_BYTES_MAX ((size_t)64 << 20)

status json_file_read(const char *path, json_t **out)
{
    void *data;
    size_t bytes;
    json_error_t error;
    status s = file_reader_read_whole(path, JSON_FILE_BYTES_MAX, &data, &bytes);
    if (s)
        return s;
    json_t *root = json_loadb(data, bytes, JSON_REJECT_DUPLICATES, &error);
    free(data);
    if (root == NULL)
        return status_fail(STATUS_CORRUPT, "%s: line %d: %s", path, error.line, error.text);
    *out = root;
    return STATUS_OK;
}

bool json_file_bool(const json_t *object, const char *key, bool otherwise)
{
    const json_t *value = json_object_get(object, key);
    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

const char *json_file_string(const json_t *object, const char *key, const char *otherwise)
{
    const json_t *value = json_object_get(object, key);
    return json_is_string(value) ? json_string_value(value) : otherwise;
}

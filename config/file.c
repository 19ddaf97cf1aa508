#include "config/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text/text_buffer.h"
#include "config/set.h"

#define FILE_BYTES_MAX ((size_t)16 << 20)

static status read_section(config *c, const char *section, json_t *members, config_origin *o)
{
    json_path here = {&config_root_path, section, 0};
    const char *key;
    json_t *value;
    if (!json_is_object(members))
        return config_fail_type(o, &here, "an object", members);
    json_object_foreach(members, key, value)
    {
        json_path there = {&here, key, 0};
        status s = config_set_member(c, section, key, value, o, &there);
        if (s)
            return s;
    }
    return STATUS_OK;
}

static status read_root(config *c, json_t *root, config_origin *o)
{
    const char *key;
    json_t *value;
    if (!json_is_object(root))
        return config_fail_type(o, &config_root_path, "an object", root);
    json_object_foreach(root, key, value)
    {
        json_path here = {&config_root_path, key, 0};
        bool is_short = strcmp(key, "repository") == 0 && !json_is_object(value);
        status s = config_is_section(key) && !is_short
                       ? read_section(c, key, value, o)
                       : config_set_member(c, NULL, key, value, o, &here);
        if (s)
            return s;
    }
    return STATUS_OK;
}

status config_read_text(config *c, const char *file, const char *text, size_t bytes)
{
    config_origin o = {.file = file, .text = text, .bytes = bytes};
    json_error_t error;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL)
        return status_fail(STATUS_INVALID_ARGUMENT, "%s:%d:%d: not JSON: %s", file,
                           error.line > 0 ? error.line : 1, error.column > 0 ? error.column : 1,
                           error.text);
    status s = read_root(c, root, &o);
    json_decref(root);
    return s;
}

status config_read_file(config *c, const char *path)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return status_fail(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO, "%s: %s", path,
                           strerror(errno));
    text_buffer text = {0};
    size_t n;
    do {
        char *room = text_buffer_reserve(&text, 65536);
        n = room != NULL ? fread(room, 1, 65536, file) : 0;
        text.bytes += n;
    } while (n > 0 && text.bytes <= FILE_BYTES_MAX);
    status s = ferror(file) ? status_fail(STATUS_IO, "%s: %s", path, strerror(errno))
               : text.is_broken
                   ? status_fail(STATUS_OUT_OF_MEMORY, "%s: no memory to read it", path)
               : text.bytes > FILE_BYTES_MAX
                   ? status_fail(STATUS_TOO_LARGE, "%s: more than %zu bytes", path, FILE_BYTES_MAX)
                   : config_read_text(c, path, text.data, text.bytes);
    text_buffer_dispose(&text);
    fclose(file);
    return s;
}

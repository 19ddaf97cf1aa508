#include "config/origin.h"

#include <stdarg.h>
#include <stdio.h>

const json_path config_root_path;

status config_fail(const config_origin *o, const json_path *path, const char *format, ...)
{
    char message[STATUS_MESSAGE_BYTES_MAX], where[JSON_PATH_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (o->flag != NULL)
        return status_fail(STATUS_INVALID_ARGUMENT, "%s: %s", o->flag, message);
    json_path_text(path, where);
    return status_fail(STATUS_INVALID_ARGUMENT, "%s:%d: %s%s%s", o->file,
                       json_position_line(o->text, o->bytes, path), where,
                       where[0] != 0 ? ": " : "", message);
}

static const char *type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number with a fraction";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    default:
        return "null";
    }
}

status config_fail_type(const config_origin *o, const json_path *path, const char *wanted,
                        const json_t *value)
{
    return config_fail(o, path, "must be %s, not %s", wanted, type_name(value));
}

status config_fail_unknown_key(const config_origin *o, const json_path *path, const char *near)
{
    if (near != NULL)
        return config_fail(o, path, "unknown key; did you mean \"%s\"?", near);
    return config_fail(o, path, "unknown key");
}

#include "text/load/fields.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "text/unicode/utf8.h"

#define SEQUENCE_DEPTH_MAX 8

static status wrong_kind(const char *name, const char *expected)
{
    return status_fail(STATUS_CORRUPT, "\"%s\": expected %s", name, expected);
}

status field_bool(const json_t *object, const char *name, bool *out)
{
    const json_t *value = json_object_get(object, name);
    if (!field_is_there(value))
        return STATUS_OK;
    if (!json_is_boolean(value))
        return wrong_kind(name, "true or false");
    *out = json_is_true(value);
    return STATUS_OK;
}

status field_size(const json_t *object, const char *name, size_t *out)
{
    const json_t *value = json_object_get(object, name);
    if (!field_is_there(value))
        return STATUS_OK;
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        json_integer_value(value) > UINT32_MAX)
        return wrong_kind(name, "a whole number, 0 to 4294967295");
    *out = (size_t)json_integer_value(value);
    return STATUS_OK;
}

status field_text(const json_t *object, const char *name, char **out, size_t *bytes)
{
    const json_t *value = json_object_get(object, name);
    if (!field_is_there(value))
        return STATUS_OK;
    if (!json_is_string(value))
        return wrong_kind(name, "a string");
    *bytes = json_string_length(value);
    return field_copy(json_string_value(value), *bytes, out);
}

status field_copy(const char *text, size_t bytes, char **out)
{
    char *copy = malloc(bytes + 1);
    if (copy == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %zu bytes", bytes);
    memcpy(copy, text, bytes);
    copy[bytes] = 0;
    *out = copy;
    return STATUS_OK;
}

status field_character(const json_t *object, const char *name, uint32_t *out)
{
    const json_t *value = json_object_get(object, name);
    if (!field_is_there(value))
        return STATUS_OK;
    const uint8_t *text = (const uint8_t *)json_string_value(value);
    size_t length = json_string_length(value);
    if (text == NULL || length == 0 || utf8_length(text[0]) != length)
        return wrong_kind(name, "one character");
    *out = utf8_decode(text);
    return STATUS_OK;
}

static const char *kind_name(json_type type)
{
    static const char *const names[] = {"an object", "an array", "a string", "a whole number",
                                        "a number"};
    return (size_t)type < sizeof names / sizeof *names ? names[type] : "true or false";
}

status field_required(const json_t *object, const char *name, json_type type, const json_t **out)
{
    const json_t *value = json_object_get(object, name);
    if (value == NULL)
        return status_fail(STATUS_CORRUPT, "\"%s\" is missing", name);
    if (json_typeof(value) != type)
        return wrong_kind(name, kind_name(type));
    *out = value;
    return STATUS_OK;
}

/* The object's "type". STATUS_CORRUPT: it is no object, or has none. */
static status read_type(const json_t *object, const char **type)
{
    const json_t *value = NULL;
    if (!json_is_object(object))
        return status_fail(STATUS_CORRUPT, "expected an object");
    status s = field_required(object, "type", JSON_STRING, &value);
    if (!s)
        *type = json_string_value(value);
    return s;
}

status field_unknown_type(const char *what, const char *type, const char *supported)
{
    return status_fail(STATUS_UNSUPPORTED, "the %s \"%.64s\" is not supported; supported are %s",
                       what, type, supported);
}

static status each(const json_t *component, const char *members, read_component *read,
                   void *context, int depth)
{
    const char *type = NULL;
    const json_t *list = NULL;
    status s = read_type(component, &type);
    if (s || strcmp(type, "Sequence") != 0)
        return s ? s : read(component, type, context);
    if (depth == SEQUENCE_DEPTH_MAX)
        return status_fail(STATUS_TOO_LARGE, "Sequences are nested deeper than %d",
                           SEQUENCE_DEPTH_MAX);
    s = field_required(component, members, JSON_ARRAY, &list);
    for (size_t i = 0; i < json_array_size(list) && !s; i++) {
        s = each(json_array_get(list, i), members, read, context, depth + 1);
        if (s)
            s = status_prefix(s, "%s[%zu]", members, i);
    }
    return s;
}

status field_each(const json_t *component, const char *members, read_component *read, void *context)
{
    assert(members != NULL && read != NULL);
    return each(component, members, read, context, 0);
}

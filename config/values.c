#include "config/values.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text/nearest.h"

status config_copy_string(config *c, const config_origin *o, const json_path *path,
                          const json_t *value, const char **out)
{
    size_t bytes = json_string_length(value);
    const char *text = json_string_value(value);
    if (memchr(text, 0, bytes) != NULL)
        return config_fail(o, path, "contains a zero byte");
    if (bytes == 0)
        return config_fail(o, path, "must not be empty");
    char *copy = arena_copy_string(&c->memory, text, bytes);
    if (copy == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the configuration");
    *out = copy;
    return STATUS_OK;
}

static size_t count_names(const char *const *choices)
{
    size_t count = 0;
    while (choices[count] != NULL)
        count++;
    return count;
}

status config_read_choice(const char *const *choices, const json_t *value, const config_origin *o,
                          const json_path *path, int *out)
{
    if (!json_is_string(value))
        return config_fail_type(o, path, "a string", value);
    const char *name = json_string_value(value);
    char list[200] = "";
    for (int i = 0; choices[i] != NULL; i++) {
        if (strcmp(choices[i], name) == 0) {
            *out = i;
            return STATUS_OK;
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", choices[i]);
    }
    const char *near = nearest_find(name, choices, count_names(choices));
    if (near != NULL)
        return config_fail(o, path, "\"%s\" is not one of %s; did you mean \"%s\"?", name, list,
                           near);
    return config_fail(o, path, "\"%s\" is not one of %s", name, list);
}

status config_set_number(config *c, const config_key *k, const json_t *value,
                         const config_origin *o, const json_path *path)
{
    if (!json_is_number(value))
        return config_fail_type(o, path, "a number", value);
    double number = json_number_value(value);
    if (!(number >= (double)k->minimum && number <= (double)k->maximum))
        return config_fail(o, path, "%g is not between %" PRId64 " and %" PRId64, number,
                           k->minimum, k->maximum);
    *config_key_number(c, k) = number;
    return STATUS_OK;
}

status config_set_integer(config *c, const config_key *k, const json_t *value,
                          const config_origin *o, const json_path *path)
{
    if (!json_is_integer(value))
        return config_fail_type(o, path, "an integer", value);
    int64_t number = json_integer_value(value);
    if (number < k->minimum)
        return config_fail(o, path, "%" PRId64 " is below the minimum, %" PRId64, number,
                           k->minimum);
    if (number > k->maximum)
        return config_fail(o, path, "%" PRId64 " is above the maximum, %" PRId64, number,
                           k->maximum);
    config_key_set_integer(c, k, number);
    return STATUS_OK;
}

bool config_is_name(const char *name, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        unsigned char ch = (unsigned char)name[i];
        if (ch <= ' ' || ch >= 0x7f || strchr("/?#%\"\\:", ch) != NULL)
            return false;
    }
    return bytes > 0 && bytes < 128;
}

status config_check_members(json_t *value, const char *const *names, const config_origin *o,
                            const json_path *path)
{
    const char *key;
    json_t *member;
    json_object_foreach(value, key, member)
    {
        json_path here = {path, key, 0};
        size_t count = count_names(names), i = 0;
        while (i < count && strcmp(names[i], key) != 0)
            i++;
        if (i == count)
            return config_fail_unknown_key(o, &here, nearest_find(key, names, count));
    }
    return STATUS_OK;
}

#include "config/set.h"

#include <stdio.h>
#include <string.h>

#include "base/text/nearest.h"
#include "config/lists.h"
#include "config/models.h"
#include "config/tenants.h"
#include "config/values.h"

#define NAMES_MAX 128
#define SECTION_BYTES 64

status config_set(config *c, const config_key *k, json_t *value, config_origin *o,
                  const json_path *path)
{
    int choice = 0;
    status s;
    switch (k->kind) {
    case CONFIG_BOOL:
        if (!json_is_boolean(value))
            return config_fail_type(o, path, "true or false", value);
        *config_key_bool(c, k) = json_is_true(value);
        return STATUS_OK;
    case CONFIG_INTEGER:
        return config_set_integer(c, k, value, o, path);
    case CONFIG_NUMBER:
        return config_set_number(c, k, value, o, path);
    case CONFIG_STRING:
        if (json_is_null(value)) {
            *config_key_string(c, k) = NULL;
            return STATUS_OK;
        }
        if (!json_is_string(value))
            return config_fail_type(o, path, "a string or null", value);
        return config_copy_string(c, o, path, value, config_key_string(c, k));
    case CONFIG_CHOICE:
        s = config_read_choice(k->choices, value, o, path, &choice);
        if (s)
            return s;
        config_key_set_integer(c, k, choice);
        return STATUS_OK;
    case CONFIG_DEVICES:
        return config_set_devices(c, value, o, path);
    case CONFIG_LISTENERS:
        return config_set_listeners(c, value, (config_listener_kind)k->minimum, o, path);
    case CONFIG_TENANTS:
        return config_set_tenants(c, value, o, path);
    case CONFIG_READINESS:
        return config_set_readiness(c, value, o, path);
    case CONFIG_MODELS:
        return config_set_models(c, value, o, path);
    }
    return STATUS_INTERNAL;
}

/* What may be meant by an unknown `key` of `section` (NULL: of the file itself): a key or section
 * of that level, else the full path of a key of any level, or NULL. A section's name is written to
 * `scratch`. */
static const char *suggest(const char *section, const char *key, char scratch[SECTION_BYTES])
{
    const char *level[NAMES_MAX], *leaves[NAMES_MAX], *paths[NAMES_MAX];
    size_t level_count = 0, leaf_count = 0, section_bytes = section != NULL ? strlen(section) : 0;
    for (int i = 0; i < config_key_count && leaf_count < NAMES_MAX; i++) {
        const char *path = config_keys[i].path, *dot = strchr(path, '.');
        const char *leaf = dot != NULL ? dot + 1 : path;
        paths[leaf_count] = path;
        leaves[leaf_count++] = leaf;
        if (section == NULL ? dot == NULL
                            : dot != NULL && (size_t)(dot - path) == section_bytes &&
                                  memcmp(path, section, section_bytes) == 0)
            level[level_count++] = leaf;
    }
    const char *near = nearest_find(key, level, level_count);
    if (near != NULL)
        return near;
    if (section == NULL) { /* perhaps a misspelt section */
        for (int i = 0; i < config_key_count; i++) {
            const char *dot = strchr(config_keys[i].path, '.');
            if (dot == NULL)
                continue;
            snprintf(scratch, SECTION_BYTES, "%.*s", (int)(dot - config_keys[i].path),
                     config_keys[i].path);
            const char *one[] = {scratch};
            if (nearest_find(key, one, 1) != NULL)
                return scratch;
        }
    }
    near = nearest_find(key, leaves, leaf_count);
    for (size_t i = 0; near != NULL && i < leaf_count; i++)
        if (leaves[i] == near)
            return paths[i];
    return NULL;
}

/* The key of that path; "repository" is short for its folder. */
static const config_key *find(const char *path)
{
    return config_key_find(strcmp(path, "repository") == 0 ? "repository.folder" : path);
}

bool config_is_section(const char *name)
{
    size_t bytes = strlen(name);
    for (int i = 0; i < config_key_count; i++)
        if (strncmp(config_keys[i].path, name, bytes) == 0 && config_keys[i].path[bytes] == '.')
            return true;
    return false;
}

status config_set_member(config *c, const char *section, const char *key, json_t *value,
                         config_origin *o, const json_path *path)
{
    char full[128], scratch[SECTION_BYTES];
    snprintf(full, sizeof full, "%s%s%s", section != NULL ? section : "",
             section != NULL ? "." : "", key);
    const config_key *k = strchr(key, '.') == NULL ? find(full) : NULL;
    if (k == NULL)
        return config_fail_unknown_key(o, path, suggest(section, key, scratch));
    return config_set(c, k, value, o, path);
}

status config_set_path(config *c, const char *path, json_t *value, config_origin *o)
{
    const config_key *k = find(path);
    if (k != NULL)
        return config_set(c, k, value, o, &config_root_path);
    char section[SECTION_BYTES], scratch[SECTION_BYTES];
    const char *dot = strchr(path, '.');
    snprintf(section, sizeof section, "%.*s", dot != NULL ? (int)(dot - path) : 0, path);
    const char *near = dot != NULL && config_is_section(section)
                           ? suggest(section, dot + 1, scratch)
                           : suggest(NULL, path, scratch);
    return config_fail_unknown_key(o, &config_root_path, near);
}

#include "config/read.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"

#define NAMES_MAX 128

static const json_path root_path;

status config_wrong(const config_origin *o, const json_path *path, const char *format, ...)
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

static status wrong_type(const config_origin *o, const json_path *path, const char *wanted,
                         const json_t *value)
{
    return config_wrong(o, path, "must be %s, and is %s", wanted, type_name(value));
}

static status copy_string(config *c, const config_origin *o, const json_path *path,
                          const json_t *value, const char **out)
{
    size_t bytes = json_string_length(value);
    const char *text = json_string_value(value);
    if (memchr(text, 0, bytes) != NULL)
        return config_wrong(o, path, "holds a zero byte");
    if (bytes == 0)
        return config_wrong(o, path, "is empty");
    char *copy = arena_copy_string(&c->memory, text, bytes);
    if (copy == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the configuration");
    *out = copy;
    return STATUS_OK;
}

static size_t count_choices(const char *const *choices)
{
    size_t count = 0;
    while (choices[count] != NULL)
        count++;
    return count;
}

static status read_choice(const char *const *choices, const json_t *value, const config_origin *o,
                          const json_path *path, int *out)
{
    if (!json_is_string(value))
        return wrong_type(o, path, "a string", value);
    const char *word = json_string_value(value);
    char list[200] = "";
    for (int i = 0; choices[i] != NULL; i++) {
        if (strcmp(choices[i], word) == 0) {
            *out = i;
            return STATUS_OK;
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", choices[i]);
    }
    const char *near = nearest_find(word, choices, count_choices(choices));
    if (near != NULL)
        return config_wrong(o, path, "\"%s\" is none of %s; did you mean \"%s\"?", word, list,
                            near);
    return config_wrong(o, path, "\"%s\" is none of %s", word, list);
}

static status read_integer(config *c, const config_key *k, const json_t *value,
                           const config_origin *o, const json_path *path)
{
    if (!json_is_integer(value))
        return wrong_type(o, path, "an integer", value);
    int64_t number = json_integer_value(value);
    if (number < k->minimum)
        return config_wrong(o, path, "%" PRId64 " is less than the least value, %" PRId64, number,
                            k->minimum);
    if (number > k->maximum)
        return config_wrong(o, path, "%" PRId64 " is more than the greatest value, %" PRId64,
                            number, k->maximum);
    config_key_set_integer(c, k, number);
    return STATUS_OK;
}

/* "host:port", "[v6 address]:port", "*:port" or ":port". */
status config_add_listener(config *c, const char *address, bool is_tls, config_origin *o,
                           const json_path *where)
{
    const char *colon = strrchr(address, ':');
    char *end = NULL;
    unsigned long port = colon != NULL ? strtoul(colon + 1, &end, 10) : 0;
    if (colon == NULL || end == colon + 1 || *end != 0 || colon[1] < '0' || colon[1] > '9')
        return config_wrong(o, where, "\"%s\" is not HOST:PORT, such as 127.0.0.1:8080", address);
    if (port > 65535)
        return config_wrong(o, where, "\"%s\": the port is more than 65535", address);
    const char *host = address;
    size_t host_bytes = (size_t)(colon - address);
    bool is_bracketed = host_bytes >= 2 && host[0] == '[' && host[host_bytes - 1] == ']';
    if (is_bracketed) {
        host++;
        host_bytes -= 2;
    } else if (memchr(host, ':', host_bytes) != NULL) {
        return config_wrong(o, where, "\"%s\": an IPv6 address stands in brackets, as [::1]:8080",
                            address);
    }
    if (!o->has_listeners) {
        c->server.listener_count = 0;
        o->has_listeners = true;
    }
    if (c->server.listener_count == SERVER_LISTENERS_MAX)
        return config_wrong(o, where, "more than %d listeners", SERVER_LISTENERS_MAX);
    char *copy = arena_copy_string(&c->memory, host, host_bytes);
    if (copy == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the configuration");
    c->server.listeners[c->server.listener_count++] =
        (server_listener){.host = copy, .port = (uint16_t)port, .is_tls = is_tls};
    return STATUS_OK;
}

static status read_listeners(config *c, const config_key *k, const json_t *value, config_origin *o,
                             const json_path *path)
{
    if (json_is_string(value))
        return config_add_listener(c, json_string_value(value), k->minimum != 0, o, path);
    if (!json_is_array(value))
        return wrong_type(o, path, "an array of \"HOST:PORT\"", value);
    if (!o->has_listeners) {
        c->server.listener_count = 0;
        o->has_listeners = true;
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        json_path here = {path, NULL, i};
        const json_t *item = json_array_get(value, i);
        if (!json_is_string(item))
            return wrong_type(o, &here, "a string \"HOST:PORT\"", item);
        status s = config_add_listener(c, json_string_value(item), k->minimum != 0, o, &here);
        if (s)
            return s;
    }
    return STATUS_OK;
}

static status add_device(config *c, const json_t *value, config_origin *o, const json_path *path)
{
    if (!json_is_string(value))
        return wrong_type(o, path, "a string", value);
    const char *text = json_string_value(value), *copy = NULL;
    bool is_pjrt = strncmp(text, "pjrt:", 5) == 0 && text[5] != 0;
    if (strcmp(text, "cpu") != 0 && !is_pjrt)
        return config_wrong(o, path, "\"%s\" is no device: cpu, or pjrt: and the plugin's path",
                            text);
    if (!o->has_devices) {
        c->device_count = 0;
        o->has_devices = true;
    }
    if (c->device_count == CONFIG_DEVICES_MAX)
        return config_wrong(o, path, "more than %d devices", CONFIG_DEVICES_MAX);
    status s = copy_string(c, o, path, value, &copy);
    if (s)
        return s;
    for (int i = 0; i < c->device_count; i++)
        if (strcmp(c->devices[i], copy) == 0)
            return config_wrong(o, path, "\"%s\" stands there twice", copy);
    c->devices[c->device_count++] = copy;
    return STATUS_OK;
}

static status read_devices(config *c, const json_t *value, config_origin *o, const json_path *path)
{
    if (json_is_string(value))
        return add_device(c, value, o, path);
    if (!json_is_array(value))
        return wrong_type(o, path, "an array of strings", value);
    for (size_t i = 0; i < json_array_size(value); i++) {
        json_path here = {path, NULL, i};
        status s = add_device(c, json_array_get(value, i), o, &here);
        if (s)
            return s;
    }
    return STATUS_OK;
}

/* A name is part of URLs and metric labels. */
static bool is_model_name(const char *name, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        unsigned char ch = (unsigned char)name[i];
        if (ch <= ' ' || ch >= 0x7f || strchr("/?#%\"\\:", ch) != NULL)
            return false;
    }
    return bytes > 0 && bytes < 128;
}

status config_add_model(config *c, const char *name, size_t name_bytes, const char *path,
                        const config_origin *o, const json_path *where,
                        repository_model_options **out)
{
    if (!is_model_name(name, name_bytes))
        return config_wrong(o, where,
                            "\"%.*s\" is no model name: 1 to 127 printable characters without "
                            "/ ? # %% : \" \\ and spaces",
                            (int)name_bytes, name);
    int index = 0;
    while (index < c->repository.model_count &&
           (strlen(c->model_list[index].name) != name_bytes ||
            memcmp(c->model_list[index].name, name, name_bytes) != 0))
        index++;
    if (index == CONFIG_MODELS_MAX)
        return config_wrong(o, where, "more than %d models", CONFIG_MODELS_MAX);
    /* A flag overrides the file; of two flags neither would be the obvious one. */
    if (index < c->repository.model_count && o->flag != NULL && c->is_model_of_flag[index])
        return config_wrong(o, where, "model \"%.*s\" is given twice", (int)name_bytes, name);
    c->is_model_of_flag[index] = o->flag != NULL;
    char *name_copy = arena_copy_string(&c->memory, name, name_bytes);
    char *path_copy = arena_copy_string(&c->memory, path, strlen(path));
    if (name_copy == NULL || path_copy == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the configuration");
    c->model_list[index] = (repository_model_options){.name = name_copy, .path = path_copy};
    if (index == c->repository.model_count)
        c->repository.model_count++;
    c->repository.models = c->model_list;
    *out = &c->model_list[index];
    return STATUS_OK;
}

static status unknown_key(const config_origin *o, const json_path *path, const char *near)
{
    if (near != NULL)
        return config_wrong(o, path, "unknown key; did you mean \"%s\"?", near);
    return config_wrong(o, path, "unknown key");
}

static status read_model(config *c, const char *name, json_t *entry, const config_origin *o,
                         const json_path *path)
{
    const json_t *model_path = entry; /* "name": "path" is short for {"path": ...} */
    const json_t *precision = NULL;
    json_path path_here = *path, precision_here = {path, "precision", 0};
    if (json_is_object(entry)) {
        const char *key;
        json_t *value;
        json_object_foreach(entry, key, value)
        {
            json_path here = {path, key, 0};
            if (strcmp(key, "path") != 0 && strcmp(key, "precision") != 0)
                return unknown_key(
                    o, &here,
                    nearest_find(key, config_model_keys, count_choices(config_model_keys)));
        }
        model_path = json_object_get(entry, "path");
        precision = json_object_get(entry, "precision");
        path_here = (json_path){path, "path", 0};
        if (model_path == NULL)
            return config_wrong(o, path, "the key \"path\" is missing");
    }
    if (!json_is_string(model_path))
        return wrong_type(o, &path_here, "a string", model_path);
    if (json_string_length(model_path) == 0)
        return config_wrong(o, &path_here, "is empty");
    int choice = 0;
    bool has_precision = precision != NULL && !json_is_null(precision);
    if (has_precision) {
        status s = read_choice(device_precision_names, precision, o, &precision_here, &choice);
        if (s)
            return s;
    }
    repository_model_options *added;
    status s =
        config_add_model(c, name, strlen(name), json_string_value(model_path), o, path, &added);
    if (s)
        return s;
    added->precision = (device_precision)choice;
    added->has_precision = has_precision;
    return STATUS_OK;
}

static status read_models(config *c, json_t *value, const config_origin *o, const json_path *path)
{
    if (!json_is_object(value))
        return wrong_type(o, path, "an object of models by name", value);
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

static status read_quota(const json_t *value, const config_origin *o, const json_path *path,
                         int64_t minimum, int64_t maximum, int64_t *out)
{
    if (value == NULL || json_is_null(value))
        return STATUS_OK;
    if (!json_is_integer(value))
        return wrong_type(o, path, "an integer", value);
    int64_t n = json_integer_value(value);
    if (n < minimum || n > maximum)
        return config_wrong(o, path, "%lld is not from %lld to %lld", (long long)n,
                            (long long)minimum, (long long)maximum);
    *out = n;
    return STATUS_OK;
}

static status read_tenant(config *c, const char *name, json_t *entry, config_origin *o,
                          const json_path *path)
{
    const char *key;
    json_t *value;
    if (!json_is_object(entry))
        return wrong_type(o, path, "an object", entry);
    json_object_foreach(entry, key, value)
    {
        json_path here = {path, key, 0};
        const char *near = nearest_find(key, config_tenant_keys, count_choices(config_tenant_keys));
        if (strcmp(key, "key") && strcmp(key, "weight") && strcmp(key, "requests_per_s") &&
            strcmp(key, "tokens_per_s"))
            return unknown_key(o, &here, near);
    }
    if (c->server.tenant_count == SERVER_TENANTS_MAX)
        return config_wrong(o, path, "more than %d tenants", SERVER_TENANTS_MAX);
    server_tenant *t = &c->server.tenants[c->server.tenant_count];
    json_path key_path = {path, "key", 0}, weight_path = {path, "weight", 0};
    json_path requests_path = {path, "requests_per_s", 0}, tokens_path = {path, "tokens_per_s", 0};
    int64_t weight = 1;
    *t = (server_tenant){.name = arena_copy_string(&c->memory, name, strlen(name))};
    if (t->name == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the configuration");
    value = json_object_get(entry, "key");
    status s = STATUS_OK;
    if (value != NULL && !json_is_null(value)) {
        if (!json_is_string(value))
            return wrong_type(o, &key_path, "a string or null", value);
        if (json_string_length(value) == 0)
            return config_wrong(o, &key_path, "is empty");
        s = copy_string(c, o, &key_path, value, &t->key);
    }
    if (!s)
        s = read_quota(json_object_get(entry, "weight"), o, &weight_path, 1, 1000, &weight);
    if (!s)
        s = read_quota(json_object_get(entry, "requests_per_s"), o, &requests_path, 0, 1000000000,
                       &t->requests_per_s);
    if (!s)
        s = read_quota(json_object_get(entry, "tokens_per_s"), o, &tokens_path, 0, 1000000000000,
                       &t->tokens_per_s);
    t->weight = (uint32_t)weight;
    if (!s)
        c->server.tenant_count++;
    return s;
}

static status read_tenants(config *c, json_t *value, config_origin *o, const json_path *path)
{
    const char *name;
    json_t *entry;
    if (!json_is_object(value))
        return wrong_type(o, path, "an object", value);
    c->server.tenant_count = 0;
    json_object_foreach(value, name, entry)
    {
        json_path here = {path, name, 0};
        if (!is_model_name(name, strlen(name)))
            return config_wrong(o, &here, "is no tenant name: printable characters, no spaces");
        status s = read_tenant(c, name, entry, o, &here);
        if (s)
            return s;
    }
    return STATUS_OK;
}

status config_set(config *c, const config_key *k, const json_t *value, config_origin *o,
                  const json_path *path)
{
    int choice = 0;
    status s;
    switch (k->kind) {
    case CONFIG_BOOL:
        if (!json_is_boolean(value))
            return wrong_type(o, path, "true or false", value);
        *config_key_bool(c, k) = json_is_true(value);
        return STATUS_OK;
    case CONFIG_INTEGER:
        return read_integer(c, k, value, o, path);
    case CONFIG_STRING:
        if (json_is_null(value)) {
            *config_key_string(c, k) = NULL;
            return STATUS_OK;
        }
        if (!json_is_string(value))
            return wrong_type(o, path, "a string or null", value);
        return copy_string(c, o, path, value, config_key_string(c, k));
    case CONFIG_CHOICE:
        s = read_choice(k->choices, value, o, path, &choice);
        if (s)
            return s;
        config_key_set_integer(c, k, choice);
        return STATUS_OK;
    case CONFIG_DEVICES:
        return read_devices(c, value, o, path);
    case CONFIG_LISTENERS:
        return read_listeners(c, k, value, o, path);
    case CONFIG_TENANTS:
        return read_tenants(c, (json_t *)(uintptr_t)value, o, path);
    case CONFIG_MODELS:
        /* jansson iterates over objects through a non-const pointer and changes nothing. */
        return read_models(c, (json_t *)(uintptr_t)value, o, path);
    }
    return STATUS_INTERNAL;
}

/* The nearest name at this level, or the full path of the nearest key of any level. */
static const char *suggest(const char *section, const char *key)
{
    const char *level[NAMES_MAX], *leaves[NAMES_MAX], *paths[NAMES_MAX];
    static _Thread_local char first[64];
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
    if (section == NULL) { /* a misspelt section */
        for (int i = 0; i < config_key_count; i++) {
            const char *dot = strchr(config_keys[i].path, '.');
            if (dot == NULL)
                continue;
            snprintf(first, sizeof first, "%.*s", (int)(dot - config_keys[i].path),
                     config_keys[i].path);
            const char *one[] = {first};
            if (nearest_find(key, one, 1) != NULL)
                return first;
        }
    }
    near = nearest_find(key, leaves, leaf_count);
    for (size_t i = 0; near != NULL && i < leaf_count; i++)
        if (leaves[i] == near)
            return paths[i];
    return NULL;
}

static bool is_section(const char *name)
{
    size_t bytes = strlen(name);
    for (int i = 0; i < config_key_count; i++)
        if (strncmp(config_keys[i].path, name, bytes) == 0 && config_keys[i].path[bytes] == '.')
            return true;
    return false;
}

static status read_member(config *c, const char *section, const char *key, const json_t *value,
                          config_origin *o, const json_path *path)
{
    char full[128];
    snprintf(full, sizeof full, "%s%s%s", section != NULL ? section : "",
             section != NULL ? "." : "", key);
    const config_key *k = strchr(key, '.') == NULL ? config_key_find(full) : NULL;
    if (k == NULL)
        return unknown_key(o, path, suggest(section, key));
    return config_set(c, k, value, o, path);
}

status config_set_path(config *c, const char *path, const json_t *value, config_origin *o)
{
    const config_key *k = config_key_find(path);
    if (k != NULL)
        return config_set(c, k, value, o, &root_path);
    char section[64];
    const char *dot = strchr(path, '.');
    snprintf(section, sizeof section, "%.*s", dot != NULL ? (int)(dot - path) : 0, path);
    const char *near =
        dot != NULL && is_section(section) ? suggest(section, dot + 1) : suggest(NULL, path);
    return unknown_key(o, &root_path, near);
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
    status s = STATUS_OK;
    if (!json_is_object(root))
        s = wrong_type(&o, &root_path, "an object", root);
    const char *key, *inner;
    json_t *value, *inner_value;
    json_object_foreach(root, key, value)
    {
        json_path here = {&root_path, key, 0};
        if (s)
            break;
        if (!is_section(key)) {
            s = read_member(c, NULL, key, value, &o, &here);
            continue;
        }
        if (!json_is_object(value)) {
            s = wrong_type(&o, &here, "an object", value);
            continue;
        }
        json_object_foreach(value, inner, inner_value)
        {
            json_path there = {&here, inner, 0};
            s = read_member(c, key, inner, inner_value, &o, &there);
            if (s)
                break;
        }
    }
    json_decref(root);
    return s;
}

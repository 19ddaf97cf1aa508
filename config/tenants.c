#include "config/tenants.h"

#include <string.h>

#include "config/values.h"

static status read_number(const json_t *value, const config_origin *o, const json_path *path,
                          int64_t minimum, int64_t maximum, int64_t *out)
{
    if (value == NULL || json_is_null(value))
        return STATUS_OK;
    if (!json_is_integer(value))
        return config_fail_type(o, path, "an integer", value);
    int64_t n = json_integer_value(value);
    if (n < minimum || n > maximum)
        return config_fail(o, path, "%lld is not between %lld and %lld", (long long)n,
                           (long long)minimum, (long long)maximum);
    *out = n;
    return STATUS_OK;
}

static status read_tenant(config *c, const char *name, json_t *entry, const config_origin *o,
                          const json_path *path)
{
    static const char *const keys[] = {"key", "weight", "requests_per_s", "tokens_per_s", NULL};
    json_path key_path = {path, "key", 0}, weight_path = {path, "weight", 0};
    json_path requests_path = {path, "requests_per_s", 0}, tokens_path = {path, "tokens_per_s", 0};
    if (!json_is_object(entry))
        return config_fail_type(o, path, "an object", entry);
    status s = config_check_members(entry, keys, o, path);
    if (s)
        return s;
    if (c->server.tenant_count == SERVER_TENANTS_MAX)
        return config_fail(o, path, "more than %d tenants", SERVER_TENANTS_MAX);
    server_tenant *t = &c->server.tenants[c->server.tenant_count];
    *t = (server_tenant){.name = arena_copy_string(&c->memory, name, strlen(name))};
    if (t->name == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the configuration");
    const json_t *key = json_object_get(entry, "key");
    if (key != NULL && !json_is_null(key)) {
        if (!json_is_string(key))
            return config_fail_type(o, &key_path, "a string or null", key);
        s = config_copy_string(c, o, &key_path, key, &t->key);
    }
    int64_t weight = 1;
    if (!s)
        s = read_number(json_object_get(entry, "weight"), o, &weight_path, 1, 1000, &weight);
    if (!s)
        s = read_number(json_object_get(entry, "requests_per_s"), o, &requests_path, 0, 1000000000,
                        &t->requests_per_s);
    if (!s)
        s = read_number(json_object_get(entry, "tokens_per_s"), o, &tokens_path, 0, 1000000000000,
                        &t->tokens_per_s);
    t->weight = (uint32_t)weight;
    if (!s)
        c->server.tenant_count++;
    return s;
}

status config_set_tenants(config *c, json_t *value, const config_origin *o, const json_path *path)
{
    const char *name;
    json_t *entry;
    if (!json_is_object(value))
        return config_fail_type(o, path, "an object", value);
    c->server.tenant_count = 0;
    json_object_foreach(value, name, entry)
    {
        json_path here = {path, name, 0};
        if (!config_is_name(name, strlen(name)))
            return config_fail(o, &here,
                               "is not a tenant name: use 1 to 127 printable "
                               "ASCII characters without spaces and / ? # %% : \" \\");
        status s = read_tenant(c, name, entry, o, &here);
        if (s)
            return s;
    }
    return STATUS_OK;
}

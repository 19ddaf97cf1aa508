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

static status read_key(config *c, const json_t *key, const config_origin *o, const json_path *path,
                       const char **out)
{
    if (key == NULL || json_is_null(key))
        return STATUS_OK;
    if (!json_is_string(key))
        return config_fail_type(o, path, "a string or null", key);
    if (strcmp(json_string_value(key), CONFIG_MASKED_KEY) == 0)
        return config_fail(o, path, "is what --print-config prints in place of a key");
    for (int i = 0; i < c->server.tenant_count; i++) {
        const char *other = c->server.tenants[i].key;
        if (other != NULL && strcmp(other, json_string_value(key)) == 0)
            return config_fail(o, path, "is the key of tenant \"%s\", too",
                               c->server.tenants[i].name);
    }
    return config_copy_string(c, o, path, key, out);
}

static status read_tenant(config *c, const char *name, json_t *entry, const config_origin *o,
                          const json_path *path)
{
    static const char *const keys[] = {"key", "weight", "requests_per_s", "tokens_per_s", NULL};
    bool is_default = strcmp(name, SERVER_DEFAULT_TENANT) == 0;
    json_path key_path = {path, "key", 0}, weight_path = {path, "weight", 0};
    json_path requests_path = {path, "requests_per_s", 0}, tokens_path = {path, "tokens_per_s", 0};
    if (!json_is_object(entry))
        return config_fail_type(o, path, "an object", entry);
    status s = config_check_members(entry, is_default ? keys + 1 : keys, o, path);
    if (s)
        return s;
    if (!is_default && c->server.tenant_count == SERVER_TENANTS_MAX)
        return config_fail(o, path, "more than %d tenants", SERVER_TENANTS_MAX);
    server_tenant *t =
        is_default ? &c->server.default_tenant : &c->server.tenants[c->server.tenant_count];
    *t = (server_tenant){.name = arena_copy_string(&c->memory, name, strlen(name))};
    if (t->name == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the configuration");
    s = read_key(c, json_object_get(entry, "key"), o, &key_path, &t->key);
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
    if (!s && !is_default)
        c->server.tenant_count++;
    return s;
}

static void lower(int64_t *quota, int64_t other)
{
    if (other > 0 && (*quota == 0 || other < *quota))
        *quota = other;
}

/* Of a file that says nothing of clients without a tenant: leaving the key out must gain nothing.
 */
static void derive_default_quota(server_options *o)
{
    for (int i = 0; i < o->tenant_count; i++) {
        lower(&o->default_tenant.requests_per_s, o->tenants[i].requests_per_s);
        lower(&o->default_tenant.tokens_per_s, o->tenants[i].tokens_per_s);
    }
}

status config_set_tenants(config *c, json_t *value, const config_origin *o, const json_path *path)
{
    const char *name;
    json_t *entry;
    if (!json_is_object(value))
        return config_fail_type(o, path, "an object", value);
    c->server.tenant_count = 0;
    c->server.default_tenant = (server_tenant){.name = SERVER_DEFAULT_TENANT, .weight = 1};
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
    if (json_object_get(value, SERVER_DEFAULT_TENANT) == NULL)
        derive_default_quota(&c->server);
    return STATUS_OK;
}

#include "config/lists.h"

#include <stdlib.h>
#include <string.h>

#include "config/values.h"

static bool is_grpc(config_listener_kind kind)
{
    return kind == CONFIG_LISTENER_GRPC || kind == CONFIG_LISTENER_GRPC_TLS;
}

static bool is_of_kind(const server_listener *l, config_listener_kind kind)
{
    return kind == CONFIG_LISTENER_HEALTH  ? l->is_health
           : kind == CONFIG_LISTENER_ADMIN ? l->is_admin
           : is_grpc(kind)                 ? l->is_grpc
                                           : !l->is_health && !l->is_admin && !l->is_grpc;
}

/* The first address from an origin replaces those that stood there; health, administration and
 * gRPC have lists of their own. */
static void begin_listeners(config *c, config_listener_kind kind, config_origin *o)
{
    bool *has = kind == CONFIG_LISTENER_HEALTH  ? &o->has_health_listeners
                : kind == CONFIG_LISTENER_ADMIN ? &o->has_admin_listeners
                : is_grpc(kind)                 ? &o->has_grpc_listeners
                                                : &o->has_listeners;
    int kept = 0;
    if (*has)
        return;
    *has = true;
    for (int i = 0; i < c->server.listener_count; i++) {
        if (!is_of_kind(&c->server.listeners[i], kind))
            c->server.listeners[kept++] = c->server.listeners[i];
    }
    c->server.listener_count = kept;
}

static status append(config *c, server_listener added, config_listener_kind kind, config_origin *o,
                     const json_path *where)
{
    begin_listeners(c, kind, o);
    if (c->server.listener_count == SERVER_LISTENERS_MAX)
        return config_fail(o, where, "more than %d listeners", SERVER_LISTENERS_MAX);
    c->server.listeners[c->server.listener_count++] = added;
    return STATUS_OK;
}

static status add_socket(config *c, const char *path, config_origin *o, const json_path *where)
{
    char *copy = arena_copy_string(&c->memory, path, strlen(path));
    if (copy == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the configuration");
    server_listener added = {.host = "", .path = copy, .is_admin = true};
    return append(c, added, CONFIG_LISTENER_ADMIN, o, where);
}

static status add_listener(config *c, const char *address, config_listener_kind kind,
                           config_origin *o, const json_path *where)
{
    if (kind == CONFIG_LISTENER_ADMIN && strncmp(address, "unix:", 5) == 0 && address[5] != 0)
        return add_socket(c, address + 5, o, where);
    const char *colon = strrchr(address, ':');
    char *end = NULL;
    unsigned long port = colon != NULL ? strtoul(colon + 1, &end, 10) : 0;
    if (colon == NULL || end == colon + 1 || *end != 0 || colon[1] < '0' || colon[1] > '9')
        return config_fail(o, where, "\"%s\" is not HOST:PORT, such as 127.0.0.1:8080", address);
    if (port > 65535)
        return config_fail(o, where, "\"%s\": the port is above 65535", address);
    const char *host = address;
    size_t host_bytes = (size_t)(colon - address);
    bool is_bracketed = host_bytes >= 2 && host[0] == '[' && host[host_bytes - 1] == ']';
    if (is_bracketed) {
        host++;
        host_bytes -= 2;
    } else if (memchr(host, ':', host_bytes) != NULL) {
        return config_fail(o, where, "\"%s\": put the IPv6 address in brackets: [::1]:8080",
                           address);
    }
    char *copy = arena_copy_string(&c->memory, host, host_bytes);
    if (copy == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the configuration");
    server_listener added = {.host = copy,
                             .port = (uint16_t)port,
                             .is_tls =
                                 kind == CONFIG_LISTENER_TLS || kind == CONFIG_LISTENER_GRPC_TLS,
                             .is_health = kind == CONFIG_LISTENER_HEALTH,
                             .is_admin = kind == CONFIG_LISTENER_ADMIN,
                             .is_grpc = is_grpc(kind)};
    return append(c, added, kind, o, where);
}

status config_set_listeners(config *c, const json_t *value, config_listener_kind kind,
                            config_origin *o, const json_path *path)
{
    if (json_is_string(value))
        return add_listener(c, json_string_value(value), kind, o, path);
    if (!json_is_array(value))
        return config_fail_type(o, path, "an array of \"HOST:PORT\"", value);
    begin_listeners(c, kind, o);
    for (size_t i = 0; i < json_array_size(value); i++) {
        json_path here = {path, NULL, i};
        const json_t *item = json_array_get(value, i);
        if (!json_is_string(item))
            return config_fail_type(o, &here, "a string \"HOST:PORT\"", item);
        status s = add_listener(c, json_string_value(item), kind, o, &here);
        if (s)
            return s;
    }
    return STATUS_OK;
}

static status add_device(config *c, const json_t *value, config_origin *o, const json_path *path)
{
    if (!json_is_string(value))
        return config_fail_type(o, path, "a string", value);
    const char *text = json_string_value(value), *copy = NULL;
    bool is_pjrt = strncmp(text, "pjrt:", 5) == 0 && text[5] != 0;
    if (strcmp(text, "cpu") != 0 && !is_pjrt)
        return config_fail(o, path, "\"%s\" is not a device: use cpu or pjrt:PLUGIN.so", text);
    if (!o->has_devices) {
        c->device_count = 0;
        o->has_devices = true;
    }
    if (c->device_count == CONFIG_DEVICES_MAX)
        return config_fail(o, path, "more than %d devices", CONFIG_DEVICES_MAX);
    status s = config_copy_string(c, o, path, value, &copy);
    if (s)
        return s;
    for (int i = 0; i < c->device_count; i++)
        if (strcmp(c->devices[i], copy) == 0)
            return config_fail(o, path, "\"%s\" is listed twice", copy);
    c->devices[c->device_count++] = copy;
    return STATUS_OK;
}

status config_set_devices(config *c, const json_t *value, config_origin *o, const json_path *path)
{
    if (json_is_string(value))
        return add_device(c, value, o, path);
    if (!json_is_array(value))
        return config_fail_type(o, path, "an array of strings", value);
    for (size_t i = 0; i < json_array_size(value); i++) {
        json_path here = {path, NULL, i};
        status s = add_device(c, json_array_get(value, i), o, &here);
        if (s)
            return s;
    }
    return STATUS_OK;
}

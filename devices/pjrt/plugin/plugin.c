#include "devices/pjrt/plugin/plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "devices/pjrt/plugin/internal.h"

static status status_of_code(pjrt_code code)
{
    switch (code) {
    case PJRT_CODE_OK:
        return STATUS_OK;
    case PJRT_CODE_CANCELLED:
        return STATUS_CANCELLED;
    case PJRT_CODE_DEADLINE_EXCEEDED:
        return STATUS_DEADLINE_EXCEEDED;
    case PJRT_CODE_NOT_FOUND:
        return STATUS_NOT_FOUND;
    case PJRT_CODE_RESOURCE_EXHAUSTED:
        return STATUS_RESOURCE_EXHAUSTED;
    case PJRT_CODE_UNIMPLEMENTED:
        return STATUS_UNSUPPORTED;
    case PJRT_CODE_ABORTED:
    case PJRT_CODE_INTERNAL:
    case PJRT_CODE_UNAVAILABLE:
    case PJRT_CODE_DATA_LOSS:
        return STATUS_UNAVAILABLE;
    default:
        return STATUS_INVALID_ARGUMENT;
    }
}

/* `*found`: the plugin's code. Takes the error. */
status pjrt_check_code(const pjrt_plugin *p, pjrt_error *error, const char *what, pjrt_code *found)
{
    *found = PJRT_CODE_OK;
    if (error == NULL)
        return STATUS_OK;
    PJRT_ARGS(pjrt_error_message_args, message);
    message.error = error;
    p->api->error_message(&message);
    PJRT_ARGS(pjrt_error_get_code_args, code);
    code.error = error;
    pjrt_error *nested = p->api->error_get_code(&code);
    if (nested != NULL)
        code.code = PJRT_CODE_UNKNOWN;
    status result = status_of_code(code.code);
    size_t bytes = message.message_size < 600 ? message.message_size : 600;
    status s = status_fail(result ? result : STATUS_INTERNAL, "%s: %.*s (PJRT code %d)", what,
                           (int)bytes, message.message, (int)code.code);
    for (pjrt_error *e = error; e != NULL; e = e == error ? nested : NULL) {
        PJRT_ARGS(pjrt_error_destroy_args, destroy);
        destroy.error = e;
        p->api->error_destroy(&destroy);
    }
    *found = code.code;
    return s;
}

status pjrt_check(const pjrt_plugin *p, pjrt_error *error, const char *what)
{
    pjrt_code ignored;
    return pjrt_check_code(p, error, what, &ignored);
}

/* Not NOT_FOUND: libtpu reports it without a TPU. UNKNOWN: libtpu reports EBUSY so. */
bool pjrt_is_transient(pjrt_code code)
{
    switch (code) {
    case PJRT_CODE_UNKNOWN:
    case PJRT_CODE_DEADLINE_EXCEEDED:
    case PJRT_CODE_ALREADY_EXISTS:
    case PJRT_CODE_RESOURCE_EXHAUSTED:
    case PJRT_CODE_ABORTED:
    case PJRT_CODE_INTERNAL:
    case PJRT_CODE_UNAVAILABLE:
        return true;
    default:
        return false;
    }
}

void pjrt_copy_text(char *to, size_t room, const char *from, size_t bytes)
{
    if (bytes >= room)
        bytes = room - 1;
    memcpy(to, from, bytes);
    to[bytes] = 0;
}

const void *pjrt_extension(const pjrt_plugin *p, pjrt_extension_type type)
{
    const pjrt_extension_base *e = p->api->extension_start;
    while (e != NULL && e->type != (int)type)
        e = e->next;
    return e;
}

static void describe_version(pjrt_plugin *p)
{
    int used = snprintf(p->version_text, sizeof p->version_text, "api %d.%d", p->major, p->minor);
    PJRT_ARGS(pjrt_plugin_attributes_args, attributes);
    if (!PJRT_HAS_FUNCTION(p, plugin_attributes) ||
        pjrt_check(p, p->api->plugin_attributes(&attributes), "reading the plugin's attributes"))
        return;
    for (size_t i = 0; i < attributes.num_attributes; i++) {
        const pjrt_named_value *a = &attributes.attributes[i];
        size_t room = sizeof p->version_text - (size_t)used;
        int more = 0;
        if (a->type == PJRT_VALUE_INT64)
            more = snprintf(p->version_text + used, room, ", %.*s %lld", (int)a->name_size, a->name,
                            (long long)a->int64_value);
        else if (a->type == PJRT_VALUE_INT64_LIST && a->value_size == 3 &&
                 strncmp(a->name, "stablehlo_current", 17) == 0)
            more = snprintf(p->version_text + used, room, ", stablehlo %lld.%lld.%lld",
                            (long long)a->int64_array_value[0], (long long)a->int64_array_value[1],
                            (long long)a->int64_array_value[2]);
        if (more < 0 || (size_t)more >= room) {
            p->version_text[used] = 0;
            return;
        }
        used += more;
    }
}

static status require_functions(const pjrt_plugin *p, const char *path)
{
#define REQUIRE(function)                                                                          \
    if (!PJRT_HAS_FUNCTION(p, function))                                                           \
    return status_fail(STATUS_UNSUPPORTED,                                                         \
                       "%s: PJRT api %d.%d lacks the function " #function                          \
                       ", which penstock (built for %d.%d) needs",                                 \
                       path, p->major, p->minor, PJRT_ABI_MAJOR, PJRT_ABI_MINOR)
    REQUIRE(error_destroy);
    REQUIRE(error_message);
    REQUIRE(error_get_code);
    REQUIRE(plugin_initialize);
    REQUIRE(event_destroy);
    REQUIRE(event_await);
    REQUIRE(client_create);
    REQUIRE(client_platform_name);
    REQUIRE(client_platform_version);
    REQUIRE(client_addressable_devices);
    REQUIRE(client_compile);
    REQUIRE(client_buffer_from_host);
    REQUIRE(device_get_description);
    REQUIRE(device_description_kind);
    REQUIRE(executable_destroy);
    REQUIRE(executable_num_outputs);
    REQUIRE(executable_serialize);
    REQUIRE(loaded_executable_destroy);
    REQUIRE(loaded_executable_get_executable);
    REQUIRE(loaded_executable_execute);
    REQUIRE(executable_deserialize_and_load);
    REQUIRE(buffer_destroy);
    REQUIRE(buffer_to_host);
#undef REQUIRE
    return STATUS_OK;
}

status pjrt_plugin_open(const char *path, pjrt_plugin *out)
{
    if (access(path, R_OK) != 0)
        return status_fail(STATUS_NOT_FOUND, "%s: cannot be read: %m", path);
    pjrt_plugin p = {.library = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    if (p.library == NULL)
        return status_fail(STATUS_UNSUPPORTED, "%s: not a loadable library: %s", path, dlerror());
    pjrt_get_api_fn get_api = NULL;
    *(void **)&get_api = dlsym(p.library, PJRT_GET_API_SYMBOL);
    if (get_api == NULL)
        return status_fail(STATUS_UNSUPPORTED, "%s: not a PJRT plugin: it has no symbol %s", path,
                           PJRT_GET_API_SYMBOL);
    p.api = get_api();
    if (p.api == NULL || p.api->struct_size < offsetof(pjrt_api, error_destroy))
        return status_fail(STATUS_UNSUPPORTED, "%s: %s gave no usable table", path,
                           PJRT_GET_API_SYMBOL);
    p.api_bytes = p.api->struct_size;
    p.major = p.api->version.major_version;
    p.minor = p.api->version.minor_version;
    if (p.major != PJRT_ABI_MAJOR)
        return status_fail(STATUS_UNSUPPORTED,
                           "%s: the plugin speaks PJRT api %d.%d, penstock was built for %d.%d: "
                           "the major versions "
                           "must be equal; use a plugin release of the other major",
                           path, p.major, p.minor, PJRT_ABI_MAJOR, PJRT_ABI_MINOR);
    status s = require_functions(&p, path);
    if (s)
        return s;
    PJRT_ARGS(pjrt_plugin_initialize_args, initialize);
    pjrt_code code;
    s = pjrt_check_code(&p, p.api->plugin_initialize(&initialize), "initialising the plugin",
                        &code);
    if (s)
        return status_prefix(pjrt_is_transient(code) ? STATUS_UNAVAILABLE : STATUS_UNSUPPORTED,
                             "%s", path);
    describe_version(&p);
    *out = p;
    return STATUS_OK;
}

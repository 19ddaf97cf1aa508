#include "devices/pjrt/plugin/fingerprint.h"

#include <stdio.h>

#include "base/identity/content_hash.h"
#include "devices/pjrt/plugin/internal.h"

/* The extension, if it has all of the functions that we call. */
static const pjrt_abi_extension *find_abi(const pjrt_plugin *p)
{
    const pjrt_abi_extension *abi = pjrt_extension(p, PJRT_EXTENSION_ABI_VERSION);
    if (abi == NULL || abi->base.struct_size < sizeof *abi || abi->client_runtime_abi == NULL ||
        abi->executable_abi == NULL || abi->runtime_abi_destroy == NULL ||
        abi->runtime_abi_is_compatible_with_executable == NULL ||
        abi->runtime_abi_to_proto == NULL || abi->executable_abi_destroy == NULL)
        return NULL;
    return abi;
}

static status open_runtime(const pjrt_session *s, const pjrt_abi_extension *abi,
                           pjrt_runtime_abi **out)
{
    pjrt_client_runtime_abi_args get = {.struct_size = sizeof get, .client = s->client};
    status result = pjrt_check(s->plugin, abi->client_runtime_abi(&get), "reading the ABI version");
    if (result == STATUS_OK)
        *out = get.abi;
    return result;
}

static void close_runtime(const pjrt_session *s, const pjrt_abi_extension *abi,
                          pjrt_runtime_abi *runtime)
{
    pjrt_runtime_abi_args destroy = {.struct_size = sizeof destroy, .abi = runtime};
    status ignored =
        pjrt_check(s->plugin, abi->runtime_abi_destroy(&destroy), "releasing the ABI version");
    (void)ignored;
}

static bool hash_abi(const pjrt_session *s, uint64_t *out)
{
    const pjrt_abi_extension *abi = find_abi(s->plugin);
    pjrt_runtime_abi *runtime;
    if (abi == NULL || open_runtime(s, abi, &runtime))
        return false;
    pjrt_runtime_abi_to_proto_args proto = {.struct_size = sizeof proto, .abi = runtime};
    status result =
        pjrt_check(s->plugin, abi->runtime_abi_to_proto(&proto), "reading the ABI version");
    if (result == STATUS_OK) {
        *out = content_hash(0, proto.serialized, proto.serialized_bytes);
        if (proto.deleter != NULL)
            proto.deleter(proto.holder);
    }
    close_runtime(s, abi, runtime);
    return result == STATUS_OK;
}

static bool hash_topology(const pjrt_session *s, uint64_t *out)
{
    const pjrt_plugin *p = s->plugin;
    if (!PJRT_HAS_FUNCTION(p, client_topology) || !PJRT_HAS_FUNCTION(p, topology_fingerprint))
        return false;
    PJRT_ARGS(pjrt_client_topology_args, get);
    get.client = s->client;
    if (pjrt_check(p, p->api->client_topology(&get), "reading the topology"))
        return false;
    PJRT_ARGS(pjrt_topology_fingerprint_args, fingerprint);
    fingerprint.topology = get.topology;
    if (pjrt_check(p, p->api->topology_fingerprint(&fingerprint), "reading the topology"))
        return false;
    *out = fingerprint.fingerprint;
    return true;
}

void pjrt_session_fingerprint(const pjrt_session *s, char out[PJRT_FINGERPRINT_BYTES])
{
    uint64_t hash;
    int n = 0;
    out[0] = 0;
    if (hash_abi(s, &hash))
        n = snprintf(out, PJRT_FINGERPRINT_BYTES, "abi %016llx", (unsigned long long)hash);
    if (hash_topology(s, &hash))
        snprintf(out + n, (size_t)(PJRT_FINGERPRINT_BYTES - n), "%stopology %016llx",
                 n > 0 ? " " : "", (unsigned long long)hash);
}

static status compare(const pjrt_session *s, const pjrt_abi_extension *abi, pjrt_executable *e)
{
    pjrt_runtime_abi *runtime;
    pjrt_executable_get_abi_args get = {.struct_size = sizeof get, .executable = e};
    /* A program that tells no version is not refused: only the plugin's own word counts. */
    if (pjrt_check(s->plugin, abi->executable_abi(&get), "reading a program's ABI version") ||
        open_runtime(s, abi, &runtime))
        return STATUS_OK;
    pjrt_runtime_abi_compare_args compare = {
        .struct_size = sizeof compare, .abi = runtime, .executable_abi = get.abi};
    status result = pjrt_check(s->plugin, abi->runtime_abi_is_compatible_with_executable(&compare),
                               "the program is of another runtime");
    if (result)
        result = status_prefix(STATUS_UNSUPPORTED, "refused by the plugin");
    close_runtime(s, abi, runtime);
    pjrt_executable_abi_args destroy = {.struct_size = sizeof destroy, .abi = get.abi};
    status ignored = pjrt_check(s->plugin, abi->executable_abi_destroy(&destroy),
                                "releasing a program's ABI version");
    (void)ignored;
    return result;
}

status pjrt_session_check_abi(const pjrt_session *s, pjrt_loaded_executable *e)
{
    const pjrt_abi_extension *abi = find_abi(s->plugin);
    if (abi == NULL)
        return STATUS_OK;
    PJRT_ARGS(pjrt_loaded_executable_get_executable_args, get);
    get.loaded_executable = e;
    status result = pjrt_check(s->plugin, s->plugin->api->loaded_executable_get_executable(&get),
                               "reading a loaded program");
    if (result)
        return result;
    result = compare(s, abi, get.executable);
    pjrt_executable_destroy(s->plugin, get.executable);
    return result;
}

#include "devices/pjrt/plugin/ahead_of_time.h"

#include <stdlib.h>
#include <string.h>

#include "devices/pjrt/plugin/internal.h"

void pjrt_ahead_of_time_dispose(pjrt_ahead_of_time *a)
{
    free(a->serialized.data);
    free(a->optimized_hlo.data);
    *a = (pjrt_ahead_of_time){0};
}

static void close_topology(const pjrt_plugin *p, pjrt_topology *t)
{
    PJRT_ARGS(pjrt_topology_args, destroy);
    destroy.topology = t;
    status ignored = pjrt_check(p, p->api->topology_destroy(&destroy), "releasing the target");
    (void)ignored;
}

/* A target without a device, and what its chips are called. */
static status open_topology(const pjrt_plugin *p, const char *name, pjrt_topology **out,
                            char device_kind[64])
{
    if (!PJRT_HAS_FUNCTION(p, topology_create) || !PJRT_HAS_FUNCTION(p, compile) ||
        !PJRT_HAS_FUNCTION(p, topology_destroy) ||
        !PJRT_HAS_FUNCTION(p, topology_get_device_descriptions))
        return status_fail(STATUS_UNSUPPORTED, "this plugin cannot compile without a device");
    PJRT_ARGS(pjrt_topology_create_args, create);
    create.topology_name = name;
    create.topology_name_size = strlen(name);
    status s = pjrt_check(p, p->api->topology_create(&create), "describing the target");
    if (s)
        return status_prefix(s, "target \"%s\"", name);
    PJRT_ARGS(pjrt_topology_descriptions_args, descriptions);
    descriptions.topology = create.topology;
    s = pjrt_check(p, p->api->topology_get_device_descriptions(&descriptions),
                   "describing the target");
    device_kind[0] = 0;
    if (s == STATUS_OK && descriptions.num_descriptions > 0)
        s = pjrt_kind_of_description(p, descriptions.descriptions[0], device_kind);
    if (s)
        close_topology(p, create.topology);
    else
        *out = create.topology;
    return s;
}

status pjrt_topology_kind(const pjrt_plugin *p, const char *topology, char device_kind[64])
{
    pjrt_topology *t;
    status s = open_topology(p, topology, &t, device_kind);
    if (s == STATUS_OK)
        close_topology(p, t);
    return s;
}

status pjrt_compile_ahead(const pjrt_plugin *p, const char *topology, const char *program,
                          size_t bytes, pjrt_ahead_of_time *out)
{
    pjrt_ahead_of_time made = {0};
    pjrt_topology *target;
    status s = open_topology(p, topology, &target, made.device_kind);
    if (s)
        return s;
    pjrt_program source = pjrt_mlir_program(program, bytes);
    PJRT_ARGS(pjrt_compile_args, compile);
    compile.topology = target;
    compile.program = &source;
    compile.compile_options = pjrt_compile_options;
    compile.compile_options_size = sizeof pjrt_compile_options;
    s = pjrt_check(p, p->api->compile(&compile), "compiling");
    if (s == STATUS_OK) {
        made.memory = pjrt_executable_memory(p, compile.executable);
        pjrt_executable_optimized(p, compile.executable, &made.optimized_hlo);
        s = pjrt_executable_serialize(p, compile.executable, &made.serialized);
        pjrt_executable_destroy(p, compile.executable);
    }
    close_topology(p, target);
    if (s)
        pjrt_ahead_of_time_dispose(&made);
    else
        *out = made;
    return s;
}

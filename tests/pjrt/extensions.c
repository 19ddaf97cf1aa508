/* Part of the fault plugin: extensions of the API that the inner plugin does not have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices/pjrt/plugin/abi_extensions.h"
#include "tests/pjrt/fault.h"

/* --- AbiVersion --- */

/* Stand for the only runtime, and for all programs. */
static char the_runtime, a_program;

static pjrt_error *runtime_abi(pjrt_client_runtime_abi_args *a)
{
    a->abi = (pjrt_runtime_abi *)&the_runtime;
    return NULL;
}

static pjrt_error *executable_abi(pjrt_executable_get_abi_args *a)
{
    a->abi = (pjrt_executable_abi *)&a_program;
    return NULL;
}

static pjrt_error *runtime_abi_destroy(pjrt_runtime_abi_args *a)
{
    a->abi = NULL;
    return NULL;
}

static pjrt_error *executable_abi_destroy(pjrt_executable_abi_args *a)
{
    a->abi = NULL;
    return NULL;
}

static bool refuses; /* all programs but those that this process has compiled */

static pjrt_error *is_compatible(pjrt_runtime_abi_compare_args *a)
{
    (void)a;
    return refuses ? fault_error_make(PJRT_CODE_FAILED_PRECONDITION, "another runtime's program")
                   : NULL;
}

static pjrt_error *to_proto(pjrt_runtime_abi_to_proto_args *a)
{
    char *text = strdup(fault_order("ABI"));
    a->serialized = text;
    a->serialized_bytes = strlen(text);
    a->holder = text;
    a->deleter = free;
    return NULL;
}

static pjrt_abi_extension abi = {
    .base = {.struct_size = sizeof abi, .type = PJRT_EXTENSION_ABI_VERSION},
    .client_runtime_abi = runtime_abi,
    .executable_abi = executable_abi,
    .runtime_abi_destroy = runtime_abi_destroy,
    .runtime_abi_is_compatible_with_executable = is_compatible,
    .runtime_abi_to_proto = to_proto,
    .executable_abi_destroy = executable_abi_destroy,
};

static pjrt_error *(*next_compile)(pjrt_client_compile_args *);

static pjrt_error *compile(pjrt_client_compile_args *a)
{
    refuses = false;
    return next_compile(a);
}

/* --- the topology --- */

static pjrt_error *topology(pjrt_client_topology_args *a)
{
    a->topology = (pjrt_topology *)&the_runtime;
    return NULL;
}

static pjrt_error *fingerprint(pjrt_topology_fingerprint_args *a)
{
    a->fingerprint = fault_number("FINGERPRINT");
    return NULL;
}

static pjrt_error *platform(pjrt_client_text_args *a)
{
    a->text = fault_order("PLATFORM");
    a->text_size = strlen(a->text);
    return NULL;
}

static void add(pjrt_api *outer, pjrt_extension_base *e)
{
    e->next = outer->extension_start;
    outer->extension_start = e;
}

void fault_extend(pjrt_api *outer)
{
    if (fault_order("ABI") != NULL)
        add(outer, &abi.base);
    refuses = fault_order("ABI_REFUSES") != NULL;
    next_compile = outer->client_compile;
    if (refuses)
        outer->client_compile = compile;
    if (fault_order("PLATFORM") != NULL)
        outer->client_platform_name = platform;
    if (fault_order("FINGERPRINT") != NULL) {
        outer->struct_size = sizeof *outer;
        outer->client_topology = topology;
        outer->topology_fingerprint = fingerprint;
    }
}

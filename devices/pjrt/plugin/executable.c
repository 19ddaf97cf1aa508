#include <stdlib.h>
#include <string.h>

#include "devices/pjrt/plugin/internal.h"
#include "devices/pjrt/plugin/session.h"

/* Programs: compiled, kept as bytes, loaded again. */

/* CompileOptionsProto { executable_build_options { num_replicas: 1 num_partitions: 1 } }: the least
 * that all plugins accept. */
const char pjrt_compile_options[PJRT_COMPILE_OPTIONS_BYTES] = {0x1a, 4, 0x20, 1, 0x28, 1, 0x20, 1};

pjrt_program pjrt_mlir_program(const char *program, size_t bytes)
{
    return (pjrt_program){.struct_size = sizeof(pjrt_program),
                          .code = (char *)program, /* the plugin only reads it */
                          .code_size = bytes,
                          .format = "mlir",
                          .format_size = 4};
}

void pjrt_executable_destroy(const pjrt_plugin *p, pjrt_executable *e)
{
    PJRT_ARGS(pjrt_executable_args, destroy);
    destroy.executable = e;
    status ignored =
        pjrt_check(p, p->api->executable_destroy(&destroy), "destroying an executable");
    (void)ignored;
}

status pjrt_executable_serialize(const pjrt_plugin *p, pjrt_executable *e, pjrt_bytes *out)
{
    PJRT_ARGS(pjrt_executable_serialize_args, args);
    args.executable = e;
    status s = pjrt_check(p, p->api->executable_serialize(&args), "serialising a program");
    if (s)
        return s;
    pjrt_bytes bytes = {malloc(args.serialized_bytes_size ? args.serialized_bytes_size : 1),
                        args.serialized_bytes_size};
    if (bytes.data != NULL)
        memcpy(bytes.data, args.serialized_bytes, bytes.bytes);
    if (args.serialized_executable_deleter != NULL)
        args.serialized_executable_deleter(args.serialized_executable);
    if (bytes.data == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a program of %zu bytes",
                           bytes.bytes);
    *out = bytes;
    return STATUS_OK;
}

/* Optional: a plugin need not show its optimized program. */
void pjrt_executable_optimized(const pjrt_plugin *p, pjrt_executable *e, pjrt_bytes *out)
{
    if (!PJRT_HAS_FUNCTION(p, executable_optimized_program))
        return;
    PJRT_ARGS(pjrt_program, program);
    PJRT_ARGS(pjrt_executable_optimized_program_args, get);
    get.executable = e;
    get.program = &program;
    if (pjrt_check(p, p->api->executable_optimized_program(&get), "reading the optimized program"))
        return;
    program.code = malloc(program.code_size ? program.code_size : 1);
    if (program.code == NULL)
        return;
    if (pjrt_check(p, p->api->executable_optimized_program(&get),
                   "reading the optimized program")) {
        free(program.code);
        return;
    }
    *out = (pjrt_bytes){program.code, program.code_size};
}

pjrt_memory_plan pjrt_executable_memory(const pjrt_plugin *p, pjrt_executable *e)
{
    pjrt_memory_plan plan = {-1, -1, -1, -1, -1};
    PJRT_ARGS(pjrt_executable_code_size_args, code);
    code.executable = e;
    if (PJRT_HAS_FUNCTION(p, executable_code_size) &&
        pjrt_check(p, p->api->executable_code_size(&code), "reading the code size") == STATUS_OK)
        plan.code = code.size_in_bytes;
    PJRT_ARGS(pjrt_executable_memory_stats_args, memory);
    memory.executable = e;
    if (!PJRT_HAS_FUNCTION(p, executable_get_compiled_memory_stats) ||
        pjrt_check(p, p->api->executable_get_compiled_memory_stats(&memory),
                   "reading the memory plan"))
        return plan;
    plan.arguments = memory.argument_bytes;
    plan.outputs = memory.output_bytes;
    plan.temporary = memory.temp_bytes;
    plan.peak = memory.peak_memory_bytes;
    return plan;
}

status pjrt_session_compile(const pjrt_session *s, int device, const char *program, size_t bytes,
                            pjrt_loaded_executable **out)
{
    (void)device; /* one replica, not bound: execute_device chooses at run time where the plugin
                     allows it */
    pjrt_program source = pjrt_mlir_program(program, bytes);
    PJRT_ARGS(pjrt_client_compile_args, compile);
    compile.client = s->client;
    compile.program = &source;
    compile.compile_options = pjrt_compile_options;
    compile.compile_options_size = sizeof pjrt_compile_options;
    status result = pjrt_check(s->plugin, s->plugin->api->client_compile(&compile), "compiling");
    if (result == STATUS_OK)
        *out = compile.executable;
    return result;
}

static status executable_of(const pjrt_session *s, pjrt_loaded_executable *e, pjrt_executable **out)
{
    PJRT_ARGS(pjrt_loaded_executable_get_executable_args, get);
    get.loaded_executable = e;
    status result = pjrt_check(s->plugin, s->plugin->api->loaded_executable_get_executable(&get),
                               "reading a loaded program");
    if (result == STATUS_OK)
        *out = get.executable;
    return result;
}

status pjrt_session_serialize(const pjrt_session *s, pjrt_loaded_executable *e, pjrt_bytes *out)
{
    pjrt_executable *executable;
    status result = executable_of(s, e, &executable);
    if (result)
        return result;
    result = pjrt_executable_serialize(s->plugin, executable, out);
    pjrt_executable_destroy(s->plugin, executable);
    return result;
}

status pjrt_session_load(const pjrt_session *s, const void *serialized, size_t bytes,
                         pjrt_loaded_executable **out)
{
    PJRT_ARGS(pjrt_executable_deserialize_args, load);
    load.client = s->client;
    load.serialized_executable = serialized;
    load.serialized_executable_size = bytes;
    status result = pjrt_check(s->plugin, s->plugin->api->executable_deserialize_and_load(&load),
                               "loading a program");
    if (result == STATUS_OK)
        *out = load.loaded_executable;
    return result;
}

status pjrt_session_output_count(const pjrt_session *s, pjrt_loaded_executable *e, int *out)
{
    pjrt_executable *executable;
    status result = executable_of(s, e, &executable);
    if (result)
        return result;
    PJRT_ARGS(pjrt_executable_num_outputs_args, count);
    count.executable = executable;
    result =
        pjrt_check(s->plugin, s->plugin->api->executable_num_outputs(&count), "counting outputs");
    pjrt_executable_destroy(s->plugin, executable);
    if (result == STATUS_OK)
        *out = (int)count.num_outputs;
    return result;
}

void pjrt_session_release(const pjrt_session *s, pjrt_loaded_executable *e)
{
    PJRT_ARGS(pjrt_loaded_executable_args, destroy);
    destroy.executable = e;
    status ignored = pjrt_check(s->plugin, s->plugin->api->loaded_executable_destroy(&destroy),
                                "releasing a program");
    (void)ignored;
}

void pjrt_session_optimized(const pjrt_session *s, pjrt_loaded_executable *e, pjrt_bytes *out)
{
    pjrt_executable *executable;
    if (executable_of(s, e, &executable))
        return;
    pjrt_executable_optimized(s->plugin, executable, out);
    pjrt_executable_destroy(s->plugin, executable);
}

pjrt_memory_plan pjrt_session_memory_plan(const pjrt_session *s, pjrt_loaded_executable *e)
{
    pjrt_executable *executable;
    if (executable_of(s, e, &executable))
        return (pjrt_memory_plan){-1, -1, -1, -1, -1};
    pjrt_memory_plan plan = pjrt_executable_memory(s->plugin, executable);
    pjrt_executable_destroy(s->plugin, executable);
    return plan;
}

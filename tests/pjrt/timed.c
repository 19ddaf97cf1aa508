/* Part of the fault plugin: notes how long the inner plugin's calls last, in the file that
 * PENSTOCK_FAULT_TIMES names: a line for each, "KIND BEGIN END", in microseconds. */
#include <time.h>

#include "tests/pjrt/fault.h"

static unsigned long long now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (unsigned long long)t.tv_sec * 1000000u + (unsigned long long)t.tv_nsec / 1000u;
}

#define TIMED(kind, args, name)                                                                    \
    static pjrt_error *(*next_##name)(args *);                                                     \
    static pjrt_error *name(args *a)                                                               \
    {                                                                                              \
        unsigned long long begin = now_us();                                                       \
        pjrt_error *failure = next_##name(a);                                                      \
        fault_tell("TIMES", "%s %llu %llu", kind, begin, now_us());                                \
        return failure;                                                                            \
    }

TIMED("initialise", pjrt_plugin_initialize_args, plugin_initialize)
TIMED("open", pjrt_client_create_args, client_create)
TIMED("compile", pjrt_client_compile_args, client_compile)
TIMED("load", pjrt_executable_deserialize_args, executable_deserialize_and_load)
TIMED("upload", pjrt_client_buffer_from_host_args, client_buffer_from_host)
TIMED("execute", pjrt_execute_args, loaded_executable_execute)
TIMED("await", pjrt_event_args, event_await)

void fault_time(pjrt_api *outer)
{
    if (fault_order("TIMES") == NULL)
        return;
#define USE(name) next_##name = outer->name, outer->name = name
    USE(plugin_initialize);
    USE(client_create);
    USE(client_compile);
    USE(executable_deserialize_and_load);
    USE(client_buffer_from_host);
    USE(loaded_executable_execute);
    USE(event_await);
}

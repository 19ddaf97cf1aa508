#ifndef DEVICES_PJRT_PLUGIN_INTERNAL_H
#define DEVICES_PJRT_PLUGIN_INTERNAL_H

#include "devices/pjrt/plugin/abi_extensions.h"
#include "devices/pjrt/plugin/plugin.h"

/* Shared by the files of this folder. */

/* Every args struct is zeroed and carries its own size (abi.h, rules). */
#define PJRT_ARGS(type, name) type name = {.struct_size = sizeof(type)}

/* A plugin has a function when its table is long enough and the pointer is not NULL. */
#define PJRT_HAS_FUNCTION(p, function)                                                             \
    (offsetof(pjrt_api, function) + sizeof((p)->api->function) <= (p)->api_bytes &&                \
     (p)->api->function != NULL)

/* The plugin's extension of that type; NULL: it has none. */
const void *pjrt_extension(const pjrt_plugin *p, pjrt_extension_type type);

/* As pjrt_check; `*found`: the plugin's code. */
status pjrt_check_code(const pjrt_plugin *p, pjrt_error *error, const char *what,
                       pjrt_code *found) MUST_CHECK;
/* Opening a device fails with this code while another process holds it, or while its driver starts:
 * a later try may succeed. */
bool pjrt_is_transient(pjrt_code code);
/* Cuts what does not fit in `room` bytes, the terminating zero included. */
void pjrt_copy_text(char *to, size_t room, const char *from, size_t bytes);
status pjrt_kind_of_description(const pjrt_plugin *p, pjrt_device_description *description,
                                char out[64]) MUST_CHECK;

/* --- programs --- */

#define PJRT_COMPILE_OPTIONS_BYTES 8
extern const char pjrt_compile_options[PJRT_COMPILE_OPTIONS_BYTES];

/* StableHLO, text or bytecode, as compilers take it. Borrows `program`. */
pjrt_program pjrt_mlir_program(const char *program, size_t bytes);
status pjrt_executable_serialize(const pjrt_plugin *p, pjrt_executable *e,
                                 pjrt_bytes *out) MUST_CHECK;
/* `*out` is left alone where the plugin does not show its optimized program. */
void pjrt_executable_optimized(const pjrt_plugin *p, pjrt_executable *e, pjrt_bytes *out);
pjrt_memory_plan pjrt_executable_memory(const pjrt_plugin *p, pjrt_executable *e);
void pjrt_executable_destroy(const pjrt_plugin *p, pjrt_executable *e);

#endif

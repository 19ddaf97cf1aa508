#ifndef DEVICES_PJRT_PLUGIN_INTERNAL_H
#define DEVICES_PJRT_PLUGIN_INTERNAL_H

#include "devices/pjrt/plugin/plugin.h"

/* How the files that call a plugin do it: pjrt_plugin.c, pjrt_session.c, pjrt_executable.c and
 * pjrt_ahead_of_time.c. */

/* Every args struct is zeroed and carries its own size (pjrt_abi.h, rules). */
#define PJRT_ARGS(type, name) type name = {.struct_size = sizeof(type)}

/* A slot exists when it lies inside the table the plugin says it has, and is not NULL. */
#define PJRT_HAS_SLOT(p, slot)                                                                     \
    (offsetof(pjrt_api, slot) + sizeof((p)->api->slot) <= (p)->api_bytes && (p)->api->slot != NULL)

/* As pjrt_check; `*found`: the plugin's code. */
status pjrt_check_code(const pjrt_plugin *p, pjrt_error *error, const char *what,
                       pjrt_code *found) MUST_CHECK;
/* Does opening a device fail with this while another process still holds it, or while its driver
 * comes up? */
bool pjrt_may_pass(pjrt_code code);
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
/* `*out` stays as it is where the plugin keeps its optimized program to itself. */
void pjrt_executable_optimized(const pjrt_plugin *p, pjrt_executable *e, pjrt_bytes *out);
void pjrt_executable_destroy(const pjrt_plugin *p, pjrt_executable *e);

#endif

#ifndef DEVICES_PJRT_PLUGIN_PLUGIN_H
#define DEVICES_PJRT_PLUGIN_PLUGIN_H

#include "base/status.h"
#include "devices/pjrt/plugin/abi.h"

/* A PJRT plugin loaded into this process: the C API with our statuses. Used inside the device host
 * (a child process) and by `penstock compile`; the server itself never loads a plugin. All
 * functions may be called from any thread. */

typedef struct pjrt_plugin {
    void *library;
    const pjrt_api *api;
    int major, minor;
    size_t api_bytes;
    char version_text[160]; /* "api 0.81, stablehlo 1.17.0, xla 2": what identifies the compiler,
                               for cache keys and logs */
} pjrt_plugin;

/* Loads the library, negotiates the version, runs the plugin's initialisation.
 * STATUS_NOT_FOUND: no such file; STATUS_UNSUPPORTED: not a plugin (missing symbol), another major,
 * or a function that we need is missing (names both versions). */
status pjrt_plugin_open(const char *path, pjrt_plugin *out) MUST_CHECK;

/* Turns an error (destroyed here) into a status and records "what: message (PJRT code n)". NULL is
 * STATUS_OK. INTERNAL, UNAVAILABLE, DATA_LOSS and ABORTED become STATUS_UNAVAILABLE: on hardware
 * they need a new process. */
status pjrt_check(const pjrt_plugin *p, pjrt_error *error, const char *what) MUST_CHECK;

/* What a compiled program takes on a device, in bytes; -1: the plugin does not tell. */
typedef struct pjrt_memory_plan {
    int64_t code, arguments, outputs, temporary, peak;
} pjrt_memory_plan;

/* Bytes returned in malloc'd memory, the caller frees. */
typedef struct pjrt_bytes {
    char *data;
    size_t bytes;
} pjrt_bytes;

#endif

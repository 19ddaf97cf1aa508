#ifndef DEVICES_PJRT_PLUGIN_H
#define DEVICES_PJRT_PLUGIN_H

#include "base/status.h"
#include "base/tensor.h"
#include "devices/pjrt_abi.h"

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
 * or a slot we need is missing (names both versions). */
status pjrt_plugin_open(const char *path, pjrt_plugin *out) MUST_CHECK;

/* Turns an error (destroyed here) into a status and records "what: message (code n)". NULL is
 * STATUS_OK. INTERNAL, UNAVAILABLE, DATA_LOSS and ABORTED become STATUS_UNAVAILABLE: on hardware
 * they need a new process. */
status pjrt_check(const pjrt_plugin *p, pjrt_error *error, const char *what) MUST_CHECK;

typedef struct pjrt_session {
    const pjrt_plugin *plugin;
    pjrt_client *client;
    pjrt_device_handle *const *devices; /* borrowed from the client */
    int device_count;
    char platform[64], platform_version[256], device_kind[64];
} pjrt_session;

/* Opens the plugin's devices. STATUS_UNAVAILABLE when there are none (libtpu without a TPU). */
status pjrt_session_open(const pjrt_plugin *p, pjrt_session *out) MUST_CHECK;

/* Bytes returned in malloc'd memory, the caller frees. */
typedef struct pjrt_bytes {
    char *data;
    size_t bytes;
} pjrt_bytes;

/* Compiles StableHLO (text or bytecode) for one device. */
status pjrt_session_compile(const pjrt_session *s, int device, const char *program, size_t bytes,
                            pjrt_loaded_executable **out) MUST_CHECK;
status pjrt_session_serialize(const pjrt_session *s, pjrt_loaded_executable *e,
                              pjrt_bytes *out) MUST_CHECK;
status pjrt_session_load(const pjrt_session *s, const void *serialized, size_t bytes,
                         pjrt_loaded_executable **out) MUST_CHECK;
/* The optimized program, an HloModuleProto; `*out` stays as it is where the plugin does not tell.
 * The caller frees. */
void pjrt_session_optimized(const pjrt_session *s, pjrt_loaded_executable *e, pjrt_bytes *out);
status pjrt_session_output_count(const pjrt_session *s, pjrt_loaded_executable *e,
                                 int *out) MUST_CHECK;
void pjrt_session_release(const pjrt_session *s, pjrt_loaded_executable *e);

/* Copies a host tensor to device `device`; returns when the host memory may be reused. */
status pjrt_session_upload(const pjrt_session *s, int device, const tensor *t,
                           pjrt_buffer **out) MUST_CHECK;
/* Copies back row-major into `t->data`; the buffer's size must be that of `t`. */
status pjrt_session_download(const pjrt_session *s, pjrt_buffer *b, const tensor *t) MUST_CHECK;
void pjrt_session_free_buffer(const pjrt_session *s, pjrt_buffer *b);

/* Runs the program on `device` and waits. `outputs` receives `output_count` buffers the caller
 * frees; none after a failure. */
status pjrt_session_execute(const pjrt_session *s, int device, pjrt_loaded_executable *e,
                            pjrt_buffer *const *arguments, int argument_count,
                            pjrt_buffer **outputs, int output_count) MUST_CHECK;

/* The device kind of a topology such as "v5e:1x1", as its devices call themselves. */
status pjrt_topology_kind(const pjrt_plugin *p, const char *topology,
                          char device_kind[64]) MUST_CHECK;

/* Ahead of time, with no device: compiles for a topology such as "v5e:1x1". */
typedef struct pjrt_ahead_of_time {
    pjrt_bytes serialized,
        optimized_hlo; /* the second is an HloModuleProto(WithConfig); may be empty */
    int64_t code_bytes, argument_bytes, output_bytes, temporary_bytes,
        peak_bytes; /* -1 where the plugin does not tell */
    char device_kind[64];
} pjrt_ahead_of_time;
status pjrt_compile_ahead(const pjrt_plugin *p, const char *topology, const char *program,
                          size_t bytes, pjrt_ahead_of_time *out) MUST_CHECK;
void pjrt_ahead_of_time_dispose(pjrt_ahead_of_time *a);

pjrt_type pjrt_type_of(dtype type);

#endif

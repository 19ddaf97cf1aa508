#ifndef DEVICES_PJRT_PLUGIN_SESSION_H
#define DEVICES_PJRT_PLUGIN_SESSION_H

#include "base/tensor.h"
#include "devices/pjrt/plugin/plugin.h"

/* The open devices of a plugin: compiles, loads and runs programs, copies tensors there and back.
 * All functions may be called from any thread. */

typedef struct pjrt_session {
    const pjrt_plugin *plugin;
    pjrt_client *client;
    pjrt_device_handle *const *devices; /* borrowed from the client */
    int device_count;
    int64_t memory_bytes; /* of the device that has least; 0: the plugin does not tell */
    char platform[64], platform_version[256], device_kind[64];
} pjrt_session;

/* Opens the plugin's devices. STATUS_UNAVAILABLE: a transient failure, such as a device in use;
 * STATUS_NOT_FOUND: there are none (libtpu without a TPU). */
status pjrt_session_open(const pjrt_plugin *p, pjrt_session *out) MUST_CHECK;

/* Compiles StableHLO (text or bytecode) for one device. */
status pjrt_session_compile(const pjrt_session *s, int device, const char *program, size_t bytes,
                            pjrt_loaded_executable **out) MUST_CHECK;
status pjrt_session_serialize(const pjrt_session *s, pjrt_loaded_executable *e,
                              pjrt_bytes *out) MUST_CHECK;
status pjrt_session_load(const pjrt_session *s, const void *serialized, size_t bytes,
                         pjrt_loaded_executable **out) MUST_CHECK;
/* The optimized program, an HloModuleProto; `*out` is left alone where the plugin does not show it.
 * The caller frees. */
void pjrt_session_optimized(const pjrt_session *s, pjrt_loaded_executable *e, pjrt_bytes *out);
pjrt_memory_plan pjrt_session_memory_plan(const pjrt_session *s, pjrt_loaded_executable *e);
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

/* PJRT_TYPE_INVALID for strings. */
pjrt_type pjrt_type_of(dtype type);

#endif

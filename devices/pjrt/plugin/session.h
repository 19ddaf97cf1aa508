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

/* Closes the client; programs and buffers of it are freed before. A host's ends with its process.
 */
void pjrt_session_close(pjrt_session *s);

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

/* Uploads, executions and downloads are started here and end later: the device begins each when
 * what it needs is there, without asking us. `*done` (or NULL where it has ended) is awaited by
 * pjrt_session_await(), which tells whether it failed. */

/* Copies a host tensor to device `device`; its memory may be reused when it is done. The caller
 * frees the buffer, at any time. */
status pjrt_session_upload(const pjrt_session *s, int device, const tensor *t, pjrt_buffer **out,
                           pjrt_event **done) MUST_CHECK;
/* Runs the program on `device`, in the order of the calls. `outputs` receives its buffers, which
 * the caller frees; none after a failure of this call. */
status pjrt_session_execute(const pjrt_session *s, int device, pjrt_loaded_executable *e,
                            pjrt_buffer *const *arguments, int argument_count,
                            pjrt_buffer **outputs, pjrt_event **done) MUST_CHECK;
/* Copies back row-major into `t->data`; the buffer's size must be that of `t`. */
status pjrt_session_download(const pjrt_session *s, pjrt_buffer *b, const tensor *t,
                             pjrt_event **done) MUST_CHECK;
/* Waits, and takes the event. `what` is for the message. */
status pjrt_session_await(const pjrt_session *s, pjrt_event *event, const char *what) MUST_CHECK;
void pjrt_session_free_buffer(const pjrt_session *s, pjrt_buffer *b);

/* Makes host memory known to the devices (DmaMap), so that transfers need no copy in between.
 * `data` and `bytes` are of whole pages. STATUS_UNSUPPORTED: the plugin has nothing of the kind. */
status pjrt_session_pin(const pjrt_session *s, void *data, size_t bytes) MUST_CHECK;
/* Memory that was pinned, from its first byte; no transfer may use it. */
void pjrt_session_unpin(const pjrt_session *s, void *data);

#endif

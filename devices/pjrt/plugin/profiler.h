#ifndef DEVICES_PJRT_PLUGIN_PROFILER_H
#define DEVICES_PJRT_PLUGIN_PROFILER_H

#include "devices/pjrt/plugin/plugin.h"

/* The profiler of a plugin: the Profiler extension of the API. Optional. */

typedef struct pjrt_profiler pjrt_profiler;

/* Starts to record. STATUS_UNSUPPORTED: the plugin has no profiler. */
status pjrt_profiler_start(const pjrt_plugin *p, pjrt_profiler **out) MUST_CHECK;
/* Ends it in any case. `*out`: an XSpace, as TensorBoard reads it; the caller frees. */
status pjrt_profiler_finish(const pjrt_plugin *p, pjrt_profiler *profiler,
                            pjrt_bytes *out) MUST_CHECK;

#endif

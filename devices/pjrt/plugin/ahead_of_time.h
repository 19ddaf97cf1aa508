#ifndef DEVICES_PJRT_PLUGIN_AHEAD_OF_TIME_H
#define DEVICES_PJRT_PLUGIN_AHEAD_OF_TIME_H

#include "devices/pjrt/plugin/plugin.h"

/* Compiles programs for a target without having such a device. */

/* The device kind of a topology such as "v5e:1x1", as its devices call themselves. */
status pjrt_topology_kind(const pjrt_plugin *p, const char *topology,
                          char device_kind[64]) MUST_CHECK;

typedef struct pjrt_ahead_of_time {
    pjrt_bytes serialized,
        optimized_hlo; /* the second is an HloModuleProto(WithConfig); may be empty */
    pjrt_memory_plan memory;
    char device_kind[64];
} pjrt_ahead_of_time;
status pjrt_compile_ahead(const pjrt_plugin *p, const char *topology, const char *program,
                          size_t bytes, pjrt_ahead_of_time *out) MUST_CHECK;
void pjrt_ahead_of_time_dispose(pjrt_ahead_of_time *a);

#endif

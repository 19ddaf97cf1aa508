#ifndef DEVICES_PJRT_DEVICE_H
#define DEVICES_PJRT_DEVICE_H

#include "devices/device.h"

/* The devices of one PJRT plugin (libtpu.so on a TPU VM), in one supervised child process. */

/* The texts are borrowed until the devices are destroyed. */

typedef struct device_pjrt_options {
    const char *plugin;       /* path */
    const char *host_program; /* the penstock binary, NULL: this process's own */
    const char *cache_folder; /* compile cache, NULL: none */
    bool is_cache_only;   /* a program that is not in the cache is an error; nothing is compiled */
    int slots;            /* per device; 0: 2 to 4, by measurement */
    int64_t memory_bytes; /* of each device, where the plugin does not tell; 0: not known */
    size_t slot_memory_bytes;                   /* 0: 256 MiB */
    uint64_t start_timeout_ns, hang_timeout_ns; /* 0: 120 s, 30 s */
} device_pjrt_options;

#define DEVICE_PJRT_DEVICES_MAX 64

/* Opens the plugin; `out` receives `*count` devices named "pjrt:0" ... (from `first_number` on).
 * They share one host, which ends with the last of them. STATUS_UNAVAILABLE: a transient failure
 * (another process holds the device): try again. Others are permanent (STATUS_NOT_FOUND: libtpu
 * without a TPU). */
status device_pjrt_create(const device_pjrt_options *options, int first_number,
                          device *out[DEVICE_PJRT_DEVICES_MAX], int *count) MUST_CHECK;

/* Devices of a plugin that cannot be opened yet: absent (devices/device.h) until
 * device_pjrt_open(). `count` of them, since nobody knows how many there will be; those that the
 * plugin does not have stay absent. */
#define DEVICE_PJRT_RESERVED 8 /* no TPU host has more */
void device_pjrt_reserve(const device_pjrt_options *options, int first_number, int count,
                         device **out);

/* Opens the plugin of a reserved device: the first `*count` devices reserved with it are there, and
 * device_health_changed() was called. May be called again after a failure; one thread at a time.
 * Errors: as device_pjrt_create(). */
status device_pjrt_open(device *reserved, int *count) MUST_CHECK;

/* "api 0.81, stablehlo 1.13.3 on cpu (cpu), 4 devices": for logs, /metrics and `penstock inspect
 * --device`. */
const char *device_pjrt_version(const device *d);

#endif

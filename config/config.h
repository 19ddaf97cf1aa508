#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/log.h"
#include "batcher/scheduler.h"
#include "models/repository/repository.h"
#include "server/options/options.h"

/* What `penstock serve` is configured to do: each room's options struct, filled from one JSON file
 * and the flags. Used by the main thread before the others start. */

#define CONFIG_DEVICES_MAX 16
#define CONFIG_MODELS_MAX 256

typedef struct config {
    server_options server;
    repository_options repository; /* `models` points to `model_list` below */
    scheduler_options scheduler;

    /* "cpu" or "pjrt:PATH_OF_PLUGIN", in the order given. Without a "cpu" the caller adds the CPU
     * last: it always serves as the fallback. */
    const char *devices[CONFIG_DEVICES_MAX];
    int device_count;
    bool require_device;              /* a device that cannot start ends the server */
    uint64_t device_start_timeout_ns; /* retries of a device that is not available yet */
    uint64_t device_retry_ns;         /* longest pause between tries after the start; 0: none */
    const char *device_notice;        /* devices/notice.h: sources, separated by spaces; or NULL */
    uint64_t device_notice_poll_ns;
    double device_cost_per_hour, cpu_cost_per_hour; /* dollars; 0: not known */
    int64_t device_memory_bytes; /* of a device whose plugin does not tell; 0: not known */
    bool cache_only;             /* a program missing from the cache ends the server */
    int cpu_threads;             /* execution slots of the CPU; 0: one per core */
    const char *cpu_level;       /* highest instruction set, or NULL */

    log_level log_level;
    log_format log_format;

    /* Asked for on the command line instead of serving. */
    bool wants_help, wants_print;

    const char *file;                                       /* of --config, or NULL */
    repository_model_options model_list[CONFIG_MODELS_MAX]; /* repository.model_count of them */
    bool is_model_of_flag[CONFIG_MODELS_MAX];               /* beside model_list */
    const char *ready_names[CONFIG_MODELS_MAX];             /* of repository.readiness */
    arena memory;                                           /* of every string above */
} config;

/* Sets every default. `c` needs config_dispose(). */
void config_default(config *c);
void config_dispose(config *c);

#endif

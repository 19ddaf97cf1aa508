#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/status.h"
#include "batcher/scheduler.h"
#include "models/repository/repository.h"
#include "server/options/options.h"

/* What `penstock serve` is told: one JSON file, flags on top of it, defaults below. Everything is
 * described once, in config/keys.inc; reading, --help, --print-config and docs/configuration.md
 * follow from there. Used by the main thread before others start. */

#define CONFIG_DEVICES_MAX 16
#define CONFIG_MODELS_MAX 256

typedef struct config {
    server_options server;
    repository_options repository; /* `models` points to `model_list` below */
    scheduler_options scheduler;

    /* "cpu" or "pjrt:PATH_OF_PLUGIN", in the order given. The CPU is always there: the caller adds
     * it last when the list has no "cpu", and the scheduler's fallback decides when it is used. */
    const char *devices[CONFIG_DEVICES_MAX];
    int device_count;
    bool require_device;              /* a device that cannot start ends the server */
    uint64_t device_start_timeout_ns; /* how long a start is tried that may yet succeed */
    bool cache_only;                  /* a program missing from the cache ends the server */
    int cpu_threads;                  /* slots of the CPU device; 0: one per core */
    const char *cpu_level;            /* cap of the instruction set, or NULL */

    log_level log_level;
    log_format log_format;

    /* Asked for on the command line instead of serving. */
    bool wants_help, wants_print;

    const char *file;                                       /* the file that was read, or NULL */
    repository_model_options model_list[CONFIG_MODELS_MAX]; /* repository.model_count of them */
    bool is_model_of_flag[CONFIG_MODELS_MAX]; /* beside model_list: a name is given once by flags */
    arena memory;                             /* of every string above */
} config;

/* Every default. `c` needs config_dispose(). */
void config_default(config *c);

/* Defaults, then the file of --config, then the flags. `argv` holds the arguments after
 * `penstock serve` and is borrowed as long as `c`. STATUS_INVALID_ARGUMENT: a key, value or flag is
 * wrong; the message names file, line and JSON path, or the flag, and the nearest right name.
 * STATUS_IO, STATUS_NOT_FOUND: the file. On failure `c` is left disposed. */
status config_load(config *c, int argc, char *const *argv) MUST_CHECK;

/* Reads JSON text on top of `c`; `file` is only for messages. The same errors as config_load(). */
status config_read_text(config *c, const char *file, const char *text, size_t bytes) MUST_CHECK;

void config_dispose(config *c);

/* The whole of `c` as JSON that config_load() takes again. */
status config_print(const config *c, FILE *out) MUST_CHECK;

/* `penstock serve --help`: the flags and what they default to. */
void config_print_help(FILE *out);

/* The body of docs/configuration.md: every key with range, default and meaning, as Markdown. */
void config_print_reference(FILE *out);

#endif

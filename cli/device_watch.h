#ifndef CLI_DEVICE_WATCH_H
#define CLI_DEVICE_WATCH_H

#include "config/config.h"
#include "server/server.h"

/* Watches the devices of a server that is open, on a thread of its own: opens those that were not
 * there at the start, and drains those whose end a notice announces. */

typedef struct device_watch device_watch;

/* Devices that device_pjrt_reserve() made for a plugin. */
typedef struct device_watch_missing {
    const char *plugin; /* path */
    int first, count;
    bool is_permanent;                  /* the first failure was of a kind that rarely passes */
    char why[STATUS_MESSAGE_BYTES_MAX]; /* of the latest failure, for clients; "": they are there */
} device_watch_missing;

typedef struct device_watch_options {
    const config *config;
    server *edge;
    device *const *devices;
    int device_count;
    repository *models;
    scheduler *work;
    device_watch_missing *missing; /* borrowed, and written by the thread */
    int missing_count;
} device_watch_options;

/* Clients see names of plugins; the log has their paths. */
void device_watch_hide_folder(char *text, size_t bytes, const char *plugin);

/* Everything is borrowed until device_watch_stop(). `*out` is NULL where there is nothing to watch.
 * STATUS_IO: no thread. */
status device_watch_start(const device_watch_options *options, device_watch **out) MUST_CHECK;
/* False: it still opens a plugin, which may take minutes, and goes on using what was borrowed: the
 * process must end. Accepts NULL. */
bool device_watch_stop(device_watch *w) MUST_CHECK;

#endif

#ifndef CONFIG_ORIGIN_H
#define CONFIG_ORIGIN_H

#include <jansson.h>
#include <stdbool.h>

#include "base/status.h"
#include "base/text/json_position.h"

/* Where a value of the configuration comes from, and the error messages that say so. */

typedef struct config_origin {
    const char *file; /* of `bytes` bytes of `text`; or */
    const char *text;
    size_t bytes;
    const char *flag; /* "--threads" */
    /* The first value of a list from this origin replaces the list; further values are added. */
    bool has_listeners, has_health_listeners, has_admin_listeners, has_grpc_listeners, has_devices;
} config_origin;

/* The path of the whole file. */
extern const json_path config_root_path;

/* "FILE:LINE: path: ..." or "--flag: ...". Returns STATUS_INVALID_ARGUMENT. */
status config_fail(const config_origin *o, const json_path *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "must be WANTED, not a string". */
status config_fail_type(const config_origin *o, const json_path *path, const char *wanted,
                        const json_t *value);
/* "unknown key; did you mean NEAR?". `near` may be NULL. */
status config_fail_unknown_key(const config_origin *o, const json_path *path, const char *near);

#endif

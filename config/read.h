#ifndef CONFIG_READ_H
#define CONFIG_READ_H

#include <jansson.h>

#include "base/json_position.h"
#include "config/keys.h"

/* From JSON values to the struct; files and flags end here. */

/* Where values come from, for messages. */
typedef struct config_origin {
    const char *file; /* with text and bytes, or */
    const char *text;
    size_t bytes;
    const char *flag; /* "--threads" */
    /* A list replaces what was there at its first value from this origin, then grows. */
    bool has_listeners, has_devices;
} config_origin;

/* "FILE:LINE: path: ..." or "--flag: ...". Returns STATUS_INVALID_ARGUMENT. */
status config_wrong(const config_origin *o, const json_path *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets one key from a JSON value. Borrows `value`; strings are copied into c->memory. */
status config_set(config *c, const config_key *k, const json_t *value, config_origin *o,
                  const json_path *path) MUST_CHECK;

/* Adds a model, or replaces the one of that name. */
status config_add_model(config *c, const char *name, size_t name_bytes, const char *path,
                        const config_origin *o, const json_path *where,
                        repository_model_options **out) MUST_CHECK;

/* Adds "HOST:PORT". */
status config_add_listener(config *c, const char *address, bool is_tls, config_origin *o,
                           const json_path *where) MUST_CHECK;

/* Sets the key written "section.key", as --set does; names the nearest one when there is none. */
status config_set_path(config *c, const char *path, const json_t *value,
                       config_origin *o) MUST_CHECK;

#endif

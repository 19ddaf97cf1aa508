#ifndef MODELS_REPOSITORY_SETTINGS_H
#define MODELS_REPOSITORY_SETTINGS_H

#include "models/repository/internal.h"

/* Where the settings of a name or version come from: what a client sent with its load; or the
 * version's model.json; or the name's; or the name's config.pbtxt (models/manifest/triton.h). */
typedef struct settings_source {
    char path[REPOSITORY_PATH_BYTES_MAX + 64]; /* for messages, and for what lies beside it */
    char *text; /* instead of what the file holds, for free(); or NULL */
} settings_source;

/* `folder`: of the version, or the name's own. `is_told`: the log says what of a config.pbtxt is
 * not used. STATUS_INVALID_ARGUMENT, STATUS_IO: config.pbtxt is broken; then there is nothing to
 * free. */
status settings_find(const served_name *n, const char *folder, bool is_told,
                     settings_source *out) MUST_CHECK;

/* Of the files that all versions share, and of what the client sent. */
uint64_t settings_state(const served_name *n);

/* Reads the name's own; defaults if they are broken: each version's load says so. */
void settings_read(const served_name *n, manifest *out);

#endif

#ifndef GRAPH_JSON_FILE_H
#define GRAPH_JSON_FILE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/status.h"

/* Reads a JSON file beside weights. The caller releases `*out` with json_decref().
 * STATUS_NOT_FOUND, STATUS_IO, STATUS_CORRUPT (not a JSON object or array; the message names path
 * and line). */
status json_file_read(const char *path, json_t **out) MUST_CHECK;

/* A member of an object; where it is missing, null or of another type, `otherwise`. */
bool json_file_bool(const json_t *object, const char *key, bool otherwise);
/* Borrowed from the object. */
const char *json_file_string(const json_t *object, const char *key, const char *otherwise);

#endif

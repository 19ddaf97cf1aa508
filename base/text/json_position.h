#ifndef BASE_TEXT_JSON_POSITION_H
#define BASE_TEXT_JSON_POSITION_H

#include <stddef.h>

/* The line of a member or element of a JSON text, for error messages: jansson keeps no positions.
 */

#define JSON_PATH_TEXT_BYTES 256

/* A step from a value to one inside it; the root has no parent and no key. Kept on the stack. */
typedef struct json_path {
    const struct json_path *parent;
    const char *key; /* member of an object; NULL: */
    size_t index;    /* element of an array */
} json_path;

/* "server.listen[1]", "models[\"a.b\"].path"; "" for the root. Cut when too long. Returns `out`. */
char *json_path_text(const json_path *path, char out[JSON_PATH_TEXT_BYTES]);

/* The line, counted from 1, where the member or element at `path` begins. `text` is valid JSON.
 * Where the path leads nowhere: the line of the last step that exists. */
int json_position_line(const char *text, size_t bytes, const json_path *path);

#endif

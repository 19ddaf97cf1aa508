#ifndef MODELS_MANIFEST_POSITION_H
#define MODELS_MANIFEST_POSITION_H

#include <stddef.h>

/* The line, from 1, of the member at `path` (keys from the root down) in valid JSON `text`; where
 * the path leads nowhere, of its last step that exists. jansson keeps no positions. */
int manifest_line(const char *text, size_t bytes, const char *const *path, int depth);

/* The candidate that differs least from `word`, if it is near enough to be meant; else NULL. */
const char *manifest_nearest(const char *word, const char *const *candidates, int count);

#endif

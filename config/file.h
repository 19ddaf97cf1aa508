#ifndef CONFIG_FILE_H
#define CONFIG_FILE_H

#include "config/config.h"

/* Reads a JSON file on top of `c`. STATUS_NOT_FOUND, STATUS_IO, STATUS_TOO_LARGE: the file.
 * STATUS_INVALID_ARGUMENT: a key or a value is wrong; the message names file, line, JSON path and
 * the nearest right name. */
status config_read_file(config *c, const char *path) MUST_CHECK;

/* The same from text; `file` is only for messages. */
status config_read_text(config *c, const char *file, const char *text, size_t bytes) MUST_CHECK;

#endif

#ifndef BASE_IO_FILE_MAP_H
#define BASE_IO_FILE_MAP_H

#include <stddef.h>

#include "base/status.h"

/* A file mapped read-only, for weights too large to copy; processes share its pages. The file must
 * not be truncated while it is mapped (a read beyond its new end raises SIGBUS): replace model
 * folders by rename. */
typedef struct file_map {
    const void *data; /* page-aligned; NULL for an empty file */
    size_t bytes;
} file_map;

/* STATUS_NOT_FOUND, STATUS_IO, STATUS_TOO_LARGE over `bytes_max`; the message names the path. */
status file_map_open(file_map *map, const char *path, size_t bytes_max) MUST_CHECK;
/* Accepts a zeroed map. */
void file_map_close(file_map *map);

#endif

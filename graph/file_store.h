#ifndef GRAPH_FILE_STORE_H
#define GRAPH_FILE_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "graph/graph.h"

/* The contents of the weight files that a graph's constants point into, kept until the graph is
 * destroyed. Files up to FILE_STORE_READ_BYTES_MAX are read at once through base/io/file_reader.h
 * (fast from a cold disk); larger ones are mapped, so that processes share their pages. A mapped
 * file must be replaced by rename, not rewritten in place. With g->copies_files none is mapped. */

#define FILE_STORE_READ_BYTES_MAX ((size_t)256 << 20)

/* Opens the file, unless it is open already. `*data` stays valid as long as the graph. Errors:
 * those of file_reader_read_whole() and file_map_open(). */
status file_store_open(graph *g, const char *path, size_t bytes_max, const uint8_t **data,
                       size_t *bytes) MUST_CHECK;
/* The same, mapped whatever its size: for files of which only parts are read. */
status file_store_map(graph *g, const char *path, size_t bytes_max, const uint8_t **data,
                      size_t *bytes) MUST_CHECK;

/* STATUS_CORRUPT when the bytes are a Git LFS pointer (git-lfs, docs/spec.md), the placeholder of a
 * large file that was not fetched. The functions above call it. */
status file_store_reject_lfs_pointer(const void *data, size_t bytes) MUST_CHECK;

#endif

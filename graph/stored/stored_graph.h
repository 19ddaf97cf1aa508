#ifndef GRAPH_STORED_STORED_GRAPH_H
#define GRAPH_STORED_STORED_GRAPH_H

#include "graph/graph.h"

/* An imported graph on disk, as it is after all that a load does to it: a later start maps the file
 * instead of parsing the model, folding it and searching shapes. The file is a header, the graph in
 * words of 8 bytes, then the constants, each aligned to 64 bytes. It is a cache: the header names
 * the build that wrote it, and checksums tell damage. */

/* What the caller knows of the graph, kept beside it. */
typedef struct stored_graph_about {
    uint64_t flags;
    const char *note;     /* or NULL */
    const tensor *shapes; /* dtype and dims, no data; NULL: none */
    int shape_count;
} stored_graph_about;

/* Replaces the file at `path` (written beside it, then renamed). `key`: of what the graph was made
 * from. STATUS_UNSUPPORTED: the graph holds what cannot be kept (strings, a described encoder,
 * constants of more than `bytes_max` together); STATUS_IO, STATUS_OUT_OF_MEMORY. Blocks. */
status stored_graph_write(const char *path, uint64_t key, const graph *g,
                          const stored_graph_about *about, uint64_t bytes_max) MUST_CHECK;

/* The graph; texts and constants, those of `about` included, lie in the mapped file and live as
 * long as it. STATUS_NOT_FOUND: there is no file; STATUS_CORRUPT: it is damaged, of another key or
 * of another build; STATUS_IO, STATUS_OUT_OF_MEMORY. No content of the file crashes it. */
status stored_graph_read(const char *path, uint64_t key, graph **out,
                         stored_graph_about *about) MUST_CHECK;

#endif

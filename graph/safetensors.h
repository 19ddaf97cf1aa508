#ifndef GRAPH_SAFETENSORS_H
#define GRAPH_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/tensor.h"
#include "graph/name_map.h"

/* A safetensors file (format: huggingface/safetensors README): 8 bytes of header length, a JSON
 * header, the tensors' bytes. The header is not trusted: lengths, offsets, overlaps, gaps and sizes
 * are checked before use. */
typedef struct safetensors_entry {
    const char *name;
    const char *type_name; /* "F32" */
    bool has_known_type;   /* otherwise `value.dtype` is meaningless */
    tensor value;          /* data points into the file and may be unaligned */
    uint64_t begin, end;   /* in the data part */
} safetensors_entry;

typedef struct safetensors {
    arena memory;
    safetensors_entry *entries; /* ascending by begin */
    int32_t count;
    name_map by_name;
} safetensors;

/* Reads the header of a file in memory; `data` must outlive the use of entries. STATUS_CORRUPT. */
status safetensors_open(safetensors *file, const uint8_t *data, size_t bytes) MUST_CHECK;
/* Accepts a zeroed one. */
void safetensors_close(safetensors *file);
/* The tensor of that name, or NULL. */
const safetensors_entry *safetensors_find(const safetensors *file, const char *name);

#endif

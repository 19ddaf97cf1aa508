#ifndef LOADTEST_WORKLOAD_METADATA_H
#define LOADTEST_WORKLOAD_METADATA_H

#include "base/dtype.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* A model's inputs, from its server's metadata. Pure: JSON text to a struct. */
#define METADATA_DIMENSIONS_MAX 8

typedef struct metadata_input {
    char *name; /* owned */
    dtype type;
    int64_t dimensions[METADATA_DIMENSIONS_MAX]; /* -1: any */
    int dimension_count;
} metadata_input;

typedef struct metadata {
    metadata_input *inputs; /* owned */
    size_t input_count;
} metadata;

/* The response to GET /v2/models/M (Open Inference Protocol). */
status metadata_parse_kserve(metadata *m, const char *text, size_t bytes) MUST_CHECK;
/* The response to GET /v1/models/M/metadata: the signature "serving_default", or the only one. */
status metadata_parse_tensorflow(metadata *m, const char *text, size_t bytes) MUST_CHECK;
void metadata_dispose(metadata *m);

#endif

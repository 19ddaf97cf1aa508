#ifndef SERVER_PROTOCOL_TENSOR_SCAN_H
#define SERVER_PROTOCOL_TENSOR_SCAN_H

#include "base/tensor.h"
#include "server/protocol/text/json_scan.h"

/* Elements found in nested JSON arrays, written one after another. The caller gives room for
 * `capacity` elements, or a `grow` that makes more. */
typedef struct tensor_scan {
    dtype dtype;
    void *data;
    int64_t capacity, count;
    /* May move and enlarge data; NULL: more elements than capacity are an error. */
    status (*grow)(struct tensor_scan *t);
    int rank; /* nesting found; 0: a bare scalar */
    int64_t dims[TENSOR_RANK_MAX];
    bool takes_base64; /* {"b64": "..."} is an element of DTYPE_BYTES */
} tensor_scan;

/* Reads one value, a scalar or nested arrays of equal lengths, and appends its elements at
 * data[count]. Numbers are rounded to the type, integers range-checked, BOOL is true or false,
 * BYTES are strings whose text lies in s->memory. rank and dims are set.
 * STATUS_INVALID_ARGUMENT: anything else, or arrays of unequal length. */
status tensor_scan_value(json_scan *s, tensor_scan *t) MUST_CHECK;

#endif

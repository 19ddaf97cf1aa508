#ifndef BASE_TENSOR_H
#define BASE_TENSOR_H

#include "base/arena.h"
#include "base/dtype.h"
#include "base/status.h"

#define TENSOR_RANK_MAX 8
#define TENSOR_SHAPE_TEXT_BYTES 200

/* One element of a DTYPE_BYTES tensor. `data` is borrowed from the owner of the tensor. */
typedef struct tensor_string {
    const uint8_t *data;
    size_t bytes;
} tensor_string;

/* A dense, row-major array. A plain value that never owns `data`: copies share it, and the maker of
 * the tensor says how long it is valid (usually as long as an arena). Rank 0 is a scalar. */
typedef struct tensor {
    dtype dtype;
    int rank;
    int64_t dims[TENSOR_RANK_MAX];
    void *data; /* 64-byte aligned when allocated by us; NULL is allowed for 0 elements */
} tensor;

/* Product of the dims; 1 for a scalar. Dims must be non-negative and the product in range
 * (tensor_set_shape checks). */
int64_t tensor_count(const tensor *t);
size_t tensor_bytes(const tensor *t);

/* Sets dtype, rank and dims, leaves data. STATUS_INVALID_ARGUMENT: rank or a dim out of range, or
 * the size overflows. */
status tensor_set_shape(tensor *t, dtype type, int rank, const int64_t *dims) MUST_CHECK;

/* The same, then allocates zeroed, 64-byte aligned data in `a`. Also STATUS_OUT_OF_MEMORY. */
status tensor_allocate(tensor *t, arena *a, dtype type, int rank, const int64_t *dims) MUST_CHECK;

bool tensor_same_shape(const tensor *a, const tensor *b);

/* "[2,7,32]"; returns `text`. For messages. */
const char *tensor_shape_text(char text[TENSOR_SHAPE_TEXT_BYTES], int rank, const int64_t *dims);

/* Element `index` as a number; BOOL counts as 0 or 1. Not for DTYPE_BYTES. For small tensors and
 * tests, not for loops. */
double tensor_get_number(const tensor *t, int64_t index);
int64_t tensor_get_integer(const tensor *t, int64_t index);
void tensor_set_number(tensor *t, int64_t index, double value);

#endif

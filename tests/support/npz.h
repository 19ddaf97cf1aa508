#ifndef TESTS_SUPPORT_NPZ_H
#define TESTS_SUPPORT_NPZ_H

#include "base/tensor.h"

/* Reads NumPy's .npz: a zip file (stored or deflated) of .npy arrays (format 1 to 3, C order). */

typedef struct npz_array {
    const char *name; /* without ".npy" */
    tensor value;
} npz_array;

typedef struct npz {
    arena memory; /* owns names and data */
    npz_array *arrays;
    int count;
} npz;

/* STATUS_NOT_FOUND, STATUS_CORRUPT, STATUS_UNSUPPORTED; the message names path and array. */
status npz_open(npz *file, const char *path) MUST_CHECK;
void npz_close(npz *file); /* accepts a zeroed one */

/* The array of that name, or NULL. Format as of printf. */
const tensor *npz_find(const npz *file, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif

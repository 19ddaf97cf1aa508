#ifndef MODELS_LOADING_JAX_EXPORT_H
#define MODELS_LOADING_JAX_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* What jax.export writes: a jax.export.Exported, as its serialize() makes it. It is a FlatBuffers
 * table (jax/_src/export/serialization.fbs) around a portable artifact, which says what the
 * artifact alone does not: the calling convention, platforms, devices, dropped arguments. */

/* The calling conventions that are known here: what `main` takes besides its arguments. */
#define JAX_EXPORT_CONVENTION_LEAST 9
#define JAX_EXPORT_CONVENTION_MOST 10

typedef struct jax_export {
    const uint8_t *module; /* the portable artifact, in the file */
    size_t module_bytes;
    const uint8_t *kept; /* u16 little-endian: which arguments `main` takes, ascending */
    int kept_count;
    int argument_count;     /* of the function, those dropped too */
    char custom_calls[200]; /* that JAX was told not to check, "a, b"; empty: none */
} jax_export;

/* Is it a serialised Exported? Reads only what lies in `bytes`. */
bool jax_export_is(const uint8_t *data, size_t bytes);

/* Reads and checks one; `*out` points into `data`. `name`: of the file, for messages.
 * STATUS_CORRUPT; STATUS_UNSUPPORTED: one that a server cannot run, with what to do about it. */
status jax_export_open(const char *name, const uint8_t *data, size_t bytes,
                       jax_export *out) MUST_CHECK;

/* Argument `i` that `main` takes, of the function's. */
int jax_export_kept(const jax_export *e, int i);

/* Custom calls in StableHLO text about which jax.export makes no promise, "a, b"; empty: none. */
void jax_export_find_custom_calls(const uint8_t *text, size_t bytes, char out[200]);

#endif

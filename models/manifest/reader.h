#ifndef MODELS_MANIFEST_READER_H
#define MODELS_MANIFEST_READER_H

#include <jansson.h>

#include "base/text/json_position.h"
#include "models/manifest/manifest.h"

/* Reads JSON values into a manifest; each error names the file, the line and the path of the key.
 * For manifest.c, policy.c and program.c. */

typedef struct manifest_reader {
    const char *name, *text;
    size_t bytes;
    const json_path *at; /* path of the value that is being read; its steps lie on the stack */
    manifest *out;
} manifest_reader;

/* "NAME:LINE: PATH: WHAT DETAIL" (detail may be NULL); returns STATUS_INVALID_ARGUMENT. */
status manifest_fail(const manifest_reader *r, const char *what, const char *detail);
/* "no such key", with the nearest of `keys`. */
status manifest_fail_key(const manifest_reader *r, const char *const *keys, int count);
status manifest_read_integer(const manifest_reader *r, const json_t *v, int64_t least, int64_t most,
                             int64_t *out) MUST_CHECK;
/* The copy belongs to the manifest. */
status manifest_read_string(const manifest_reader *r, const json_t *v, const char **out) MUST_CHECK;
/* Calls `read` for each member, or element, with its path in r->at. */
status manifest_read_object(manifest_reader *r, json_t *object,
                            status (*read)(manifest_reader *r, json_t *value)) MUST_CHECK;
status manifest_read_array(manifest_reader *r, json_t *array, size_t most,
                           status (*read)(manifest_reader *r, json_t *value)) MUST_CHECK;

/* program.c: the key "program". */
status manifest_read_program(manifest_reader *r, json_t *v) MUST_CHECK;
/* policy.c: the key "version_policy". */
status manifest_read_policy(manifest_reader *r, json_t *v) MUST_CHECK;

#endif

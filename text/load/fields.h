#ifndef TEXT_LOAD_FIELDS_H
#define TEXT_LOAD_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* Fields of tokenizer.json. Errors are STATUS_CORRUPT and name the field; callers put the path
 * before it. */

/* An optional field: a missing one or null leaves *out as it is. */
status field_bool(const json_t *object, const char *name, bool *out) MUST_CHECK;
status field_size(const json_t *object, const char *name, size_t *out) MUST_CHECK;
/* A copy with a zero byte behind it, which the caller frees. */
status field_text(const json_t *object, const char *name, char **out, size_t *bytes) MUST_CHECK;
/* A copy of `bytes` bytes with a zero byte behind it, which the caller frees. */
status field_copy(const char *text, size_t bytes, char **out) MUST_CHECK;
/* One character. */
status field_character(const json_t *object, const char *name, uint32_t *out) MUST_CHECK;
/* A required one. */
status field_required(const json_t *object, const char *name, json_type type,
                      const json_t **out) MUST_CHECK;

/* STATUS_UNSUPPORTED: `what` "type" is not supported; supported are ... */
status field_unknown_type(const char *what, const char *type, const char *supported);

/* Whether an optional component is there: neither missing nor null. */
static inline bool field_is_there(const json_t *value)
{
    return value != NULL && !json_is_null(value);
}

/* Whether json_loadb() failed without a reason to name: there was no memory. Not always: where a
 * string found none, it says that the token is invalid. */
static inline bool field_lacked_memory(const json_error_t *error)
{
    return error->text[0] == 0;
}

/* `made`, which is taken, or NULL where some of it found no memory. */
static inline json_t *field_all_or_nothing(json_t *made, bool failed)
{
    if (failed)
        json_decref(made);
    return failed ? NULL : made;
}

/* Calls `read` for a component, and for each of a Sequence's members, which are in `members`,
 * however deep. */
typedef status read_component(const json_t *component, const char *type, void *context);
status field_each(const json_t *component, const char *members, read_component *read,
                  void *context) MUST_CHECK;

#endif

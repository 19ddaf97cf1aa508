#ifndef SERVER_PROTOCOL_ROWS_LINES_H
#define SERVER_PROTOCOL_ROWS_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* Bodies with a row on each line, as batch jobs send them: JSON Lines, or CSV (RFC 4180), become
 * the body of a TensorFlow request, {"instances":[...]}. A line of CSV is an array of its fields,
 * numbers or strings; a line of one string is that string. Pure. */

/* Room that is enough for any body of so many bytes. */
static inline size_t lines_capacity(size_t bytes)
{
    return 3 * bytes + 64;
}

/* Writes at most lines_capacity(bytes) to `out`. STATUS_INVALID_ARGUMENT: a quoted field of CSV
 * does not end, or has a control character. JSON is for the reader to check. */
status lines_to_instances(bool is_csv, const char *text, size_t bytes, char *out,
                          size_t *out_bytes) MUST_CHECK;

#endif

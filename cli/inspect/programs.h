#ifndef CLI_INSPECT_PROGRAMS_H
#define CLI_INSPECT_PROGRAMS_H

#include "base/text/text_buffer.h"
#include "models/model.h"

/* Adds what programs for devices were chosen for the model's buckets, as the compile cache in the
 * folder `cache` has it: a line for each, or an array of JSON. STATUS_IO: the folder cannot be
 * read.
 */
status inspect_programs(const model *m, const char *cache, bool is_json,
                        text_buffer *out) MUST_CHECK;

#endif

#ifndef MODELS_MANIFEST_PBTXT_H
#define MODELS_MANIFEST_PBTXT_H

#include <jansson.h>
#include <stddef.h>

#include "base/status.h"

/* Protobuf's text format (protobuf.dev, "Text Format Language Specification") without a schema:
 * messages become objects, fields that come several times or as a list become arrays, enums become
 * strings. Extensions and Any are errors. The caller ends the reference. STATUS_INVALID_ARGUMENT:
 * "NAME:LINE: what is wrong". */
status pbtxt_read(const char *name, const char *text, size_t bytes, json_t **out) MUST_CHECK;

#endif

#ifndef MODELS_MANIFEST_TRITON_H
#define MODELS_MANIFEST_TRITON_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* Triton's model configuration (model_config.proto of its repository "common"), as far as it means
 * what a key of model.json means. Other fields are named, and not used. */

#define TRITON_UNUSED_BYTES 512

/* A file config.pbtxt, in protobuf's text format, becomes the text of a model.json, for free().
 * `unused`: "instance_group, optimization", or "". STATUS_NOT_FOUND: there is no such file;
 * STATUS_INVALID_ARGUMENT: "PATH:LINE: what is wrong". */
status triton_read_file(const char *path, char **out, char unused[TRITON_UNUSED_BYTES]) MUST_CHECK;

/* A configuration as a client sends it, JSON with keys of model.json, of Triton, or both, becomes
 * the text of a model.json, for free(). STATUS_INVALID_ARGUMENT: it is not JSON, or has fields that
 * are not used: the message names them. */
status triton_read_config(const char *text, size_t bytes, char **out) MUST_CHECK;

#endif

#ifndef MODELS_LOADING_SAMPLES_H
#define MODELS_LOADING_SAMPLES_H

#include "devices/device.h"

/* Real inputs of a model, which an operator put beside it ("warm_up" of model.json): the accuracy
 * check of a precision runs on them. */

/* Reads those lines of the file that are JSON arrays of token ids, [101, 7592, 102]; other lines
 * are lengths, for models/planner.h. At most SAMPLES_MAX, spread evenly over the file. Memory from
 * `memory`; out->count may be 0. STATUS_INVALID_ARGUMENT names the line; STATUS_NOT_FOUND,
 * STATUS_IO: the file. */
status samples_read(const char *path, arena *memory, device_samples *out) MUST_CHECK;

#define SAMPLES_MAX DEVICE_SAMPLES_MAX

#endif

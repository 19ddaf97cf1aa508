#ifndef MODELS_WHOLE_WHOLE_H
#define MODELS_WHOLE_WHOLE_H

#include "models/model.h"

/* Models whose requests run whole: one at a time, at the shape that each has (DEVICE_WHOLE). These
 * are models with sizes that are neither rows nor tokens (height and width of an image), models
 * whose outputs' shapes are no simple function of the inputs' (one frame for every 160 samples),
 * and models whose shapes depend on values. */

/* After the import: gives the graph's outputs their types and shapes, and decides whether requests
 * run whole (m->on_device.is_whole). STATUS_INVALID_ARGUMENT, STATUS_UNSUPPORTED: no shapes were
 * found that the graph accepts; the message names the node. */
status whole_examine(model *m) MUST_CHECK;

/* What takes the place of the batching probe: sets m->batching and its note, and runs the model
 * once where shapes are known that it accepts, unless an earlier start has (`is_known`). Errors:
 * those of compile and execute. */
status whole_try(model *m, bool is_known) MUST_CHECK;
/* The run that was not made then. After ready, on the loading thread. */
status whole_run(const model *m) MUST_CHECK;

/* Rows of a request: the first dim of the first input that leaves it open, from 1 to what may wait;
 * else 1. */
int64_t whole_count_rows(const model *m, const tensor *inputs);

#endif

#ifndef CLI_INSPECT_MXU_H
#define CLI_INSPECT_MXU_H

#include "base/text/text_buffer.h"
#include "models/model.h"

/* For each bucket and dense layer, the share of a TPU's matrix unit (MXU) that idles because a dim
 * is not a multiple of its side: 128, on v6e 256. */
void inspect_mxu_print(const model *m);
/* "mxu":[{"batch":..,"sequence":..,"waste_128":..,"waste_256":..,"layers":[..]}] */
void inspect_mxu_json(const model *m, text_buffer *out);

#endif

#ifndef MODELS_TEXT_CALIBRATION_TEXT_H
#define MODELS_TEXT_CALIBRATION_TEXT_H

#include "devices/device.h"
#include "models/text/model_text.h"

/* Plain English sentences as the model's tokenizer has them: on them a device calibrates int8 where
 * the operator gave no samples. They are closer to what a model gets than generated ids; an
 * operator's own samples are closer still.
 *
 * Memory from `memory`. `out->count` is 0 when the tokenizer makes nothing of them.
 * STATUS_OUT_OF_MEMORY. */
status model_text_samples(const model_text *t, arena *memory, device_samples *out) MUST_CHECK;

#endif

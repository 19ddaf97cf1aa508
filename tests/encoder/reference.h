#ifndef TESTS_ENCODER_REFERENCE_H
#define TESTS_ENCODER_REFERENCE_H

#include "graph/encoder/encoder.h"

/* What an encoder means, in plain loops of doubles: the measure for recognition and for the CPU's
 * ragged engine. A row whose mask is all zero attends to all of its positions alike. */

/* `inputs[i]` is graph input i, [batch, length]; `output` is entry `index` of e->outputs:
 * [batch, length, columns] or [batch, columns], allocated in `memory` as f32. */
void reference_run(const encoder *e, const tensor *inputs, int index, arena *memory,
                   tensor *output);

#endif

#ifndef TESTS_UNIT_GRAPH_ENCODER_REFERENCE_H
#define TESTS_UNIT_GRAPH_ENCODER_REFERENCE_H

#include "graph/encoder/encoder.h"

/* Computes an encoder in plain loops of doubles: the reference for recognition and packing. A row
 * whose mask is all zero attends to all of its tokens alike. */

/* `inputs[i]` is graph input i, [batch, length]; `output` is entry `index` of e->outputs:
 * [batch, length, columns] or [batch, columns], allocated in `memory` as f32. */
void reference_run(const encoder *e, const tensor *inputs, int index, arena *memory,
                   tensor *output);

#endif

#ifndef MODELS_BATCHING_ROW_COPY_H
#define MODELS_BATCHING_ROW_COPY_H

#include "models/model.h"

/* Copies `length` positions of row `from_row` of `from` to row `to_row` of `to`, which may have
 * another number of rows and positions; positions of `to` beyond `length` are left alone, or
 * filled with `pad` (an element) when it is not NULL. Axes are those of the model's tensor. */
void row_copy(const tensor *to, int64_t to_row, const tensor *from, int64_t from_row,
              const model_tensor *axes, int64_t length, const void *pad);

#endif

#ifndef MODELS_BATCHING_ROW_COPY_H
#define MODELS_BATCHING_ROW_COPY_H

#include "models/model.h"

/* Copies the first `length` tokens of row `from_row` of `from` to row `to_row` of `to`, which may
 * have other numbers of rows and tokens. The tokens of `to` beyond `length` are filled with `pad`
 * (one element), or left alone where `pad` is NULL. `axes`: the model's tensor. */
void row_copy(const tensor *to, int64_t to_row, const tensor *from, int64_t from_row,
              const model_tensor *axes, int64_t length, const void *pad);

#endif

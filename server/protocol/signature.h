#ifndef SERVER_PROTOCOL_SIGNATURE_H
#define SERVER_PROTOCOL_SIGNATURE_H

#include "models/model.h"

/* A model's inputs as clients see them. Pure. */

#define SIGNATURE_INPUTS_MAX (MODEL_TENSORS_MAX + 2)

/* The model's own, then the texts that may stand in their place. Returns how many. */
int signature_inputs(const model *m, model_tensor out[SIGNATURE_INPUTS_MAX]);

/* Can clients add rows of their own? Then configurations give dims without the batch axis. */
bool signature_is_batched(const model *m);

/* What clients are told of that dim: -1 where it varies. */
int64_t signature_dim(const model_tensor *t, int axis);

#endif

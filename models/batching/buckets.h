#ifndef MODELS_BATCHING_BUCKETS_H
#define MODELS_BATCHING_BUCKETS_H

#include "models/manifest/manifest.h"

/* Tokens in one batch of automatic buckets: beyond it a CPU gains nothing, and every bucket
 * costs start-up time. A single row may be longer. */
#define BUCKETS_TOKENS_MAX 2048

/* Fills the axes and the list of buckets from model.json, or powers of two up to
 * m->batching.batch_max and sequence_max; the limits themselves are always sizes. For an exact
 * model only the batch axis. STATUS_INVALID_ARGUMENT: more than MODEL_BUCKETS_MAX, or sizes over
 * what the model takes. `programs` come from m->memory, empty. */
status buckets_make(model *m, const manifest *file) MUST_CHECK;

#endif

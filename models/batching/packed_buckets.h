#ifndef MODELS_BATCHING_PACKED_BUCKETS_H
#define MODELS_BATCHING_PACKED_BUCKETS_H

#include "models/manifest/manifest.h"

/* Packed buckets: buckets whose rows hold several sequences each (graph/encoder/packed.h), for
 * devices with static shapes. The CPU runs sequences without padding and needs none; it takes over
 * when such a device fails. This file says which packed buckets a model has and what their tensors
 * are; batcher/ decides which sequences share a row. */

/* Tokens of a packed row. Shorter rows hold too few sequences to be filled well, longer ones cost
 * much more attention than the sequences alone. Where all buckets are shorter, the longest is
 * packed. */
#define PACKED_BUCKETS_LENGTH_MIN 128
#define PACKED_BUCKETS_LENGTH_MAX 512

/* Decides whether rows of the model can hold several sequences: sets m->packed_encoder and
 * m->on_packed, or m->packing_note says why not. Sets m->encoder where the model is one. Only after
 * m->on_device, its tensors and m->batching are known, and m->weights_holder, if it can be had. */
void packed_buckets_examine(model *m, model_packing wanted);

/* Adds packed buckets to those of m, if it has m->packed_encoder: the bucket lengths of
 * PACKED_BUCKETS_LENGTH_MIN to _MAX with every number of rows, within `tokens_max` positions (0: no
 * bound). As many as MODEL_BUCKETS_MAX leaves room for. STATUS_OUT_OF_MEMORY. */
status packed_buckets_add(model *m, int64_t tokens_max) MUST_CHECK;

void packed_buckets_dispose(model *m);

/* Inputs of a packed program: the model's, then position ids, segments and starts. */
int packed_buckets_input_count(const model *m);
/* Type and shape of input or output `index`; data is left alone. `b` is packed. */
void packed_buckets_describe(const model *m, const model_bucket *b, bool is_output, int index,
                             tensor *t);

/* Puts the `number`-th sequence (from 0) of a batch at token `offset` of `row`: writes its position
 * ids, segment and start to inputs[m->input_count ...], which the caller has zeroed. */
void packed_buckets_mark(const model *m, const tensor *inputs, int number, int64_t row,
                         int64_t offset, int64_t length);

#endif

#ifndef BATCHER_EXECUTE_STAGING_H
#define BATCHER_EXECUTE_STAGING_H

#include "models/model.h"

/* A worker's own copy of a batch's tensors, in one piece of memory that is as large as the largest
 * bucket seen: batches allocate nothing. */
typedef struct staging {
    void *memory;
    size_t bytes;
    tensor inputs[MODEL_TENSORS_MAX], outputs[MODEL_TENSORS_MAX];
} staging;

/* Bytes that a batch of that bucket takes (`programs` does not matter); SIZE_MAX when a dim is not
 * known beforehand. */
size_t staging_bytes(const model *m, const model_bucket *bucket);

/* Shapes and places of all inputs and outputs; contents undefined. Where the memory must grow, it
 * grows to what the model's largest bucket takes. STATUS_OUT_OF_MEMORY, STATUS_UNSUPPORTED. */
status staging_lay_out(staging *s, const model *m, const model_bucket *bucket) MUST_CHECK;
void staging_dispose(staging *s);

#endif

#ifndef MODELS_MODEL_H
#define MODELS_MODEL_H

#include <stdatomic.h>

#include "devices/device.h"

/* One served version of a model: immutable once ready, shared by all threads, counted. */

#define MODEL_TENSORS_MAX 64  /* inputs, and outputs, of a model */
#define MODEL_BUCKETS_MAX 256 /* (batch, sequence) pairs */

typedef struct model_tensor {
    const char *name;
    dtype dtype;
    int rank;
    /* Per dim: a size, or -1 where it varies. `batch_axis` and `sequence_axis` are -1 when the
     * tensor has none; a batch axis is always axis 0. */
    int64_t dims[TENSOR_RANK_MAX];
    int batch_axis, sequence_axis;
    /* Inputs only. */
    double pad_value; /* fills positions beyond a row's length */
    bool is_mask;     /* 1 at real positions, 0 at padding: padded with 0 */
    bool is_optional; /* may be missing from a request: then filled with default_value (a mask with
                         1) */
    double default_value;
} model_tensor;

/* How a request of this model may be batched. Found by experiment at load (models/probe.c), or
 * declared in model.json. */
typedef struct model_batching {
    bool can_batch;          /* rows do not influence each other */
    bool can_pad;            /* positions beyond a row's length do not influence it */
    int64_t batch_max;       /* rows of the largest bucket */
    int64_t sequence_max;    /* longest row; 0 when there is no sequence axis */
    uint64_t queue_delay_ns; /* how long an idle device may wait for company */
    int64_t queue_rows_max;  /* ceiling of rows waiting */
} model_batching;

typedef struct model_bucket {
    device_bucket shape;
    device_program **programs; /* one per device of the server, NULL where not ready there */
} model_bucket;

typedef struct model {
    const char *name;
    int64_t version;
    const char *platform; /* "onnx", "hugging_face", "stablehlo": for KServe metadata */
    const char *folder;
    graph *graph;
    device_model on_device;
    model_tensor inputs[MODEL_TENSORS_MAX], outputs[MODEL_TENSORS_MAX];
    int input_count, output_count;
    model_batching batching;
    model_bucket buckets[MODEL_BUCKETS_MAX]; /* ascending by sequence, then batch */
    int bucket_count;
    int64_t sequence_buckets[64], batch_buckets[64]; /* the two axes, ascending */
    int sequence_bucket_count, batch_bucket_count;
    uint64_t load_ns, warm_up_ns;

    /* Owned by others, kept here because they are per model. */
    _Atomic int64_t
        queued_rows;  /* admitted and not yet placed; server/admit.c adds, batcher/ subtracts */
    void *statistics; /* server/record.c */
    int index;        /* dense number among loaded models, for tables; reused after unload */
    _Atomic int64_t references;
} model;

#endif

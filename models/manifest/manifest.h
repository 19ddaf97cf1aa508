#ifndef MODELS_MANIFEST_MANIFEST_H
#define MODELS_MANIFEST_MANIFEST_H

#include "graph/import.h"
#include "models/model.h"

/* What an operator declares about a model: <name>/model.json. Every key is optional:
 *
 *   { "precision": "fp32" | "bf16" | "int8",
 *     "buckets": "auto" | {"batch": [1, 8], "sequence": [16, 64]},
 *     "batch_max": 16, "sequence_max": 256,
 *     "queue_delay_us": 0, "queue_rows_max": 2048, "slo_ms": 50, "priority": 0, "weight": 1,
 *     "inputs": {"input_ids": {"pad": 0}, "attention_mask": {"mask": true, "optional": true},
 *                "token_type_ids": {"optional": true, "default": 0}},
 *     "dims": {"height": 224}, "labels": {"stable": 1}, "pooling": "none"|"mean"|"cls"|"max",
 *     "can_batch": true, "can_pad": true, "packing": "auto" | "never" | "always",
 *     "warm_up": "lengths.txt",
 *     "version_policy": "all" | "latest" | "latest:2" | [1, 3],
 *     "program": {                       needed beside program.<bucket>.mlir, and only there
 *       "inputs": [{"name": "input_ids", "datatype": "INT32", "dims": ["batch", "sequence"]}],
 *       "outputs": [{"name": "logits", "datatype": "FP32", "dims": ["batch", 2]}],
 *       "weights": "weights.safetensors",        beside the programs
 *       "arguments": ["dense/kernel", "input_ids"] } }       names of weights and inputs
 */

#define MANIFEST_LABELS_MAX 16

typedef struct manifest_input {
    const char *name;
    double pad_value, default_value;
    bool has_pad, has_mask, is_mask, has_optional, is_optional;
} manifest_input;

/* Dims of manifest_tensor that are axes. */
#define MANIFEST_DIM_BATCH (-1)
#define MANIFEST_DIM_SEQUENCE (-2)

typedef struct manifest_tensor {
    const char *name;
    dtype dtype;
    int rank;
    int64_t dims[TENSOR_RANK_MAX];
} manifest_tensor;

#define MANIFEST_ARGUMENTS_MAX 4096

/* What StableHLO programs do not contain: names, and which dims are axes. */
typedef struct manifest_program {
    manifest_tensor inputs[MODEL_TENSORS_MAX], outputs[MODEL_TENSORS_MAX];
    int input_count, output_count;
    const char *weights;    /* a safetensors file beside the programs, or NULL */
    const char **arguments; /* of every program, in order; NULL: the inputs */
    int argument_count;
} manifest_program;

/* Which versions of a name are served; of a version's own model.json it means nothing. */
#define MANIFEST_VERSIONS_MAX 64
typedef enum manifest_policy_kind {
    POLICY_ALL,
    POLICY_LATEST,
    POLICY_SPECIFIC
} manifest_policy_kind;

typedef struct manifest_policy {
    manifest_policy_kind kind;
    int latest; /* the highest so many */
    int64_t versions[MANIFEST_VERSIONS_MAX];
    int count;
} manifest_policy;

#define MANIFEST_DIMENSIONS_MAX 32

typedef struct manifest {
    manifest_policy policy;
    bool has_precision;
    device_precision precision;
    bool has_packing;
    model_packing packing;
    int64_t batch_buckets[MODEL_AXIS_MAX], sequence_buckets[MODEL_AXIS_MAX]; /* ascending */
    int batch_bucket_count, sequence_bucket_count;                           /* 0: auto */
    int64_t batch_max, sequence_max, queue_rows_max;                         /* 0: not given */
    bool has_queue_delay;
    uint64_t queue_delay_ns, slo_ns; /* slo 0: none */
    int priority, weight;
    manifest_input inputs[MODEL_TENSORS_MAX];
    int input_count;
    graph_fixed_dim fixed_dims[16];
    int fixed_dim_count;
    model_label labels[MANIFEST_LABELS_MAX];
    int label_count;
    int64_t dimensions[MANIFEST_DIMENSIONS_MAX]; /* to which embeddings may be cut; -1: to any */
    int dimension_count;
    const char *pooling, *warm_up; /* or NULL; warm_up as written: beside model.json */
    bool fits;                     /* buckets that a device has no memory for are left out */
    int can_batch, can_pad;        /* -1: the batching probe decides */
    manifest_program *program;     /* or NULL */
    arena memory;
} manifest;

/* Reads the file at `path`; where there is none the result is all defaults. The caller disposes.
 * STATUS_INVALID_ARGUMENT: "PATH:LINE: KEY.PATH: what is wrong" with the nearest right name. */
status manifest_read(const char *path, manifest *out) MUST_CHECK;
/* The same from memory; `name` is for messages. */
status manifest_read_text(const char *name, const char *text, size_t bytes,
                          manifest *out) MUST_CHECK;
void manifest_dispose(manifest *m);

const manifest_input *manifest_find_input(const manifest *m, const char *name);

#endif

#ifndef DEVICES_CPU_ENCODER_ENCODER_H
#define DEVICES_CPU_ENCODER_ENCODER_H

#include <stdatomic.h>

#include "devices/cpu/threads/thread_pool.h"
#include "devices/device.h"
#include "graph/encoder/encoder.h"
#include "kernels/kernels.h"
#include "kernels/peak.h"

/* An encoder transformer on the CPU, without padding: packed once per model and precision, run on
 * batches of sequences of any lengths. README.md lists the files. */

/* Storage format of a linear layer's weights, and of the activations it multiplies. */
typedef enum cpu_encoder_format {
    CPU_ENCODER_F32,
    CPU_ENCODER_S16,  /* bf16 precision by 11-bit integers ... */
    CPU_ENCODER_BF16, /* ... or by bf16 itself, where the CPU is faster at that */
    CPU_ENCODER_U8S8,
    CPU_ENCODER_FORMAT_COUNT
} cpu_encoder_format;

const char *cpu_encoder_format_name(cpu_encoder_format format);

/* A weight that int8 leaves out, because it alone would coarsen its column: in FP32. */
typedef struct cpu_encoder_outlier {
    uint32_t k, n; /* row and column of W */
    float weight;  /* 0: none */
} cpu_encoder_outlier;

#define CPU_ENCODER_OUTLIERS 8

/* y = x W + b, ready for a kernel. */
typedef struct cpu_encoder_linear {
    cpu_encoder_format format;
    bool is_asymmetric; /* of x, for U8S8 */
    size_t k, n;
    const void *weights; /* packed, 64-byte aligned */
    const float *scales; /* [n]; for the integer formats */
    const float *bias;   /* [n], zeros where the model has none */
    /* For U8S8: x * factors is quantised, and the weights are those of W / factors; NULL: 1. */
    const float *factors;                /* [k] */
    const cpu_encoder_outlier *outliers; /* [CPU_ENCODER_OUTLIERS]; NULL: none */
} cpu_encoder_linear;

typedef struct cpu_encoder_layer {
    cpu_encoder_linear linears[ENCODER_LINEARS];
} cpu_encoder_layer;

/* What a packed encoder is made for. */
typedef struct cpu_encoder_options {
    const kernels *kernels;
    const kernels_peaks *peaks; /* one core's */
    device_precision precision;
    const char *cache_folder;      /* or NULL */
    uint64_t model_key;            /* with that of the samples, which the plan depends on */
    const device_samples *samples; /* for the accuracy check; NULL: generated ones */
    const graph *graph;            /* for the names of inputs in messages; outlives the encoder */
    const cancel_token *cancel;    /* ends cpu_encoder_create() early; not kept; or NULL */
} cpu_encoder_options;

/* What is added to the scores of layers with that window: values[h * head_stride + length_max - 1 +
 * key - query]. */
typedef struct cpu_encoder_bias {
    int64_t window;
    float *values;      /* NULL: nothing */
    size_t head_stride; /* 0: one for all heads */
} cpu_encoder_bias;

/* The turns of each position, [length_max, dims / 2]. */
typedef struct cpu_encoder_rotary {
    const encoder_rotary *source;
    float *cosines, *sines;
} cpu_encoder_rotary;

/* What a layer makes of the table of distances, [rows, heads * head_dim]; NULL: nothing. */
typedef struct cpu_encoder_distances {
    float *keys, *queries;
} cpu_encoder_distances;

/* Different ones in one encoder. */
#define CPU_ENCODER_WINDOWS_MAX 4
#define CPU_ENCODER_ROTARIES_MAX 4

/* Constant once made; any number of threads may run it. */
typedef struct cpu_encoder {
    encoder source; /* owned; word, position and norm tables are used where they lie */
    cpu_encoder_options options;
    cpu_encoder_format *plan; /* [layers * ENCODER_LINEARS] */
    cpu_encoder_layer *layers;
    cpu_encoder_linear embedding_projection; /* k is 0: none */
    cpu_encoder_linear heads[ENCODER_OUTPUTS_MAX][ENCODER_HEAD_LAYERS_MAX];
    cpu_encoder_bias biases[CPU_ENCODER_WINDOWS_MAX];
    int bias_count;
    cpu_encoder_rotary rotaries[CPU_ENCODER_ROTARIES_MAX];
    int rotary_count;
    cpu_encoder_distances *distances; /* [layers]; NULL: none */
    int32_t
        *distance_rows;    /* [2 * length_max - 1]: encoder_distance_row() from 1 - length_max on */
    size_t length_max;     /* longest sequence */
    size_t head_width_max; /* widest result of a head layer, 0: there are none */
    size_t pooled_width_max;
    bool has_hidden, has_heads_on_tokens;
    void *image; /* holds what the linears point to */
    size_t image_bytes;
    bool is_mapped; /* image is a file */
    double peak;    /* operations per second of one core in this precision */
    char *report;   /* text for people: formats by layer, accuracy as measured */
    bool is_from_cache;
} cpu_encoder;

/* Owns `source` from here on, on success and failure alike. Packs the weights, or maps what an
 * earlier run has packed and checked; linear layers that fail the accuracy
 * check of int8 or bf16 get a more precise format. May take seconds. Errors: STATUS_UNSUPPORTED
 * (outputs or inputs of a type it does not write), STATUS_OUT_OF_MEMORY. */
status cpu_encoder_create(encoder *source, const cpu_encoder_options *options,
                          cpu_encoder **out) MUST_CHECK;
void cpu_encoder_destroy(cpu_encoder *e); /* accepts NULL */

/* Longest sequence that the model takes. */
size_t cpu_encoder_length_max(const encoder *source);

/* Bytes of one worker's scratch for sequences of up to `length` tokens; 64-byte aligned. */
size_t cpu_encoder_workspace_bytes(const cpu_encoder *e, size_t length);

/* Multiplications and additions of one sequence. */
double cpu_encoder_operations(const cpu_encoder *e, double length);

/* A batch as the caller splits it: into sequences, and those into chunks. One per slot, reused. */
typedef struct cpu_encoder_sequence {
    const device_segment *segment;
    int64_t row;
    size_t length; /* tokens computed: masked ones at the end are left out where no output and no
                      other token depends on them */
} cpu_encoder_sequence;

typedef struct cpu_encoder_chunk {
    size_t first, count, tokens; /* of sequences */
} cpu_encoder_chunk;

#define CPU_ENCODER_SEQUENCES_MAX 1024 /* in one go; larger batches take several */

typedef struct cpu_encoder_layout {
    cpu_encoder_sequence sequences[CPU_ENCODER_SEQUENCES_MAX];
    cpu_encoder_chunk chunks[CPU_ENCODER_SEQUENCES_MAX];
} cpu_encoder_layout;

/* Who runs a batch. `workspaces` has one entry per worker of the thread pool. */
typedef struct cpu_encoder_runner {
    thread_pool *threads; /* NULL: the calling thread alone, as worker 0 */
    int caller;
    void *const *workspaces;
    size_t workspace_length; /* tokens of the longest sequence that they hold */
    /* NULL, or raised to the largest magnitude of each channel that a norm gives to a linear layer,
     * with one worker: [layers][2][hidden], QKV and UP. */
    float *tops;
    cpu_encoder_layout *layout;
} cpu_encoder_runner;

/* Runs all rows of all segments and writes their outputs; allocates nothing. `operations` counts
 * multiplications and additions, for the fraction of the peak. Between thread_pool_begin and
 * _end, which returned `idle_cores`. STATUS_INVALID_ARGUMENT names input, value and limit. */
status cpu_encoder_run(const cpu_encoder *e, const cpu_encoder_runner *r, int idle_cores,
                       const device_segment *segments, int segment_count,
                       double *operations) MUST_CHECK;

#endif

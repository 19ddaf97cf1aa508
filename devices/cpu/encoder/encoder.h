#ifndef DEVICES_CPU_ENCODER_ENCODER_H
#define DEVICES_CPU_ENCODER_ENCODER_H

#include <stdatomic.h>

#include "devices/cpu/threads/thread_pool.h"
#include "devices/device.h"
#include "graph/encoder/encoder.h"
#include "kernels/kernels.h"
#include "kernels/peak.h"

/* An encoder transformer on the CPU, without padding: packed once per model and precision, run on
 * batches of sequences of any lengths. The files: cpu_encoder_plan.c (which product in which
 * format), cpu_encoder_pack.c (weights), cpu_encoder_cache.c (weights on disk), cpu_encoder_gate.c
 * (is it accurate enough), cpu_encoder_batch.c (a batch as chunks), cpu_encoder_pass.c (a chunk
 * through the layers), cpu_encoder_tail.c (what comes out). */

/* How a product's operands are kept. */
typedef enum cpu_encoder_format {
    CPU_ENCODER_F32,
    CPU_ENCODER_S16,  /* the bf16 promise by 11-bit integers ... */
    CPU_ENCODER_BF16, /* ... or by bf16 itself, where the CPU is faster at that */
    CPU_ENCODER_U8S8,
    CPU_ENCODER_FORMAT_COUNT
} cpu_encoder_format;

const char *cpu_encoder_format_name(cpu_encoder_format format);

/* The four products of a layer. */
enum { ENCODER_QKV, ENCODER_ATTENTION_OUTPUT, ENCODER_UP, ENCODER_DOWN, ENCODER_LINEARS };

/* y = x W + b, ready for a kernel. */
typedef struct cpu_encoder_linear {
    cpu_encoder_format format;
    bool is_asymmetric; /* of x, for U8S8 */
    size_t k, n;
    const void *weights; /* packed, 64-byte aligned */
    const float *scales; /* [n]; for the integer formats */
    const float *bias;   /* [n], zeros where the model has none */
} cpu_encoder_linear;

typedef struct cpu_encoder_layer {
    cpu_encoder_linear products[ENCODER_LINEARS];
} cpu_encoder_layer;

/* What a packed encoder is made for. */
typedef struct cpu_encoder_options {
    const kernels *kernels;
    const kernels_peaks *peaks; /* one core's */
    device_precision precision;
    const char *cache_folder;      /* or NULL */
    uint64_t model_key;            /* with that of the samples, which the plan depends on */
    const device_samples *samples; /* for the accuracy gate; NULL: generated ones */
    const graph *graph;            /* for the names of inputs in messages; outlives the encoder */
} cpu_encoder_options;

/* Constant once made; any number of threads may run it. */
typedef struct cpu_encoder {
    encoder source; /* owned; word, position and norm tables are used where they lie */
    cpu_encoder_options options;
    cpu_encoder_format *plan; /* [layers * ENCODER_LINEARS] */
    cpu_encoder_layer *layers;
    cpu_encoder_linear embedding_projection; /* k is 0: none */
    cpu_encoder_linear heads[ENCODER_OUTPUTS_MAX][ENCODER_HEAD_LAYERS_MAX];
    float *relative_bias;  /* [heads, 2 * length_max - 1], or NULL */
    size_t length_max;     /* longest sequence */
    size_t head_width_max; /* widest result of a head layer, 0: there are none */
    bool has_hidden, has_heads_on_tokens;
    void *image; /* holds what the linears point to */
    size_t image_bytes;
    bool is_mapped; /* image is a file */
    double peak;    /* operations per second of one core in this precision */
    char *report;   /* text for people: formats by layer, accuracy as measured */
    bool is_from_cache;
} cpu_encoder;

/* Takes `source` over on success and failure alike. Packs, or maps what an earlier run has packed
 * and judged; int8 and bf16 pass the accuracy gate, or get some products in a closer format. May
 * take seconds. Errors: STATUS_UNSUPPORTED (outputs or inputs of a type it does not write),
 * STATUS_OUT_OF_MEMORY. */
status cpu_encoder_create(encoder *source, const cpu_encoder_options *options,
                          cpu_encoder **out) MUST_CHECK;
void cpu_encoder_destroy(cpu_encoder *e); /* accepts NULL */

/* Longest sequence that position tables allow. */
size_t cpu_encoder_length_max(const encoder *source);

/* Scratch of one worker for sequences up to `length`, 64-byte aligned. */
size_t cpu_encoder_workspace_bytes(const cpu_encoder *e, size_t length);

/* How a caller lays out a batch: sequences, chunks. One per slot, reused. */
typedef struct cpu_encoder_sequence {
    const device_segment *segment;
    int64_t row;
    size_t length; /* positions computed: masked ones at the end are left out where nobody sees
                      them */
} cpu_encoder_sequence;

typedef struct cpu_encoder_chunk {
    size_t first, count, tokens; /* of sequences */
} cpu_encoder_chunk;

#define CPU_ENCODER_SEQUENCES_MAX 1024 /* in one go; larger batches take several */

typedef struct cpu_encoder_layout {
    cpu_encoder_sequence sequences[CPU_ENCODER_SEQUENCES_MAX];
    cpu_encoder_chunk chunks[CPU_ENCODER_SEQUENCES_MAX];
} cpu_encoder_layout;

/* Who runs a batch. `workspaces` has one per worker of the thread pool. */
typedef struct cpu_encoder_runner {
    thread_pool *threads; /* NULL: the calling thread alone, as worker 0 */
    int caller;
    void *const *workspaces;
    size_t workspace_length; /* sequences they were made for */
    cpu_encoder_layout *layout;
} cpu_encoder_runner;

/* Runs all rows of all segments and writes their outputs; allocates nothing. `operations`: what it
 * took, multiplications and additions, for the fraction of the peak. Between thread_pool_begin and
 * _end, which returned `idle_cores`. STATUS_INVALID_ARGUMENT names input, value and limit. */
status cpu_encoder_run(const cpu_encoder *e, const cpu_encoder_runner *r, int idle_cores,
                       const device_segment *segments, int segment_count,
                       double *operations) MUST_CHECK;

#endif

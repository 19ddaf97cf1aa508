#ifndef DEVICES_CPU_ENCODER_INTERNAL_H
#define DEVICES_CPU_ENCODER_INTERNAL_H

#include "devices/cpu/encoder/encoder.h"

/* What the files of this folder share; nobody else includes it. */

/* pack.c */
/* Lays the image out for e->plan: sets k, n, format and pointers relative to `image` (NULL: only
 * measures). Returns its bytes. */
size_t cpu_encoder_lay_out(cpu_encoder *e, void *image);
/* Fills a new image by e->plan. `tops` as in cpu_encoder_runner: the larger a channel's are, the
 * smaller its factor for int8 (NULL: factors of 1). STATUS_OUT_OF_MEMORY. */
status cpu_encoder_pack(cpu_encoder *e, const float *tops) MUST_CHECK;
void cpu_encoder_drop_image(cpu_encoder *e);
/* Sets the format of every linear layer to that of the precision. */
void cpu_encoder_plan_all(cpu_encoder *e, device_precision precision);
/* A copy of e with a plan of its own, borrowing e->source: the accuracy check compares precisions.
 * Release with cpu_encoder_release_view. */
status cpu_encoder_view(const cpu_encoder *e, cpu_encoder *out) MUST_CHECK;
void cpu_encoder_release_view(cpu_encoder *view);

/* positions.c: what positions do to attention, for sequences of up to e->length_max.
 * STATUS_UNSUPPORTED, STATUS_OUT_OF_MEMORY. */
status cpu_encoder_make_positions(cpu_encoder *e) MUST_CHECK;
void cpu_encoder_drop_positions(cpu_encoder *e);
/* Those of a layer. */
const cpu_encoder_bias *cpu_encoder_bias_of(const cpu_encoder *e, int64_t window);
const cpu_encoder_rotary *cpu_encoder_rotary_of(const cpu_encoder *e, const encoder_rotary *source);

/* Floats that the scores of distances take. */
static inline size_t cpu_encoder_distances_count(const encoder *s, size_t length)
{
    size_t rows = 2 * (size_t)s->distance_span, span = 2 * length;
    return s->distance_table ? length * (length + (rows < span ? rows : span)) : 0;
}

/* Widths of what query, key and value give together, and gate and up. */
static inline size_t cpu_encoder_qkv_width(const encoder *s)
{
    return (size_t)((s->heads + 2 * s->kv_heads) * s->head_dim);
}
static inline size_t cpu_encoder_attended_width(const encoder *s)
{
    return (size_t)(s->heads * s->head_dim);
}
static inline bool cpu_encoder_is_gated(const encoder *s)
{
    return s->layer_count > 0 && s->layers[0].gate.weight != NULL;
}
static inline size_t cpu_encoder_up_width(const encoder *s)
{
    return (size_t)s->intermediate * (cpu_encoder_is_gated(s) ? 2 : 1);
}

/* corrections.c, for int8. `w` is [n][k]. */
/* Factors of the channels of x from their largest magnitudes (NULL: not known). */
void cpu_encoder_choose_factors(const float *w, size_t k, size_t n, const float *tops,
                                float *factors);
/* Takes up to CPU_ENCODER_OUTLIERS weights out of `w`, into `out`, which is zeroed: those that
 * coarsen their columns most. STATUS_OUT_OF_MEMORY. */
status cpu_encoder_take_outliers(float *w, size_t k, size_t n, cpu_encoder_outlier *out) MUST_CHECK;

/* accuracy_check.c: decides e->plan, packs, writes e->report. */
status cpu_encoder_check_accuracy(cpu_encoder *e) MUST_CHECK;

/* cache.c */
/* Maps the image of an earlier run, with plan and report. STATUS_NOT_FOUND: there is none, or it
 * does not match. */
status cpu_encoder_cache_load(cpu_encoder *e) MUST_CHECK;
/* Keeps the image for the next run; a failure is only logged. */
void cpu_encoder_cache_store(const cpu_encoder *e);

/* Memory of one worker, for chunks of up to `tokens`. Buffers that a layer does not need at the
 * same time share memory, which is then in the cache already: qkv, projected and up have one
 * address, attended and down another. */
typedef struct cpu_encoder_scratch {
    float *x;         /* [tokens, hidden]: the residual stream */
    float *normed;    /* [tokens, hidden]: x where norms come after the layers, a buffer of its own
                         where they come before */
    float *qkv;       /* [tokens, heads + 2 * kv_heads, head_dim] */
    float *projected; /* [tokens, hidden]: what attention adds, before its norm */
    float *up;        /* [tokens, intermediate], or twice as wide: gate and up */
    float *attended;  /* [tokens, heads * head_dim] */
    float *down;      /* [tokens, hidden]: what the layer adds, before its norm */
    void *a, *a_up;   /* quantised operands; a: of width hidden or heads * head_dim */
    float *a_scale;   /* [tokens] */
    int32_t *a_zero;  /* [tokens] */
    float *low, *high;
    float *pooled[2]; /* [tokens, widest head or hidden] */
    int64_t *ids[3];  /* [tokens]; 1: positions, counted from 0 without a table of them */
    uint8_t *mask;    /* [tokens]: 0 masked, 1, 2: of a prompt, which pooling leaves out */
    int32_t *offsets;
    void *attention;
    float *distances; /* of one sequence and head: [length, rows], [length, length] */
} cpu_encoder_scratch;

/* Tokens that one pass takes at most, unless a single sequence is longer. */
#define CPU_ENCODER_CHUNK_TOKENS_MAX 256

/* scratch.c. The scratch of `worker`. */
void cpu_encoder_find_scratch(const cpu_encoder *e, const cpu_encoder_runner *r, int worker,
                              cpu_encoder_scratch *out);

/* One chunk on its way through the layers. */
typedef struct cpu_encoder_pass {
    const cpu_encoder *e;
    const cpu_encoder_runner *runner;
    const cpu_encoder_sequence *sequences;
    size_t sequence_count, tokens;
    cpu_encoder_scratch scratch;
    int worker;    /* whose scratch it is */
    bool is_split; /* the thread pool shares this one chunk */
    bool has_mask; /* some token is masked */
    const cpu_encoder_layer *layer;
    int layer_index;
    int linear; /* ENCODER_*: the last one computed */
} cpu_encoder_pass;

#define CPU_ENCODER_SPLIT_ROWS 8 /* rows of a unit of row-wise steps */

/* Units [first, first + count) of `size` items each, of `total`: the items. */
static inline size_t cpu_encoder_items(size_t first, size_t count, size_t size, size_t total,
                                       size_t *begin)
{
    size_t end = (first + count) * size;
    *begin = first * size;
    return (end < total ? end : total) - *begin;
}

/* attention.c. x / sqrt(mean(x^2) + epsilon) * scale, rows `stride` floats apart. */
void cpu_encoder_rms_norm(const kernels *k, const encoder_norm *norm, size_t rows, size_t width,
                          const float *x, float *out, size_t stride);
/* Steps of a pass on units [first, first + count), by `worker`. Norms and rotations of queries and
 * keys, head by head; a unit is rows. */
void cpu_encoder_step_turn(cpu_encoder_pass *p, int worker, size_t first, size_t count);
/* From qkv to attended; a unit is one head of one sequence. */
void cpu_encoder_step_attention(cpu_encoder_pass *p, int worker, size_t first, size_t count);

/* batch.c: reads ids and mask of the pass's sequences. */
status cpu_encoder_read_inputs(cpu_encoder_pass *p) MUST_CHECK;
/* pass.c: embeddings and layers; the result is scratch.x. */
void cpu_encoder_run_layers(cpu_encoder_pass *p);
/* outputs.c: from scratch.x to the segments' outputs. */
void cpu_encoder_write_outputs(cpu_encoder_pass *p);
/* Rows of x through a linear layer of format F32. */
void cpu_encoder_apply_f32(const kernels *k, const cpu_encoder_linear *l, size_t rows,
                           const float *x, size_t x_stride, kernels_activation activation,
                           float *out, size_t out_stride);

static inline size_t cpu_encoder_align(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

#endif

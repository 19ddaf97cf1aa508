#ifndef KERNELS_KERNELS_H
#define KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* How a CPU computes: one table of function pointers. `scalar` is the specification and fills every
 * entry; each level overwrites what it does better (kernels.inc lists them all). A table is
 * constant once made. Kernels run on the calling thread, allocate nothing, keep no state and never
 * fail: arguments out of range are bugs. Pointers need only the alignment of their element type
 * unless a comment asks for more. Nothing beyond the stated extents is read or written.
 *
 * Results of integer kernels are the same at every level, bit for bit. Float kernels stay within
 * the bound written beside them. At one level, a row's bits depend on that row's inputs only: not
 * on the number of rows, nor on its place among them, nor on how the caller splits rows into calls.
 */

typedef enum kernels_level {
    KERNELS_SCALAR,
    KERNELS_AVX2, /* with FMA and F16C */
    KERNELS_AVXVNNI,
    KERNELS_AVX512, /* F, BW, DQ, VL */
    KERNELS_AVX512VNNI,
    KERNELS_AMX, /* TILE, INT8 */
    KERNELS_LEVEL_COUNT
} kernels_level;

/* Applied to each element of a result before it is stored. */
typedef enum kernels_activation {
    KERNELS_IDENTITY,
    KERNELS_RELU,
    KERNELS_GELU,      /* x/2 * (1 + erf(x / sqrt(2))) */
    KERNELS_GELU_TANH, /* x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) */
    KERNELS_TANH,
    KERNELS_SIGMOID,
    KERNELS_SILU, /* x * sigmoid(x) */
    KERNELS_ACTIVATION_COUNT
} kernels_activation;

struct activation_f32;      /* kernels/activation.h */
struct weighted_rows_f32;   /* kernels/activation.h */
struct gemm_f32;            /* kernels/gemm_f32.h */
struct gemm_f32_unpacked;   /* kernels/gemm_f32.h */
struct gemm_u8s8;           /* kernels/gemm_scaled.h */
struct conv_u8s8;           /* kernels/conv_u8s8.h */
struct gemm_s16;            /* kernels/gemm_scaled.h */
struct gemm_bf16;           /* kernels/gemm_scaled.h */
struct layer_norm_f32;      /* kernels/rows.h */
struct softmax_f32;         /* kernels/rows.h */
struct embedding_sum_f32;   /* kernels/embedding.h */
struct image_rows;          /* kernels/convolution.h */
struct depthwise_f32;       /* kernels/convolution.h */
struct pool_f32;            /* kernels/convolution.h */
struct pool_planes_f32;     /* kernels/convolution.h */
struct attention_f32;       /* kernels/attention.h */
struct quantise_u8;         /* kernels/quantise.h */
struct quantise_s16;        /* kernels/quantise.h */
struct layer_norm_quantise; /* kernels/quantise.h */
struct quantise_tensor_u8;  /* kernels/tensor_u8.h */
struct dequantise_u8;       /* kernels/tensor_u8.h */
struct add_u8;              /* kernels/tensor_u8.h */
struct pool_u8;             /* kernels/tensor_u8.h */
struct depthwise_u8s8;      /* kernels/tensor_u8.h */
struct combine_line;        /* kernels/lines.h */
struct choose_line;         /* kernels/lines.h */
struct convert_line;        /* kernels/lines.h */
struct fold_windows_f32;    /* kernels/lines.h */
struct fold_rows_f32;       /* kernels/lines.h */
struct gather_sum_f32;      /* kernels/lines.h */
struct cumulate_f32;        /* kernels/lines.h */
struct fold_line;           /* kernels/lines.h */
struct place_line;          /* kernels/lines.h */
struct plain_product;       /* kernels/lines.h */
struct arg_rows_f32;        /* kernels/lines.h */
struct fold_each_f32;       /* kernels/lines.h */
struct transpose_plane;     /* kernels/lines.h */
struct repeat_plane;        /* kernels/lines.h */

/* out[i] = f(in[i]); `out` may be `in`. */
typedef void (*kernels_unary_f32)(const float *in, float *out, size_t count);
/* out[i] = f(a[i * a_step], b[i * b_step]); steps are 0 (one value for all) or 1. `out` may be `a`
 * or `b` where that one's step is 1. */
typedef void (*kernels_binary_f32)(const float *a, size_t a_step, const float *b, size_t b_step,
                                   float *out, size_t count);

typedef struct kernels {
    kernels_level level; /* the highest level that contributed an entry */

    /* Matrix multiplication, kernels/gemm_f32.h. */
    void (*gemm_pack_f32)(const float *b, size_t b_row_stride, size_t b_column_stride, size_t k,
                          size_t n, float *packed);
    void (*gemm_f32)(const struct gemm_f32 *g);
    void (*gemm_unpacked_f32)(const struct gemm_f32_unpacked *g);

    /* Matrix multiplication of quantised operands, kernels/gemm_scaled.h. Strides of `b` as in
     * gemm_pack_f32. */
    void (*gemm_pack_u8s8)(const int8_t *b, size_t b_row_stride, size_t b_column_stride, size_t k,
                           size_t n, void *packed);
    void (*gemm_pack_s16)(const int16_t *b, size_t b_row_stride, size_t b_column_stride, size_t k,
                          size_t n, void *packed);
    void (*gemm_pack_bf16)(const int16_t *b, size_t b_row_stride, size_t b_column_stride, size_t k,
                           size_t n, void *packed);
    void (*gemm_u8s8)(const struct gemm_u8s8 *g);
    void (*gemm_s16)(const struct gemm_s16 *g);
    void (*gemm_bf16)(const struct gemm_bf16 *g);

    /* Convolutions of uint8 images that read their windows in place, kernels/conv_u8s8.h. `w` is
     * [64 * steps, n]; `packed` holds conv_u8s8_packed_bytes(), 64-byte aligned. */
    void (*conv_pack_u8s8)(const int8_t *w, size_t steps, size_t n, void *packed);
    void (*conv_u8s8)(const struct conv_u8s8 *c);

    /* Whole rows, kernels/rows.h. */
    void (*layer_norm_f32)(const struct layer_norm_f32 *l);
    void (*softmax_f32)(const struct softmax_f32 *s);
    float (*reduce_sum_f32)(const float *in, size_t count); /* 0 when empty */
    float (*reduce_max_f32)(const float *in, size_t count); /* -inf when empty; NaN if one is NaN */
    float (*reduce_min_f32)(const float *in, size_t count); /* +inf when empty; NaN if one is NaN */

    /* Floats to integers with a scale per row, kernels/quantise.h. */
    void (*quantise_u8)(const struct quantise_u8 *q);
    void (*quantise_s16)(const struct quantise_s16 *q);
    void (*layer_norm_quantise)(const struct layer_norm_quantise *l);

    /* Attention of ragged batches, kernels/attention.h. */
    void (*attention_f32)(const struct attention_f32 *a);

    /* Embeddings (kernels/embedding.h), convolution and pooling (kernels/convolution.h). */
    void (*embedding_sum_f32)(const struct embedding_sum_f32 *e);
    void (*image_rows)(const struct image_rows *r);
    void (*depthwise_f32)(const struct depthwise_f32 *d);
    void (*pool_f32)(const struct pool_f32 *p);
    void (*pool_planes_f32)(const struct pool_planes_f32 *p);

    /* uint8 and int8 tensors with one scale, kernels/tensor_u8.h. */
    void (*quantise_tensor_u8)(const struct quantise_tensor_u8 *q);
    void (*dequantise_u8)(const struct dequantise_u8 *d);
    void (*add_u8)(const struct add_u8 *p);
    void (*pool_u8)(const struct pool_u8 *p);
    void (*depthwise_u8s8)(const struct depthwise_u8s8 *d);

    /* Elementwise; error bounds in kernels/rows.h. */
    kernels_unary_f32 exp_f32, erf_f32, tanh_f32, sigmoid_f32, relu_f32, gelu_f32, gelu_tanh_f32,
        silu_f32;
    /* max and min: NaN if either is NaN. */
    kernels_binary_f32 add_f32, sub_f32, mul_f32, div_f32, max_f32, min_f32;
    /* a < 0 ? a * b : a, with b the slope. */
    kernels_binary_f32 prelu_f32;
    /* With parameters, and sums of rows: kernels/activation.h. */
    void (*activation_f32)(const struct activation_f32 *a);
    void (*weighted_rows_f32)(const struct weighted_rows_f32 *w);

    /* Lines of elements, kernels/lines.h. */
    void (*combine_line)(const struct combine_line *p);
    void (*choose_line)(const struct choose_line *p);
    void (*convert_line)(const struct convert_line *p);
    void (*fold_windows_f32)(const struct fold_windows_f32 *p);
    void (*fold_rows_f32)(const struct fold_rows_f32 *p);
    void (*gather_sum_f32)(const struct gather_sum_f32 *p);
    void (*cumulate_f32)(const struct cumulate_f32 *p);
    void (*fold_line)(const struct fold_line *p);
    size_t (*place_line)(const struct place_line *p);
    void (*plain_product)(const struct plain_product *p);
    void (*arg_rows_f32)(const struct arg_rows_f32 *p);
    void (*fold_each_f32)(const struct fold_each_f32 *p);
    void (*transpose_plane)(const struct transpose_plane *p);
    void (*repeat_plane)(const struct repeat_plane *p);

    /* Conversions: exact, or round to nearest with ties to even; NaN stays NaN, quiet. */
    void (*convert_f16_f32)(const uint16_t *in, float *out, size_t count);
    void (*convert_f32_f16)(const float *in, uint16_t *out, size_t count);
    void (*convert_bf16_f32)(const uint16_t *in, float *out, size_t count);
    void (*convert_f32_bf16)(const float *in, uint16_t *out, size_t count);

    /* `rounds` times a dozen independent instructions of the kind that gemm_* is made of; returns
     * the operations done (a multiplication and an addition count as two). See kernels/peak.h. */
    double (*peak_f32)(size_t rounds);
    double (*peak_u8s8)(size_t rounds);
    double (*peak_s16)(size_t rounds);
    double (*peak_bf16)(size_t rounds);
} kernels;

/* The table of the best kernels that this CPU and operating system can run, up to `level_name`
 * ("scalar", "avx2", ...; NULL: no cap). The table is static, and the same for the same level. Any
 * thread may call this function and use the table. STATUS_INVALID_ARGUMENT: no such level. A level
 * above what the CPU has is no error; kernels->level says which level the table has. */
status kernels_select(const char *level_name, const kernels **out) MUST_CHECK;

/* "scalar" ... "amx". Static. */
const char *kernels_level_name(kernels_level level);

/* Makes denormals zero on the calling thread, in results and as inputs (x86: FTZ and DAZ): every
 * thread that runs kernels calls it once, or denormals cost up to 20%. No effect elsewhere. */
void kernels_prepare_thread(void);

#endif

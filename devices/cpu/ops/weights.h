#ifndef DEVICES_CPU_OPS_WEIGHTS_H
#define DEVICES_CPU_OPS_WEIGHTS_H

#include "graph/graph.h"
#include "kernels/kernels.h"

/* Constants of one model in the storage formats of the kernels: packed once, shared by the plans of
 * all its buckets. Any thread. Reference counted: the last release frees what was packed. */

typedef struct cpu_weights cpu_weights;

/* Storage format of a packed constant; part of its key. */
typedef enum cpu_weights_format {
    CPU_WEIGHTS_GEMM_F32,  /* a [k, n] matrix packed by gemm_pack_f32 */
    CPU_WEIGHTS_F32,       /* widened to F32, order unchanged */
    CPU_WEIGHTS_GEMM_U8S8, /* a [k, n] matrix of I8, or of U8 less 128, by gemm_pack_u8s8 */
    CPU_WEIGHTS_CONV_U8S8, /* [n, k] of I8 in the order of `items`, packed by conv_pack_u8s8 */
    CPU_WEIGHTS_TAPS,      /* [n, k] transposed to [k, n], F32 or I8: depthwise kernels */
    CPU_WEIGHTS_TABLE,     /* no constant: of cpu_weights_make */
} cpu_weights_format;

typedef struct cpu_weights_key {
    const tensor *constant;
    cpu_weights_format format;
    size_t offset; /* elements to skip in the constant */
    size_t k, n;   /* GEMM_*, TAPS */
    size_t row_stride, column_stride;
    size_t taps; /* GEMM_*: more than 1 for a convolution's [n][channels][taps], whose row k is then
                    that of tap k / channels and channel k % channels; strides are not read */
    /* CONV_U8S8: which row of the above each of the k rows is, -1 for zeros. Follows from the
     * constant's shape and from `arrangement`, and is not kept. */
    const int32_t *items;
    size_t arrangement[4];
} cpu_weights_key;

/* `source` is the symbolic graph of the model (NULL: none): its constants are known by address,
 * since it outlives every plan; constants that specialisation made are known by their contents. */
cpu_weights *cpu_weights_create(const graph *source) MUST_CHECK;
void cpu_weights_retain(cpu_weights *w);
void cpu_weights_release(cpu_weights *w); /* accepts NULL */

/* Where packed weights are kept between starts (devices/cpu/cache/weights_cache.h): in `folder`
 * (NULL: nowhere; copied), for a model whose files have the hash `model_key` (0: nowhere). Before
 * the first find.
 */
void cpu_weights_use_cache(cpu_weights *w, const kernels *k, const char *folder,
                           uint64_t model_key);
/* Writes what was packed to that folder, if the file there has not all of it. May take long, and
 * holds up nobody; one thread at a time. What fails is logged. */
void cpu_weights_keep(cpu_weights *w);

/* Whether it is the data of a constant of the source. `w` NULL: false. */
bool cpu_weights_has_constant(const cpu_weights *w, const void *data);

/* The transformed constant, 64-byte aligned; lives as long as `w`. Constants are F32, F16, BF16 or
 * F64, or I8 where the format says so. NULL when memory is out. */
const void *cpu_weights_find(cpu_weights *w, const kernels *k,
                             const cpu_weights_key *key) MUST_CHECK;

/* Tables of one model that operators compute; more are not kept. */
#define CPU_WEIGHTS_TABLES_MAX 16

/* The table of that identity (`identity_bytes` bytes that say all that it depends on), 64-byte
 * aligned, `bytes` large, filled by `make` when it is first asked for; false: make has failed. It
 * lives as long as `w`. NULL: there are too many already, or memory is out: the caller makes its
 * own. */
const void *cpu_weights_make(cpu_weights *w, const void *identity, size_t identity_bytes,
                             size_t bytes, bool (*make)(const void *context, void *table),
                             const void *context) MUST_CHECK;

/* Bytes held. */
size_t cpu_weights_bytes(cpu_weights *w);

#endif

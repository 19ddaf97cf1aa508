#ifndef DEVICES_CPU_OPS_INTEGER_INTEGER_H
#define DEVICES_CPU_OPS_INTEGER_INTEGER_H

#include "devices/cpu/ops/op.h"
#include "devices/cpu/tensor_loops/walk.h"
#include "devices/cpu/tensor_loops/window.h"

/* MatMulInteger, ConvInteger, QLinearMatMul and QLinearConv by the kernels' u8 x s8 GEMM: exact, as
 * the plain loops of integer.c are, which run where no weights may be packed or where B of
 * quantised results has several zero points. Signed A and signed results have their upper bit
 * flipped, zero points 128 added; B of uint8 is packed less 128. */

/* Which input each operand is; -1: none. */
typedef struct integer_roles {
    int a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero, bias;
} integer_roles;

integer_roles integer_roles_of(graph_op op);

/* The input with that role, or NULL. */
static inline const tensor *integer_role(const tensor *const *inputs, const graph_node *node,
                                         int role)
{
    return role < 0 ? NULL : cpu_input(inputs, node, role);
}

/* The zero point or scale of row or column i, counted over all matrices: one for all, one for each
 * of a matrix, or of all of them. Absent: 0, and 1. */
int32_t integer_zero_at(const tensor *zero, int64_t i);
float integer_scale_at(const tensor *scale, int64_t i);

/* Whether integer_gemm can compute the node: one scale of A, and where results are quantised, one
 * zero point of B. */
bool integer_gemm_is_fit(const cpu_prepare *p);

/* Matrices A [rows, k] by B [k, n]. */
typedef struct integer_gemm {
    const kernels *kernels;
    size_t n, k;
    const void *packed;      /* B, by gemm_pack_u8s8; */
    int32_t b_shift;         /* and what its elements lack, */
    const int32_t *b_shifts; /* or [n] of them; NULL: all the same */
    const int32_t *start;    /* [n], added to the sums; NULL: 0 */
    const float *scale;      /* [n]: results are quantised; NULL: they are the sums, int32 */
    int32_t y_zero;          /* 0 to 255 */
    bool is_y_signed;
} integer_gemm;

/* Bytes of a result. */
static inline size_t integer_gemm_item_bytes(const integer_gemm *g)
{
    return g->scale ? 1 : sizeof(int32_t);
}

/* B and what becomes of the sums, of one run. `memory` holds n numbers, which it keeps; the columns
 * are those from `column` on of all n of the node. */
void integer_gemm_init(integer_gemm *g, const cpu_call *c, const void *packed, size_t k, size_t n,
                       size_t column, void *memory);

/* Rows of A, uint8 or flipped, with their zero points; `row_start` holds `rows` integers. Results
 * are [rows, n], dense. */
void integer_gemm_rows(const integer_gemm *g, const uint8_t *a, size_t a_stride, size_t rows,
                       const int32_t *a_zero, int32_t *row_start, void *out);

/* What is added to the zero points of int8 tensors: 128; of others 0. */
static inline int32_t integer_flip_zero(dtype type)
{
    return type == DTYPE_I8 ? 128 : 0;
}

/* Flips the upper bits: int8 x becomes uint8 x + 128, and back. */
void integer_flip(uint8_t *bytes, size_t count);

/* Matrix multiplications by integer_gemm. NULL in `*out`: the plain loops are to be used. Errors:
 * STATUS_OUT_OF_MEMORY. */
typedef struct matmul_integer matmul_integer;
status matmul_integer_prepare(cpu_prepare *p, const matmul_integer **out) MUST_CHECK;
status matmul_integer_run(const matmul_integer *s, const cpu_call *c) MUST_CHECK;

/* Walks the matrices of the result (0), a (1) and b (2): their batch dims, broadcast. */
void integer_walk_matrices(cpu_walk *w, const tensor *a, const tensor *b, const tensor *out);

/* A convolution of at most two spatial dims by integer_gemm. `window` is that of the node. NULL in
 * `*out`: the plain loops are to be used. Errors: STATUS_OUT_OF_MEMORY. */
typedef struct conv_integer conv_integer;
status conv_integer_prepare(cpu_prepare *p, const cpu_window *window,
                            const conv_integer **out) MUST_CHECK;
status conv_integer_run(const conv_integer *s, const cpu_call *c) MUST_CHECK;

#endif

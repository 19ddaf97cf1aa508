#include <string.h>

#include "devices/cpu/ops/integer/integer.h"
#include "kernels/gemm_scaled.h"

integer_roles integer_roles_of(graph_op op)
{
    if (op == GRAPH_OP_MATMUL_INTEGER || op == GRAPH_OP_CONV_INTEGER)
        return (integer_roles){0, -1, 2, 1, -1, 3, -1, -1, -1};
    return (integer_roles){0, 1, 2, 3, 4, 5, 6, 7, op == GRAPH_OP_QLINEAR_CONV ? 8 : -1};
}

int32_t integer_zero_at(const tensor *zero, int64_t i)
{
    int64_t count = zero ? tensor_count(zero) : 0;
    return count > 0 ? (int32_t)tensor_get_integer(zero, i % count) : 0;
}

float integer_scale_at(const tensor *scale, int64_t i)
{
    int64_t count = scale ? tensor_count(scale) : 0;
    return count > 0 ? (float)tensor_get_number(scale, i % count) : 1;
}

/* False where it cannot be known. */
static bool is_one_number(const tensor *t)
{
    int64_t count = t ? tensor_count(t) : 1;
    for (int64_t i = 1; i < count && t->data; i++)
        if (tensor_get_integer(t, i) != tensor_get_integer(t, 0))
            return false;
    return count == 1 || t->data;
}

bool integer_gemm_is_fit(const cpu_prepare *p)
{
    integer_roles r = integer_roles_of(p->node->op);
    const tensor *scale = integer_role(p->inputs, p->node, r.a_scale);
    if (!p->weights || (scale && tensor_count(scale) != 1))
        return false;
    return r.y_scale < 0 || is_one_number(integer_role(p->inputs, p->node, r.b_zero));
}

/* What the elements of each column lack, or of all. */
static void find_shifts(integer_gemm *g, const tensor *b, const tensor *zero, size_t column,
                        int32_t *shifts)
{
    int32_t more = b->dtype == DTYPE_U8 ? 128 : 0;
    g->b_shift = more - integer_zero_at(zero, (int64_t)column);
    if (is_one_number(zero))
        return;
    for (size_t j = 0; j < g->n; j++)
        shifts[j] = more - integer_zero_at(zero, (int64_t)(column + j));
    g->b_shift = 0;
    g->b_shifts = shifts;
}

void integer_gemm_init(integer_gemm *g, const cpu_call *c, const void *packed, size_t k, size_t n,
                       size_t column, void *memory)
{
    integer_roles r = integer_roles_of(c->node->op);
    const tensor *bias = integer_role(c->inputs, c->node, r.bias);
    const tensor *y_scale = integer_role(c->inputs, c->node, r.y_scale);
    *g = (integer_gemm){.kernels = c->kernels, .n = n, .k = k, .packed = packed};
    find_shifts(g, c->inputs[r.b], integer_role(c->inputs, c->node, r.b_zero), column, memory);
    g->start = bias ? (const int32_t *)bias->data + column : NULL;
    if (!y_scale)
        return;
    const tensor *b_scale = integer_role(c->inputs, c->node, r.b_scale);
    dtype type = c->outputs[0].dtype;
    float *scales = memory, y = integer_scale_at(y_scale, 0);
    float a = integer_scale_at(integer_role(c->inputs, c->node, r.a_scale), 0);
    for (size_t j = 0; j < n; j++)
        scales[j] = a * integer_scale_at(b_scale, (int64_t)(column + j)) / y;
    g->scale = scales;
    g->is_y_signed = type == DTYPE_I8;
    g->y_zero =
        integer_zero_at(integer_role(c->inputs, c->node, r.y_zero), 0) + integer_flip_zero(type);
}

void integer_flip(uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] ^= 0x80;
}

/* The sum of (a - zero): a shift of B adds it times that shift to the sums of a row. */
static uint32_t sum_row(const uint8_t *a, size_t k, int32_t zero)
{
    uint32_t sum = 0 - (uint32_t)k * (uint32_t)zero;
    for (size_t i = 0; i < k; i++)
        sum += a[i];
    return sum;
}

static void add_shifts(const integer_gemm *g, const uint8_t *a, size_t a_stride, size_t rows,
                       const int32_t *a_zero, int32_t *sums)
{
    for (size_t i = 0; i < rows; i++, sums += g->n) {
        uint32_t row = sum_row(a + i * a_stride, g->k, a_zero[i]);
        for (size_t j = 0; j < g->n; j++)
            sums[j] = (int32_t)((uint32_t)sums[j] + row * (uint32_t)g->b_shifts[j]);
    }
}

void integer_gemm_rows(const integer_gemm *g, const uint8_t *a, size_t a_stride, size_t rows,
                       const int32_t *a_zero, int32_t *row_start, void *out)
{
    for (size_t i = 0; g->b_shift && i < rows; i++)
        row_start[i] = (int32_t)(sum_row(a + i * a_stride, g->k, a_zero[i]) * (uint32_t)g->b_shift);
    g->kernels->gemm_u8s8(&(gemm_u8s8){.m = rows,
                                       .n = g->n,
                                       .k = g->k,
                                       .a = a,
                                       .a_stride = a_stride,
                                       .a_zero = a_zero,
                                       .b = g->packed,
                                       .start = g->start,
                                       .row_start = g->b_shift ? row_start : NULL,
                                       .output = g->scale ? GEMM_U8 : GEMM_S32,
                                       .c = out,
                                       .c_stride = g->n,
                                       .c_zero = g->y_zero,
                                       .epilogue = {.column_scale = g->scale}});
    if (g->b_shifts)
        add_shifts(g, a, a_stride, rows, a_zero, out);
    if (g->is_y_signed)
        integer_flip(out, rows * g->n);
}

#include <string.h>

#include "graph/shapes/rules.h"

#define MATMUL_TYPES                                                                               \
    (INFER_FLOATS | INFER_TYPE(DTYPE_I32) | INFER_TYPE(DTYPE_I64) | INFER_TYPE(DTYPE_U32) |        \
     INFER_TYPE(DTYPE_U64))

/* numpy.matmul: vectors gain a dim that the result loses again. */
static status set_matmul_shape(const tensor *a, const tensor *b, dtype type, tensor *out)
{
    if (a->rank < 1 || b->rank < 1)
        goto misfit;
    int64_t rows = a->rank > 1 ? a->dims[a->rank - 2] : 1, inner = a->dims[a->rank - 1],
            columns = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    if (inner != b->dims[b->rank > 1 ? b->rank - 2 : 0])
        goto misfit;
    tensor batch_a = *a, batch_b = *b;
    batch_a.rank = a->rank > 2 ? a->rank - 2 : 0;
    batch_b.rank = b->rank > 2 ? b->rank - 2 : 0;
    int64_t dims[TENSOR_RANK_MAX + 2];
    int rank;
    status s = graph_broadcast(&batch_a, &batch_b, &rank, dims);
    if (s)
        return status_prefix(s, "%s x %s", infer_text(a), infer_text(b));
    if (a->rank > 1)
        dims[rank++] = rows;
    if (b->rank > 1)
        dims[rank++] = columns;
    return infer_set(out, type, rank, dims);
misfit:
    return status_fail(STATUS_INVALID_ARGUMENT, "%s and %s do not multiply", infer_text(a),
                       infer_text(b));
}

status infer_matmul(const graph_node *node, const tensor *const *in, tensor *out)
{
    (void)node;
    status s = infer_expect_type(in[0], 0, MATMUL_TYPES);
    if (s)
        return s;
    if ((s = infer_expect_same_type(in[0], in[1])))
        return s;
    return set_matmul_shape(in[0], in[1], in[0]->dtype, out);
}

/* A scale or zero point of a matrix operand: one for all, one for each row of `a` (column of `b`),
 * or, for higher ranks, shaped like the operand with 1 in its inner dim. */
static status check_matrix_parameter(const tensor *x, bool is_left, const tensor *p, int position)
{
    if (tensor_count(p) == 1)
        return STATUS_OK;
    int kept = is_left ? x->rank - 2 : x->rank - 1; /* the dim that has its own parameters */
    bool fits = kept >= 0;
    if (fits && p->rank == 1) {
        fits = p->dims[0] == x->dims[kept];
    } else if (fits) {
        fits = p->rank == x->rank;
        for (int i = 0; fits && i < x->rank; i++)
            fits = p->dims[i] == x->dims[i] ||
                   (p->dims[i] == 1 && i == (is_left ? x->rank - 1 : x->rank - 2));
        fits = fits && p->dims[is_left ? x->rank - 1 : x->rank - 2] == 1;
    }
    if (fits)
        return STATUS_OK;
    return status_fail(STATUS_INVALID_ARGUMENT, "input %d, %s, does not fit %s", position,
                       infer_text(p), infer_text(x));
}

status infer_matmul_integer(const graph_node *node, const tensor *const *in, tensor *out)
{
    (void)node;
    status s = infer_expect_type(in[1], 1, INFER_8BIT_INTEGERS);
    if (s)
        return s;
    for (int i = 0; i < 2; i++) {
        const tensor *zero = in[2 + i];
        if (zero == NULL)
            continue;
        if ((s = infer_expect_same_type(in[i], zero)))
            return s;
        if ((s = check_matrix_parameter(in[i], i == 0, zero, 2 + i)))
            return s;
    }
    return set_matmul_shape(in[0], in[1], DTYPE_I32, out);
}

status infer_qlinear_matmul(const graph_node *node, const tensor *const *in, tensor *out)
{
    (void)node;
    const tensor *a = in[0], *b = in[3];
    status s = infer_expect_type(b, 3, INFER_8BIT_INTEGERS);
    if (s)
        return s;
    static const int scales[] = {1, 4, 6};
    for (int i = 0; i < 3; i++)
        if ((s = infer_expect_type(in[scales[i]], scales[i], INFER_FLOATS)))
            return s;
    if ((s = infer_expect_same_type(a, in[2])))
        return s;
    if ((s = infer_expect_same_type(b, in[5])))
        return s;
    if ((s = infer_expect_type(in[7], 7, INFER_8BIT_INTEGERS)))
        return s;
    for (int i = 1; i <= 2; i++) {
        if ((s = check_matrix_parameter(a, true, in[i], i)))
            return s;
        if ((s = check_matrix_parameter(b, false, in[3 + i], 3 + i)))
            return s;
    }
    if ((s = set_matmul_shape(a, b, in[7]->dtype, out)))
        return s;
    for (int i = 6; i <= 7; i++)
        if ((s = check_matrix_parameter(out, true, in[i], i)))
            return s;
    return STATUS_OK;
}

status infer_gemm(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *a = in[0], *b = in[1], *c = in[2];
    status s = infer_expect_type(a, 0, MATMUL_TYPES);
    if (s)
        return s;
    if ((s = infer_expect_same_type(a, b)))
        return s;
    bool turned_a = graph_attribute_int(node, "transA", 0) != 0,
         turned_b = graph_attribute_int(node, "transB", 0) != 0;
    if (a->rank != 2 || b->rank != 2 || a->dims[!turned_a] != b->dims[turned_b])
        return status_fail(STATUS_INVALID_ARGUMENT, "%s%s and %s%s do not multiply", infer_text(a),
                           turned_a ? "^T" : "", infer_text(b), turned_b ? "^T" : "");
    int64_t dims[2] = {a->dims[turned_a], b->dims[!turned_b]};
    if ((s = infer_set(out, a->dtype, 2, dims)))
        return s;
    if (c == NULL)
        return STATUS_OK;
    if ((s = infer_expect_same_type(a, c)))
        return s;
    if (!infer_broadcasts_to(c, out))
        return status_fail(STATUS_INVALID_ARGUMENT, "C %s does not broadcast to %s", infer_text(c),
                           infer_text(out));
    return STATUS_OK;
}

status infer_det(const graph_node *node, const tensor *const *in, tensor *out)
{
    (void)node;
    const tensor *x = in[0];
    if (x->rank < 2 || x->dims[x->rank - 1] != x->dims[x->rank - 2])
        return status_fail(STATUS_INVALID_ARGUMENT, "%s is not square", infer_text(x));
    return infer_set(out, x->dtype, x->rank - 2, x->dims);
}

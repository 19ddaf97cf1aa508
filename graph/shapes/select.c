#include <stdlib.h>
#include <string.h>

#include "graph/shapes/rules.h"

status infer_top_k(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0], *k = in[1];
    int axis;
    status s = infer_axis("axis", graph_attribute_int(node, "axis", -1), x->rank, &axis);
    if (s)
        return s;
    if ((s = infer_expect_type(k, 1, INFER_TYPE(DTYPE_I64))))
        return s;
    if (k->rank > 1 || tensor_count(k) != 1)
        return status_fail(STATUS_INVALID_ARGUMENT, "K is %s, not one number", infer_text(k));
    if (!infer_is_known(k))
        return infer_unknown(1);
    int64_t taken = tensor_get_integer(k, 0);
    if (taken < 0 || taken > x->dims[axis])
        return status_fail(STATUS_INVALID_ARGUMENT, "K %lld of axis %d of %s", (long long)taken,
                           axis, infer_text(x));
    int64_t dims[TENSOR_RANK_MAX];
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = taken;
    if ((s = infer_set(&out[0], x->dtype, x->rank, dims)))
        return s;
    return infer_set(&out[1], DTYPE_I64, x->rank, dims);
}

status infer_trees(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0];
    int64_t columns = graph_attribute_int(node, "columns", 0);
    if (x->rank != 2 || x->dims[1] < columns)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "its input is %s; it should have rank 2 and at least %lld columns",
                           infer_text(x), (long long)columns);
    bool is_wide = x->dtype == DTYPE_F64 || in[4]->dtype == DTYPE_F64;
    int64_t dims[] = {x->dims[0], graph_attribute_int(node, "targets", 1)};
    return infer_set(&out[0], is_wide ? DTYPE_F64 : DTYPE_F32, 2, dims);
}

status infer_squared_distance(const graph_node *node, const tensor *const *in, tensor *out)
{
    (void)node;
    const tensor *x = in[0], *y = in[1];
    status s = infer_expect_same_type(x, y);
    if (s)
        return s;
    if (x->rank != 2 || y->rank != 2 || x->dims[1] != y->dims[1])
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "%s and %s are not rows of equally many columns", infer_text(x),
                           infer_text(y));
    return infer_set(&out[0], x->dtype, 2, (int64_t[]){x->dims[0], y->dims[0]});
}

status infer_couple(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0];
    int64_t classes = graph_attribute_int(node, "classes", 0);
    if (classes < 2 || classes > INT32_MAX || x->rank != 2 ||
        x->dims[1] != classes * (classes - 1) / 2)
        return status_fail(STATUS_INVALID_ARGUMENT, "%s is not rows of the pairs of %lld classes",
                           infer_text(x), (long long)classes);
    return infer_set(&out[0], DTYPE_F32, 2, (int64_t[]){x->dims[0], classes});
}

status infer_non_zero(const graph_node *node, const tensor *const *in, tensor *out)
{
    (void)node;
    const tensor *x = in[0];
    if (!infer_is_known(x))
        return infer_unknown(0);
    int64_t count = tensor_count(x), found = 0;
    for (int64_t i = 0; i < count; i++)
        found += tensor_get_number(x, i) != 0;
    int64_t dims[2] = {x->rank, found};
    return infer_set(out, DTYPE_I64, 2, dims);
}

status infer_compress(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0], *condition = in[1];
    status s = infer_expect_type(condition, 1, INFER_BOOLS);
    if (s)
        return s;
    if (condition->rank != 1)
        return status_fail(STATUS_INVALID_ARGUMENT, "condition %s is no list",
                           infer_text(condition));
    if (!infer_is_known(condition))
        return infer_unknown(1);
    bool is_flat = graph_find_attribute(node, "axis") == NULL;
    int axis = 0;
    if (!is_flat && (s = infer_axis("axis", graph_attribute_int(node, "axis", 0), x->rank, &axis)))
        return s;
    int64_t length = is_flat ? tensor_count(x) : x->dims[axis], taken = 0;
    for (int64_t i = 0; i < condition->dims[0]; i++) {
        if (tensor_get_integer(condition, i) == 0)
            continue;
        if (i >= length)
            return status_fail(STATUS_INVALID_ARGUMENT, "condition %s has more elements than %s",
                               infer_text(condition), infer_text(x));
        taken++;
    }
    int64_t dims[TENSOR_RANK_MAX];
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = taken;
    return infer_set(out, x->dtype, is_flat ? 1 : x->rank, is_flat ? &taken : dims);
}

/* The slices of `x` along an axis, sorted to count the distinct ones. */
typedef struct slice_order {
    const tensor *x;
    int64_t outer, length, inner; /* x seen as [outer, length, inner] */
} slice_order;

/* NaN is the largest, and equals itself. */
static int compare_number(const tensor *x, int64_t i, int64_t j)
{
    if (dtype_is_float(x->dtype)) {
        double a = tensor_get_number(x, i), b = tensor_get_number(x, j);
        return a != a || b != b ? (a != a) - (b != b) : a < b ? -1 : a > b ? 1 : 0;
    }
    int64_t a = tensor_get_integer(x, i), b = tensor_get_integer(x, j);
    return a < b ? -1 : a > b ? 1 : 0;
}

static int compare_slices(const void *left, const void *right, void *context)
{
    const slice_order *order = context;
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    for (int64_t o = 0; o < order->outer; o++)
        for (int64_t i = 0; i < order->inner; i++) {
            int64_t base = o * order->length;
            int c = compare_number(order->x, (base + a) * order->inner + i,
                                   (base + b) * order->inner + i);
            if (c != 0)
                return c;
        }
    return 0;
}

static status count_distinct(slice_order *order, int64_t *distinct)
{
    *distinct = 0;
    if (order->length == 0)
        return STATUS_OK;
    int64_t *slices = malloc((size_t)order->length * sizeof slices[0]);
    if (slices == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to sort %lld slices",
                           (long long)order->length);
    for (int64_t i = 0; i < order->length; i++)
        slices[i] = i;
    qsort_r(slices, (size_t)order->length, sizeof slices[0], compare_slices, order);
    *distinct = 1;
    for (int64_t i = 1; i < order->length; i++)
        *distinct += compare_slices(&slices[i - 1], &slices[i], order) != 0;
    free(slices);
    return STATUS_OK;
}

status infer_unique(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0];
    bool is_flat = graph_find_attribute(node, "axis") == NULL;
    int axis = 0;
    status s = STATUS_OK;
    if (!is_flat && (s = infer_axis("axis", graph_attribute_int(node, "axis", 0), x->rank, &axis)))
        return s;
    if (!infer_is_known(x))
        return infer_unknown(0);
    slice_order order = {.x = x, .outer = 1, .length = tensor_count(x), .inner = 1};
    if (!is_flat) {
        order.length = x->dims[axis];
        for (int i = 0; i < x->rank; i++)
            *(i < axis ? &order.outer : &order.inner) *= i == axis ? 1 : x->dims[i];
    }
    int64_t distinct, dims[TENSOR_RANK_MAX];
    if ((s = count_distinct(&order, &distinct)))
        return s;
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = distinct;
    if ((s = infer_set(&out[0], x->dtype, is_flat ? 1 : x->rank, is_flat ? &distinct : dims)))
        return s;
    if ((s = infer_set(&out[1], DTYPE_I64, 1, &distinct)))
        return s;
    if ((s = infer_set(&out[2], DTYPE_I64, 1, &order.length)))
        return s;
    return infer_set(&out[3], DTYPE_I64, 1, &distinct);
}

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "graph/shapes/rules.h"

status infer_set(tensor *t, dtype type, int rank, const int64_t *dims)
{
    char text[TENSOR_SHAPE_TEXT_BYTES];
    if (rank > TENSOR_RANK_MAX)
        return status_fail(STATUS_UNSUPPORTED, "a tensor of rank %d; up to %d is supported", rank,
                           TENSOR_RANK_MAX);
    int64_t bytes = (int64_t)dtype_bytes(type);
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return status_fail(STATUS_INVALID_ARGUMENT, "shape %s has a negative dimension",
                               tensor_shape_text(text, rank, dims));
        /* A zero counts as one, so that no subset of the dims can overflow. */
        if (__builtin_mul_overflow(bytes, dims[i] ? dims[i] : 1, &bytes) ||
            bytes > INFER_TENSOR_BYTES_MAX)
            return status_fail(
                STATUS_TOO_LARGE, "a tensor of shape %s is over the ceiling of %lld GiB",
                tensor_shape_text(text, rank, dims), (long long)(INFER_TENSOR_BYTES_MAX >> 30));
    }
    t->dtype = type;
    t->rank = rank;
    if (rank > 0)
        memmove(t->dims, dims, (size_t)rank * sizeof dims[0]);
    return STATUS_OK;
}

status infer_set_like(tensor *t, dtype type, const tensor *like)
{
    return infer_set(t, type, like->rank, like->dims);
}

const char *infer_text(const tensor *t)
{
    static _Thread_local char ring[4][TENSOR_SHAPE_TEXT_BYTES + 8];
    static _Thread_local unsigned next;
    char shape[TENSOR_SHAPE_TEXT_BYTES];
    char *text = ring[next++ & 3];
    snprintf(text, sizeof ring[0], "%s%s", dtype_name(t->dtype),
             tensor_shape_text(shape, t->rank, t->dims));
    return text;
}

bool infer_is_known(const tensor *t)
{
    return t->data != NULL || tensor_count(t) == 0;
}

status infer_axis(const char *what, int64_t axis, int rank, int *out)
{
    if (axis < -rank || axis >= rank)
        return status_fail(STATUS_INVALID_ARGUMENT, "%s %lld is out of range for rank %d", what,
                           (long long)axis, rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return STATUS_OK;
}

const int64_t *infer_ints(const graph_node *node, const char *name, size_t *count)
{
    const graph_attribute *a = graph_find_attribute(node, name);
    if (a == NULL || a->kind != GRAPH_ATTRIBUTE_INTS || a->count == 0) {
        *count = 0;
        return NULL;
    }
    *count = a->count;
    return a->ints;
}

status infer_unknown(int position)
{
    return status_fail(STATUS_UNSUPPORTED,
                       "the output shape depends on the value of input %d, which is unknown",
                       position);
}

status infer_known_ints(const tensor *const *in, int position, int max, int64_t *values, int *count)
{
    const tensor *t = in[position];
    assert(t != NULL);
    if (!dtype_is_integer(t->dtype) || t->rank > 1)
        return status_fail(STATUS_INVALID_ARGUMENT, "input %d is %s, not a list of integers",
                           position, infer_text(t));
    if (!infer_is_known(t))
        return infer_unknown(position);
    int64_t n = tensor_count(t);
    if (n > max)
        return status_fail(STATUS_INVALID_ARGUMENT, "input %d has %lld values; at most %d fit",
                           position, (long long)n, max);
    for (int64_t i = 0; i < n; i++)
        values[i] = tensor_get_integer(t, i);
    *count = (int)n;
    return STATUS_OK;
}

status infer_expect_type(const tensor *t, int position, uint32_t types)
{
    if (types & INFER_TYPE(t->dtype))
        return STATUS_OK;
    return status_fail(STATUS_INVALID_ARGUMENT, "input %d may not be %s", position, infer_text(t));
}

status infer_expect_same_type(const tensor *a, const tensor *b)
{
    if (a->dtype == b->dtype)
        return STATUS_OK;
    return status_fail(STATUS_INVALID_ARGUMENT, "%s and %s differ in type", infer_text(a),
                       infer_text(b));
}

status infer_expect_vector(const tensor *t, int position, int64_t n)
{
    if (t->rank == 1 && t->dims[0] == n)
        return STATUS_OK;
    return status_fail(STATUS_INVALID_ARGUMENT, "input %d is %s; [%lld] is expected", position,
                       infer_text(t), (long long)n);
}

status infer_expect_choice(const graph_node *node, const char *name, const char *const *choices)
{
    const char *value = graph_attribute_string(node, name, NULL);
    if (value == NULL)
        return STATUS_OK;
    for (; *choices != NULL; choices++)
        if (strcmp(value, *choices) == 0)
            return STATUS_OK;
    return status_fail(STATUS_INVALID_ARGUMENT, "attribute %s has the unknown value \"%.40s\"",
                       name, value);
}

bool infer_broadcasts_to(const tensor *from, const tensor *to)
{
    if (from->rank > to->rank)
        return false;
    for (int i = 0; i < from->rank; i++) {
        int64_t d = from->dims[from->rank - 1 - i];
        if (d != 1 && d != to->dims[to->rank - 1 - i])
            return false;
    }
    return true;
}

status graph_broadcast(const tensor *a, const tensor *b, int *rank, int64_t dims[TENSOR_RANK_MAX])
{
    int r = a->rank > b->rank ? a->rank : b->rank;
    int64_t made[TENSOR_RANK_MAX];
    for (int i = 1; i <= r; i++) {
        int64_t x = i <= a->rank ? a->dims[a->rank - i] : 1;
        int64_t y = i <= b->rank ? b->dims[b->rank - i] : 1;
        if (x != y && x != 1 && y != 1)
            return status_fail(STATUS_INVALID_ARGUMENT, "%s and %s do not broadcast", infer_text(a),
                               infer_text(b));
        made[r - i] = x == 1 ? y : x;
    }
    *rank = r;
    if (r > 0)
        memcpy(dims, made, (size_t)r * sizeof made[0]);
    return STATUS_OK;
}

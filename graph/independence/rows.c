#include "graph/independence/rows.h"

#include <assert.h>
#include <string.h>

const char rows_reason_count[] = "computes with the number of rows, or with their positions";
const char rows_reason_pairs[] = "combines rows with other rows";
const char rows_reason_shape[] = "changes the layout of the rows in a way that is not followed";
const char rows_reason_constant[] = "treats rows by their position, with a constant";
const char rows_reason_parameter[] = "takes a parameter from the rows";

row_relation rows_same(void)
{
    return (row_relation){.kind = ROWS_SAME};
}

row_relation rows_mixed(const char *reason)
{
    return (row_relation){.kind = ROWS_MIXED, .reason = reason};
}

row_relation rows_undecided(const char *reason)
{
    return (row_relation){.kind = ROWS_UNDECIDED, .reason = reason};
}

const row_value *rows_input(const row_call *c, int i)
{
    return i < c->node->input_count ? c->in[i] : NULL;
}

bool rows_is_same(const row_value *v)
{
    return v == NULL || v->relation.kind == ROWS_SAME;
}

bool rows_others_same(const row_call *c, uint32_t except)
{
    for (int i = 0; i < c->node->input_count; i++)
        if ((i >= 32 || !(except >> i & 1)) && !rows_is_same(c->in[i]))
            return false;
    return true;
}

int64_t rows_product(const int64_t *dims, int from, int to)
{
    int64_t product = 1;
    for (int i = from; i < to; i++)
        product *= dims[i];
    return product;
}

/* The one axis on which `many` is b times as long as `one`; -1: they differ otherwise. */
static int longer_axis(const row_value *v, int64_t rows)
{
    int found = -1;
    if (v->one.rank != v->many.rank)
        return -1;
    for (int i = 0; i < v->one.rank; i++) {
        if (v->one.dims[i] == v->many.dims[i])
            continue;
        if (found >= 0 || v->many.dims[i] != rows * v->one.dims[i])
            return -1;
        found = i;
    }
    return found;
}

/* The data of both runs is known: is it split into `outer` blocks? */
static bool is_repeated(const row_value *v, int64_t rows, int64_t outer)
{
    if (v->one.data == NULL || v->many.data == NULL || v->one.dtype == DTYPE_BYTES)
        return false;
    size_t block = tensor_bytes(&v->one) / (size_t)outer;
    const char *one = v->one.data, *many = v->many.data;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < rows; i++)
            if (memcmp(many + (size_t)(o * rows + i) * block, one + (size_t)o * block, block) != 0)
                return false;
    return true;
}

bool rows_find(const row_call *c, const row_value *v, row_axis *found)
{
    int axis = longer_axis(v, c->rows);
    if (axis < 0 || (v->relation.kind != ROWS_SPLIT && v->relation.kind != ROWS_COUNTED))
        return false;
    int64_t before = rows_product(v->one.dims, 0, axis), length = v->one.dims[axis];
    if (before == 0 || length == 0)
        return false;
    if (v->relation.kind == ROWS_SPLIT) {
        int64_t outer = v->relation.outer / before;
        if (v->relation.outer % before != 0 || outer == 0 || length % outer != 0)
            return false;
        *found = (row_axis){axis, outer};
        return true;
    }
    for (int64_t outer = 1; outer <= length && outer <= 64; outer++) {
        if (length % outer != 0 || !is_repeated(v, c->rows, before * outer))
            continue;
        *found = (row_axis){axis, outer};
        return true;
    }
    return false;
}

bool rows_find_numbers(const row_call *c, const row_value *v, row_axis *found)
{
    row_value split = *v;
    split.relation.kind = ROWS_SPLIT;
    return (v->relation.kind == ROWS_INDEXED || v->relation.kind == ROWS_NUMBERED) &&
           rows_find(c, &split, found);
}

bool rows_lie(const row_call *c, const row_value *v, row_axis where)
{
    if (where.axis < 0 || where.axis >= v->one.rank)
        return false;
    if (v->relation.kind == ROWS_COUNTED) {
        int64_t length = v->one.dims[where.axis];
        return longer_axis(v, c->rows) == where.axis && length % where.outer == 0 &&
               is_repeated(v, c->rows, rows_product(v->one.dims, 0, where.axis) * where.outer);
    }
    row_axis found;
    return v->relation.kind == ROWS_SPLIT && rows_find(c, v, &found) && found.axis == where.axis &&
           found.outer == where.outer;
}

bool rows_number(const row_call *c, const row_value *v, row_axis where)
{
    row_axis at;
    if (v->relation.kind == ROWS_NUMBERED)
        return rows_find_numbers(c, v, &at) && at.axis == where.axis && at.outer == where.outer;
    if (v->one.data == NULL || v->many.data == NULL || !dtype_is_integer(v->one.dtype) ||
        where.axis < 0 || where.axis >= v->one.rank || longer_axis(v, c->rows) != where.axis ||
        v->one.dims[where.axis] % where.outer != 0)
        return false;
    int64_t count = tensor_count(&v->one), rows = c->rows;
    int64_t inner = count / (rows_product(v->one.dims, 0, where.axis) * where.outer);
    for (int64_t k = 0; k < count; k++)
        for (int64_t i = 0; i < rows; i++)
            if (tensor_get_integer(&v->many, (k / inner * rows + i) * inner + k % inner) !=
                tensor_get_integer(&v->one, k) + i)
                return false;
    return true;
}

row_relation rows_split(const row_call *c, const row_value *out, row_axis where)
{
    assert(where.outer > 0);
    if (where.axis < 0 || where.axis >= out->one.rank || longer_axis(out, c->rows) != where.axis ||
        out->one.dims[where.axis] % where.outer != 0)
        return rows_undecided(rows_reason_shape);
    return (row_relation){.kind = ROWS_SPLIT,
                          .outer = rows_product(out->one.dims, 0, where.axis) * where.outer};
}

row_relation rows_view(const row_call *c, const row_value *v, const row_value *out)
{
    if (v->relation.kind == ROWS_INDEXED)
        return rows_undecided(rows_reason_shape);
    if (v->relation.kind != ROWS_COUNTED)
        return v->relation;
    row_axis at;
    if (!rows_find(c, v, &at))
        return rows_mixed(rows_reason_count);
    (void)out;
    return (row_relation){.kind = ROWS_SPLIT,
                          .outer = rows_product(v->one.dims, 0, at.axis) * at.outer};
}

row_relation rows_follow(const row_call *c, const row_value *v, const int *to, const row_value *out,
                         const char *reason)
{
    if (rows_is_same(v))
        return tensor_same_shape(&out->one, &out->many) ? rows_same()
                                                        : rows_undecided(rows_reason_shape);
    row_axis at;
    if (!rows_find(c, v, &at))
        return v->relation.kind == ROWS_COUNTED ? rows_mixed(rows_reason_count)
                                                : rows_undecided(rows_reason_shape);
    if (to[at.axis] < 0)
        return rows_mixed(reason);
    if (to[at.axis] < out->one.rank && out->one.dims[to[at.axis]] != v->one.dims[at.axis])
        return rows_undecided(rows_reason_shape);
    return rows_split(c, out, (row_axis){to[at.axis], at.outer});
}

row_relation rows_keep(const row_call *c, const row_value *v, uint32_t forbidden,
                       const row_value *out, const char *reason)
{
    int to[TENSOR_RANK_MAX];
    for (int i = 0; i < TENSOR_RANK_MAX; i++)
        to[i] = forbidden >> i & 1 ? -1 : i;
    return rows_follow(c, v, to, out, reason);
}

/* Layouts that no axis describes: fine where every input has all elements of the result, in the
 * same places, or one element for all. */
static bool is_elementwise(const row_call *c, const int *positions, int count, const row_value *out,
                           int64_t *outer)
{
    *outer = 0;
    for (int i = 0; i < count; i++) {
        const row_value *v = rows_input(c, positions[i]);
        if (v == NULL)
            continue;
        bool is_one = tensor_count(&v->one) == 1 && tensor_count(&v->many) == 1;
        if (rows_is_same(v) && is_one)
            continue;
        if (v->relation.kind != ROWS_SPLIT || !tensor_same_shape(&v->one, &out->one) ||
            !tensor_same_shape(&v->many, &out->many) ||
            (*outer != 0 && *outer != v->relation.outer))
            return false;
        *outer = v->relation.outer;
    }
    return *outer != 0;
}

/* Where the rows of the result lie: by a split input, else by one whose data says so. */
static bool find_broadcast(const row_call *c, const int *positions, int count, const row_value *out,
                           row_axis *found)
{
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < count; i++) {
            const row_value *v = rows_input(c, positions[i]);
            if (v == NULL || v->relation.kind != (pass == 0 ? ROWS_SPLIT : ROWS_COUNTED) ||
                !rows_find(c, v, found))
                continue;
            found->axis += out->one.rank - v->one.rank;
            return true;
        }
    }
    return false;
}

row_relation rows_broadcast(const row_call *c, const int *positions, int count,
                            const row_value *out)
{
    row_axis at;
    int64_t outer;
    if (is_elementwise(c, positions, count, out, &outer))
        return (row_relation){.kind = ROWS_SPLIT, .outer = outer};
    if (!find_broadcast(c, positions, count, out, &at)) {
        bool is_all_same = true;
        for (int i = 0; i < count; i++) {
            const row_value *v = rows_input(c, positions[i]);
            is_all_same &= rows_is_same(v);
            if (v != NULL && v->relation.kind == ROWS_SPLIT)
                return rows_undecided(rows_reason_shape);
        }
        return is_all_same ? rows_same() : rows_mixed(rows_reason_count);
    }
    for (int i = 0; i < count; i++) {
        const row_value *v = rows_input(c, positions[i]);
        if (v == NULL)
            continue;
        row_axis own = {at.axis - (out->one.rank - v->one.rank), at.outer};
        if (rows_is_same(v) && own.axis >= 0 && v->one.dims[own.axis] != 1)
            return rows_mixed(rows_reason_constant);
        if (!rows_is_same(v) && !rows_lie(c, v, own))
            return rows_mixed(v->relation.kind == ROWS_COUNTED ? rows_reason_count
                                                               : rows_reason_pairs);
        if (!rows_is_same(v) && v->one.dims[own.axis] != out->one.dims[at.axis])
            return rows_mixed(rows_reason_pairs);
    }
    return rows_split(c, out, at);
}

int rows_axis_attribute(const graph_node *node, const char *name, int64_t otherwise, int rank)
{
    int64_t axis = graph_attribute_int(node, name, otherwise);
    return (int)(axis < 0 ? axis + rank : axis);
}

int rows_integers(const tensor *t, int at_most, int64_t *values)
{
    int64_t count = tensor_count(t);
    if ((t->data == NULL && count > 0) || count > at_most || !dtype_is_integer(t->dtype))
        return -1;
    for (int64_t i = 0; i < count; i++)
        values[i] = tensor_get_integer(t, i);
    return (int)count;
}

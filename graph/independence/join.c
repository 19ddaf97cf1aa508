#include "graph/independence/rules.h"

/* Rows side by side on another axis: in place. On the axis of the rows, inputs are further blocks,
 * if what follows a row in a block is as long in all of them. */
static row_relation concat_on_rows(const row_call *c, int output, row_axis at)
{
    int64_t inner = 0, outer = 0;
    for (int i = 0; i < c->node->input_count; i++) {
        row_axis own;
        if (rows_is_same(c->in[i]))
            return rows_undecided("joins the rows with a constant");
        if (!rows_find(c, c->in[i], &own) || own.axis != at.axis)
            return rows_undecided(rows_reason_shape);
        int64_t length = c->in[i]->one.dims[own.axis] / own.outer;
        if (inner != 0 && length != inner)
            return rows_undecided(rows_reason_shape);
        inner = length;
        outer += own.outer;
    }
    return rows_split(c, &c->out[output], (row_axis){at.axis, outer});
}

/* Tuples of which one column numbers the rows and the others are the rows' own: x[row, index]. */
static row_relation concat_indices(const row_call *c, const row_value *out, row_axis at)
{
    int64_t column = 0;
    row_relation found = {.kind = ROWS_UNDECIDED, .reason = rows_reason_constant};
    for (int i = 0; i < c->node->input_count; i++) {
        const row_value *v = c->in[i];
        int64_t width = v->one.dims[v->one.rank - 1];
        if (!rows_lie(c, v, at)) {
            if (found.kind != ROWS_UNDECIDED || width != 1 || !rows_number(c, v, at))
                return rows_mixed(v->relation.kind == ROWS_SPLIT ? rows_reason_pairs
                                                                 : rows_reason_constant);
            found = rows_split(c, out, at);
            found.column = column;
        }
        column += width;
    }
    if (found.kind == ROWS_SPLIT)
        found.kind = ROWS_INDEXED;
    return found;
}

row_relation independence_concat(const row_call *c, int output)
{
    const row_value *out = &c->out[output];
    int axis = rows_axis_attribute(c->node, "axis", 0, out->one.rank);
    row_axis at;
    bool is_found = false;
    for (int pass = 0; pass < 2 && !is_found; pass++)
        for (int i = 0; i < c->node->input_count && !is_found; i++)
            is_found = c->in[i]->relation.kind == (pass == 0 ? ROWS_SPLIT : ROWS_COUNTED) &&
                       rows_find(c, c->in[i], &at);
    if (!is_found)
        return rows_undecided(rows_reason_shape);
    if (at.axis == axis)
        return concat_on_rows(c, output, at);
    for (int i = 0; i < c->node->input_count; i++)
        if (!rows_lie(c, c->in[i], at))
            return axis == out->one.rank - 1               ? concat_indices(c, out, at)
                   : c->in[i]->relation.kind == ROWS_SPLIT ? rows_mixed(rows_reason_pairs)
                                                           : rows_mixed(rows_reason_constant);
    return rows_split(c, out, at);
}

/* A part of axis `axis`: in both runs from `start` on, in steps of `step`, as long as `out`. */
typedef struct part {
    int64_t start, step;
} part;

static row_relation take_part(const row_call *c, int output, int axis, part one, part many)
{
    const row_value *x = c->in[0], *out = &c->out[output];
    row_axis at;
    if (rows_is_same(x)) /* but where it is cut depends on the number of rows */
        return one.start == many.start && one.step == many.step
                   ? rows_keep(c, x, 0, out, rows_reason_shape)
                   : rows_mixed(rows_reason_count);
    if (!rows_find(c, x, &at))
        return rows_undecided(rows_reason_shape);
    if (at.axis != axis) {
        if (one.start != many.start || one.step != many.step)
            return rows_mixed(rows_reason_count);
        return rows_split(c, out, at);
    }
    /* Whole blocks of all rows. */
    int64_t inner = x->one.dims[axis] / at.outer, length = out->one.dims[axis];
    if (one.step != 1 || many.step != 1 || one.start % inner != 0 || length % inner != 0 ||
        many.start != one.start * c->rows || out->many.dims[axis] != length * c->rows)
        return rows_mixed("takes some of the rows by their position");
    return rows_split(c, out, (row_axis){axis, length / inner});
}

row_relation independence_split(const row_call *c, int output)
{
    int axis = rows_axis_attribute(c->node, "axis", 0, c->in[0]->one.rank);
    part one = {0, 1}, many = {0, 1};
    for (int i = 0; i < output; i++) {
        if (c->node->outputs[i] == GRAPH_NO_VALUE)
            return rows_undecided(rows_reason_shape); /* its size is not known */
        one.start += c->out[i].one.dims[axis];
        many.start += c->out[i].many.dims[axis];
    }
    return take_part(c, output, axis, one, many);
}

/* Slice along one axis of length `dim`. */
static part read_part(int64_t dim, int64_t start, int64_t step)
{
    if (start < 0)
        start = start < -dim ? 0 : start + dim;
    int64_t high = step > 0 ? dim : dim - 1;
    return (part){start > high ? high : start, step};
}

typedef struct slice_lists {
    int64_t starts[TENSOR_RANK_MAX], axes[TENSOR_RANK_MAX], steps[TENSOR_RANK_MAX];
    int count;
} slice_lists;

static bool read_lists(const row_call *c, bool is_many, slice_lists *lists)
{
    const tensor *given[5] = {NULL};
    for (int i = 1; i < 5; i++) {
        const row_value *v = rows_input(c, i);
        given[i] = v == NULL ? NULL : is_many ? &v->many : &v->one;
    }
    for (int i = 0; i < TENSOR_RANK_MAX; i++) {
        lists->axes[i] = i;
        lists->steps[i] = 1;
    }
    lists->count = rows_integers(given[1], TENSOR_RANK_MAX, lists->starts);
    return lists->count >= 0 &&
           (given[3] == NULL ||
            rows_integers(given[3], TENSOR_RANK_MAX, lists->axes) == lists->count) &&
           (given[4] == NULL ||
            rows_integers(given[4], TENSOR_RANK_MAX, lists->steps) == lists->count);
}

row_relation independence_slice(const row_call *c, int output)
{
    slice_lists one, many;
    const row_value *x = c->in[0], *out = &c->out[output];
    row_axis at = {-1, 1};
    if (!read_lists(c, false, &one) || !read_lists(c, true, &many) || one.count != many.count)
        return rows_undecided(rows_reason_shape);
    if (!rows_is_same(x) && !rows_find(c, x, &at))
        return rows_undecided(rows_reason_shape);
    row_relation found = rows_is_same(x) ? rows_keep(c, x, 0, out, rows_reason_shape)
                                         : (row_relation){.kind = ROWS_UNDECIDED};
    bool is_cut = false;
    for (int i = 0; i < one.count; i++) {
        int axis = (int)(one.axes[i] < 0 ? one.axes[i] + x->one.rank : one.axes[i]);
        if (one.axes[i] != many.axes[i])
            return rows_mixed(rows_reason_count);
        part in_one = read_part(x->one.dims[axis], one.starts[i], one.steps[i]);
        part in_many = read_part(x->many.dims[axis], many.starts[i], many.steps[i]);
        bool is_on_rows = axis == at.axis;
        if (!is_on_rows && (in_one.start != in_many.start || in_one.step != in_many.step))
            return rows_mixed(rows_reason_count);
        if (is_on_rows) {
            found = take_part(c, output, axis, in_one, in_many);
            is_cut = true;
        }
    }
    return is_cut || rows_is_same(x) ? found : rows_split(c, out, at);
}

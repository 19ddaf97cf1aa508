#include "graph/independence/rules.h"

/* Indices that are known in both runs, or number the rows, into the rows of `data`: `depth`
 * coordinates at a time, the first for axis `first`. Whether the coordinates of row i are those of
 * a single run, moved to row i; `*found`: where the rows of the indices lie. */
typedef struct known_indices {
    const row_call *c;
    const row_value *indices, *data;
    row_axis at; /* of data's rows */
    int first;
    int64_t depth;
} known_indices;

/* The index of row `row` that does what `index` does in a single run. */
static int64_t move_index(const known_indices *k, int64_t index, int64_t row)
{
    int64_t inner = k->data->one.dims[k->at.axis] / k->at.outer;
    if (index < 0)
        index += k->data->one.dims[k->at.axis];
    return (index / inner * k->c->rows + row) * inner + index % inner;
}

/* `outer`: blocks of tuples, each of them once for every row. */
static bool follows(const known_indices *k, int64_t outer)
{
    int64_t tuples = tensor_count(&k->indices->one) / k->depth, inner = tuples / outer;
    int64_t rows = k->c->rows, length = k->data->many.dims[k->at.axis];
    for (int64_t t = 0; t < tuples; t++) {
        for (int64_t i = 0; i < rows; i++) {
            int64_t moved = (t / inner * rows + i) * inner + t % inner;
            for (int64_t d = 0; d < k->depth; d++) {
                int64_t one = tensor_get_integer(&k->indices->one, t * k->depth + d);
                int64_t many = tensor_get_integer(&k->indices->many, moved * k->depth + d);
                bool is_row = k->first + d == k->at.axis;
                if (is_row ? (many < 0 ? many + length : many) != move_index(k, one, i)
                           : many != one)
                    return false;
            }
        }
    }
    return true;
}

static bool find_tuples(const known_indices *k, row_axis *found)
{
    if (k->indices->relation.kind == ROWS_INDEXED)
        return k->first + k->indices->relation.column == k->at.axis &&
               k->data->one.dims[k->at.axis] == 1 && rows_find_numbers(k->c, k->indices, found);
    const tensor *one = &k->indices->one, *many = &k->indices->many;
    if (one->data == NULL || many->data == NULL || one->rank != many->rank)
        return false;
    int axis = 0;
    while (axis < one->rank && one->dims[axis] == many->dims[axis])
        axis++;
    if (axis == one->rank || many->dims[axis] != k->c->rows * one->dims[axis] ||
        tensor_count(many) != k->c->rows * tensor_count(one))
        return false;
    int64_t length = one->dims[axis], before = rows_product(one->dims, 0, axis);
    for (int64_t outer = 1; outer <= length && outer <= 64; outer++) {
        if (length % outer != 0 || !follows(k, before * outer))
            continue;
        *found = (row_axis){axis, outer};
        return true;
    }
    return false;
}

row_relation independence_gather(const row_call *c, int output)
{
    const row_value *x = c->in[0], *indices = c->in[1], *out = &c->out[output];
    int axis = rows_axis_attribute(c->node, "axis", 0, x->one.rank), to[TENSOR_RANK_MAX];
    if (rows_is_same(x)) {
        /* A table, by indices of the rows. */
        for (int i = 0; i < TENSOR_RANK_MAX; i++)
            to[i] = axis + i;
        return rows_follow(c, indices, to, out, rows_reason_shape);
    }
    if (rows_is_same(indices)) {
        for (int i = 0; i < TENSOR_RANK_MAX; i++)
            to[i] = i == axis ? -1 : i < axis ? i : i - 1 + indices->one.rank;
        return rows_follow(c, x, to, out, "takes some of the rows by their position");
    }
    row_axis at, tuples;
    if (indices->relation.kind == ROWS_COUNTED && rows_find(c, x, &at) && at.axis == axis &&
        find_tuples(&(known_indices){c, indices, x, at, axis, 1}, &tuples))
        return rows_split(c, out, (row_axis){axis + tuples.axis, tuples.outer});
    return rows_mixed("takes elements of rows by indices of other rows");
}

/* All of data, indices and updates have their rows in one place, off the indexed axis. */
static row_relation same_place(const row_call *c, int axis, const row_value *out)
{
    row_axis at;
    const row_value *x = c->in[0];
    if (rows_is_same(x)) {
        /* Row i of the indices reads a table. */
        if (rows_is_same(c->in[1]) || !rows_find(c, c->in[1], &at) || at.axis != axis)
            return rows_mixed(rows_reason_constant);
        return rows_split(c, out, at);
    }
    if (!rows_find(c, x, &at))
        return rows_undecided(rows_reason_shape);
    if (at.axis == axis)
        return rows_mixed("takes elements of rows by indices of other rows");
    for (int i = 1; i < c->node->input_count; i++)
        if (!rows_lie(c, c->in[i], at) || c->in[i]->one.dims[at.axis] != x->one.dims[at.axis])
            return rows_mixed(rows_reason_pairs);
    return rows_split(c, out, at);
}

row_relation independence_gather_elements(const row_call *c, int output)
{
    return same_place(c, rows_axis_attribute(c->node, "axis", 0, c->in[0]->one.rank),
                      &c->out[output]);
}

row_relation independence_scatter_elements(const row_call *c, int output)
{
    if (rows_is_same(c->in[0]))
        return rows_mixed(rows_reason_pairs);
    return same_place(c, rows_axis_attribute(c->node, "axis", 0, c->in[0]->one.rank),
                      &c->out[output]);
}

row_relation independence_gather_nd(const row_call *c, int output)
{
    const row_value *x = c->in[0], *indices = c->in[1], *out = &c->out[output];
    int batch_dims = (int)graph_attribute_int(c->node, "batch_dims", 0);
    int last = indices->one.rank - 1, to[TENSOR_RANK_MAX];
    int depth = (int)indices->one.dims[last];
    row_axis at, tuples;
    if (rows_is_same(x)) {
        for (int i = 0; i < TENSOR_RANK_MAX; i++)
            to[i] = i < batch_dims || i >= last ? -1 : i;
        return rows_follow(c, indices, to, out, rows_reason_constant);
    }
    if (!rows_find(c, x, &at))
        return rows_undecided(rows_reason_shape);
    if (at.axis < batch_dims)
        return rows_lie(c, indices, at) ? rows_split(c, out, at) : rows_mixed(rows_reason_pairs);
    if (at.axis >= batch_dims + depth) {
        if (!rows_is_same(indices))
            return rows_mixed(rows_reason_pairs);
        return rows_split(c, out, (row_axis){at.axis - batch_dims - depth + last, at.outer});
    }
    if (find_tuples(&(known_indices){c, indices, x, at, batch_dims, depth}, &tuples))
        return rows_split(c, out, tuples);
    return rows_mixed("takes elements of rows by indices of other rows");
}

row_relation independence_scatter_nd(const row_call *c, int output)
{
    const row_value *x = c->in[0], *indices = c->in[1], *updates = c->in[2];
    int last = indices->one.rank - 1, depth = (int)indices->one.dims[last];
    row_axis at, tuples;
    if (rows_is_same(x))
        return rows_mixed(rows_reason_pairs);
    if (!rows_find(c, x, &at))
        return rows_undecided(rows_reason_shape);
    if (at.axis >= depth) {
        if (!rows_is_same(indices) ||
            !rows_lie(c, updates, (row_axis){at.axis - depth + last, at.outer}))
            return rows_mixed(rows_reason_pairs);
        return rows_split(c, &c->out[output], at);
    }
    if (!find_tuples(&(known_indices){c, indices, x, at, 0, depth}, &tuples) ||
        !rows_lie(c, updates, tuples))
        return rows_mixed("writes elements of rows by indices of other rows");
    return rows_split(c, &c->out[output], at);
}

/* Compress, NonZero, Unique: how much is kept depends on the content. */
row_relation independence_by_content(const row_call *c, int output)
{
    const row_value *x = c->in[0];
    if (c->node->op != GRAPH_OP_COMPRESS || !rows_is_same(c->in[1]) ||
        graph_find_attribute(c->node, "axis") == NULL)
        return rows_mixed("selects by the content of all rows");
    int axis = rows_axis_attribute(c->node, "axis", 0, x->one.rank);
    return rows_keep(c, x, 1u << axis, &c->out[output], "takes some of the rows by their position");
}

/* RoiAlign: each region is read from the row that its index names: its own. */
row_relation independence_roi_align(const row_call *c, int output)
{
    static const char reason[] = "reads regions of rows by indices of other rows";
    const row_value *x = c->in[0], *regions = c->in[1], *indices = c->in[2];
    row_axis at, own;
    if (rows_is_same(x))
        return rows_undecided("reads regions of a constant by values of the rows");
    if (!rows_find(c, x, &at) || at.axis != 0 || x->one.dims[0] != 1)
        return rows_undecided(rows_reason_shape);
    bool is_numbered = indices->relation.kind == ROWS_NUMBERED;
    bool is_own = is_numbered ? rows_find_numbers(c, indices, &own)
                              : find_tuples(&(known_indices){c, indices, x, at, 0, 1}, &own);
    if (!is_own || own.axis != 0 || !rows_lie(c, regions, own))
        return indices->relation.kind == ROWS_SPLIT ? rows_undecided(reason) : rows_mixed(reason);
    return rows_split(c, &c->out[output], own);
}

/* DeformConv: offsets and masks of the same rows, the same weights for all. */
row_relation independence_deform_conv(const row_call *c, int output)
{
    const row_value *x = c->in[0];
    row_axis at;
    if (rows_is_same(x) || !rows_others_same(c, 1u << 0 | 1u << 2 | 1u << 4))
        return rows_mixed(rows_reason_parameter);
    if (!rows_find(c, x, &at) || at.axis != 0)
        return rows_mixed("moves a window over the rows");
    for (int i = 2; i <= 4; i += 2)
        if (rows_input(c, i) != NULL && !rows_lie(c, c->in[i], at))
            return rows_mixed(rows_reason_pairs);
    return rows_split(c, &c->out[output], at);
}

#include <string.h>

#include "graph/independence/rules.h"

row_relation independence_view(const row_call *c, int output)
{
    return rows_view(c, c->in[0], &c->out[output]);
}

row_relation independence_transpose(const row_call *c, int output)
{
    const row_value *x = c->in[0];
    const graph_attribute *perm = graph_find_attribute(c->node, "perm");
    int to[TENSOR_RANK_MAX] = {0};
    for (int i = 0; i < x->one.rank; i++)
        to[perm != NULL ? perm->ints[i] : x->one.rank - 1 - i] = i;
    return rows_follow(c, x, to, &c->out[output], rows_reason_shape);
}

/* A result that repeats its input, or one number, along the rows. */
static row_relation repeat_same(const row_call *c, const row_value *out, int rank)
{
    if (tensor_same_shape(&out->one, &out->many))
        return rows_same();
    /* The rows must be where the input has no elements of its own: what it repeats there is then
     * the same for all. */
    for (int i = 0; i < out->one.rank; i++) {
        if (out->one.dims[i] == out->many.dims[i])
            continue;
        int own = i - (out->one.rank - rank);
        if (own >= 0 && c->in[0]->one.dims[own] != 1)
            return rows_mixed(rows_reason_constant);
        return rows_split(c, out, (row_axis){i, 1});
    }
    return rows_undecided(rows_reason_shape);
}

/* Numbers of rows stay such, known or not. */
static row_relation expand_numbers(const row_call *c, const row_value *x, const int *to,
                                   const row_value *out)
{
    row_value split = *x;
    row_axis at = {0, 1};
    while (at.axis + 1 < x->one.rank && x->one.dims[at.axis] == x->many.dims[at.axis])
        at.axis++;
    bool is_numbered = x->relation.kind == ROWS_NUMBERED ||
                       (x->relation.kind == ROWS_COUNTED && rows_number(c, x, at));
    if (!is_numbered)
        return rows_follow(c, x, to, out, rows_reason_shape);
    if (x->relation.kind == ROWS_COUNTED)
        split.relation.outer = rows_product(x->one.dims, 0, at.axis);
    split.relation.kind = ROWS_SPLIT;
    row_relation found = rows_follow(c, &split, to, out, rows_reason_shape);
    if (found.kind == ROWS_SPLIT)
        found.kind = ROWS_NUMBERED;
    return found;
}

row_relation independence_expand(const row_call *c, int output)
{
    const row_value *x = c->in[0], *out = &c->out[output];
    if (rows_is_same(x))
        return repeat_same(c, out, x->one.rank);
    int to[TENSOR_RANK_MAX];
    for (int i = 0; i < TENSOR_RANK_MAX; i++)
        to[i] = i + out->one.rank - x->one.rank;
    return expand_numbers(c, x, to, out);
}

/* Copies along an axis come one after the other: they are blocks before the rows. */
row_relation independence_tile(const row_call *c, int output)
{
    const row_value *x = c->in[0], *out = &c->out[output];
    row_axis at;
    if (rows_is_same(x)) {
        for (int i = 0; i < out->one.rank; i++)
            if (out->one.dims[i] != out->many.dims[i])
                return rows_split(c, out, (row_axis){i, 1});
        return rows_same();
    }
    if (!rows_find(c, x, &at))
        return rows_undecided(rows_reason_shape);
    int64_t copies = out->one.dims[at.axis] / x->one.dims[at.axis];
    if (copies != out->many.dims[at.axis] / x->many.dims[at.axis])
        return rows_mixed(rows_reason_count);
    return rows_split(c, out, (row_axis){at.axis, at.outer * copies});
}

/* ConstantOfShape, and EyeLike, Range and windows, whose elements differ: those only of one size.
 */
row_relation independence_generate(const row_call *c, int output)
{
    const row_value *out = &c->out[output];
    if (c->node->op != GRAPH_OP_RANGE && tensor_same_shape(&out->one, &out->many))
        return rows_same();
    return c->node->op == GRAPH_OP_CONSTANT_OF_SHAPE ? repeat_same(c, out, 0)
                                                     : rows_mixed(rows_reason_count);
}

/* Pads of axis `axis` in one of the runs. */
static bool find_pads(const row_call *c, bool is_many, int axis, int64_t pads[2])
{
    const row_value *given = c->in[1], *listed = rows_input(c, 3), *x = c->in[0];
    int64_t all[2 * TENSOR_RANK_MAX], axes[TENSOR_RANK_MAX];
    int count = rows_integers(is_many ? &given->many : &given->one, 2 * TENSOR_RANK_MAX, all) / 2;
    for (int i = 0; i < TENSOR_RANK_MAX; i++)
        axes[i] = i;
    if (listed != NULL && rows_integers(&listed->one, TENSOR_RANK_MAX, axes) != count)
        return false;
    pads[0] = pads[1] = 0;
    for (int i = 0; i < count; i++) {
        if ((axes[i] < 0 ? axes[i] + x->one.rank : axes[i]) != axis)
            continue;
        pads[0] = all[i];
        pads[1] = all[i + count];
    }
    return true;
}

row_relation independence_pad(const row_call *c, int output)
{
    const row_value *x = c->in[0];
    row_axis at;
    if (!rows_is_same(rows_input(c, 2)) || !rows_is_same(rows_input(c, 3)))
        return rows_mixed(rows_reason_parameter);
    if (rows_is_same(x))
        return rows_keep(c, x, 0, &c->out[output], rows_reason_shape);
    if (!rows_find(c, x, &at))
        return rows_undecided(rows_reason_shape);
    for (int i = 0; i < x->one.rank; i++) {
        int64_t one[2], many[2];
        if (!find_pads(c, false, i, one) || !find_pads(c, true, i, many))
            return rows_undecided(rows_reason_shape);
        if (one[0] != many[0] || one[1] != many[1])
            return rows_mixed(rows_reason_count);
        if (i == at.axis && (one[0] != 0 || one[1] != 0))
            return rows_mixed("pads or crops the rows");
    }
    return rows_split(c, &c->out[output], at);
}

/* DepthToSpace, SpaceToDepth: all axes but the first. */
row_relation independence_blocks(const row_call *c, int output)
{
    return rows_keep(c, c->in[0], ~1u, &c->out[output], rows_reason_pairs);
}

row_relation independence_one_hot(const row_call *c, int output)
{
    const row_value *indices = c->in[0], *out = &c->out[output];
    int axis = rows_axis_attribute(c->node, "axis", -1, out->one.rank), to[TENSOR_RANK_MAX];
    if (!rows_others_same(c, 1))
        return rows_mixed(rows_reason_parameter);
    for (int i = 0; i < TENSOR_RANK_MAX; i++)
        to[i] = i < axis ? i : i + 1;
    return rows_follow(c, indices, to, out, rows_reason_shape);
}

row_relation independence_reverse_sequence(const row_call *c, int output)
{
    const row_value *x = c->in[0], *lengths = c->in[1];
    int batch = rows_axis_attribute(c->node, "batch_axis", 1, x->one.rank);
    int time = rows_axis_attribute(c->node, "time_axis", 0, x->one.rank);
    row_axis at;
    if (rows_is_same(x) || !rows_find(c, x, &at))
        return rows_is_same(x) ? rows_mixed(rows_reason_parameter)
                               : rows_undecided(rows_reason_shape);
    if (at.axis == time)
        return rows_mixed(rows_reason_pairs);
    if (at.axis == batch ? !rows_lie(c, lengths, (row_axis){0, at.outer}) : !rows_is_same(lengths))
        return rows_mixed(rows_reason_constant);
    return rows_split(c, &c->out[output], at);
}

#include "graph/independence/rules.h"

static const char reason_reduce[] = "reduces over the rows";
static const char reason_order[] = "goes along the rows";

row_relation independence_reduce(const row_call *c, int output)
{
    const row_value *x = c->in[0], *listed = rows_input(c, 1);
    int64_t axes[TENSOR_RANK_MAX];
    int count = listed == NULL ? 0 : rows_integers(&listed->one, TENSOR_RANK_MAX, axes);
    bool keeps = graph_attribute_int(c->node, "keepdims", 1) != 0;
    bool is_all = count == 0 && graph_attribute_int(c->node, "noop_with_empty_axes", 0) == 0;
    if (!rows_is_same(listed) || count < 0)
        return rows_undecided(rows_reason_parameter);
    int to[TENSOR_RANK_MAX] = {0}, rank = 0;
    for (int i = 0; i < x->one.rank; i++) {
        bool is_reduced = is_all;
        for (int k = 0; k < count; k++)
            is_reduced |= (axes[k] < 0 ? axes[k] + x->one.rank : axes[k]) == i;
        to[i] = is_reduced ? -1 : rank;
        rank += keeps || !is_reduced;
    }
    return rows_follow(c, x, to, &c->out[output], reason_reduce);
}

row_relation independence_arg_reduce(const row_call *c, int output)
{
    const row_value *x = c->in[0];
    bool keeps = graph_attribute_int(c->node, "keepdims", 1) != 0;
    int axis = rows_axis_attribute(c->node, "axis", 0, x->one.rank), to[TENSOR_RANK_MAX];
    for (int i = 0; i < TENSOR_RANK_MAX; i++)
        to[i] = i == axis ? -1 : i - (i > axis && !keeps);
    return rows_follow(c, x, to, &c->out[output], reason_reduce);
}

/* Softmax, LogSoftmax, Hardmax, LpNormalization, TopK: each line along `axis` on its own. */
row_relation independence_along_axis(const row_call *c, int output)
{
    const row_value *x = c->in[0];
    int axis = rows_axis_attribute(c->node, "axis", -1, x->one.rank);
    if (!rows_others_same(c, 1))
        return rows_mixed(rows_reason_parameter);
    return rows_keep(c, x, 1u << axis, &c->out[output], reason_order);
}

/* MeanVarianceNormalization. */
row_relation independence_along_axes(const row_call *c, int output)
{
    const row_value *x = c->in[0];
    const graph_attribute *axes = graph_find_attribute(c->node, "axes");
    uint32_t forbidden = axes == NULL ? 1u << 0 | 1u << 2 | 1u << 3 : 0;
    for (size_t i = 0; axes != NULL && i < axes->count; i++)
        forbidden |= 1u << (axes->ints[i] < 0 ? axes->ints[i] + x->one.rank : axes->ints[i]);
    return rows_keep(c, x, forbidden, &c->out[output], reason_reduce);
}

row_relation independence_cum_sum(const row_call *c, int output)
{
    const row_value *x = c->in[0];
    int64_t axis;
    if (!rows_is_same(c->in[1]) || rows_integers(&c->in[1]->one, 1, &axis) != 1)
        return rows_undecided(rows_reason_parameter);
    axis += axis < 0 ? x->one.rank : 0;
    return rows_keep(c, x, 1u << axis, &c->out[output], reason_order);
}

/* DynamicQuantizeLinear. */
row_relation independence_whole_tensor(const row_call *c, int output)
{
    (void)c;
    (void)output;
    return rows_mixed("takes one scale from all rows together");
}

#include "graph/independence/rules.h"

static const char reason_statistics[] = "takes statistics over the rows";

/* Parameters of the channels, axis 1: the same for all rows, or split where the channels are. */
static bool channels_fit(const row_call *c, row_axis at)
{
    if (at.axis != 1)
        return rows_others_same(c, 1);
    for (int i = 1; i < c->node->input_count; i++)
        if (c->in[i] != NULL && !rows_lie(c, c->in[i], (row_axis){0, at.outer}))
            return false;
    return true;
}

row_relation independence_batch_normalization(const row_call *c, int output)
{
    const row_value *x = c->in[0];
    bool is_training = graph_attribute_int(c->node, "training_mode", 0) != 0;
    row_axis at;
    if (rows_is_same(x) || output > 0)
        return rows_mixed(rows_reason_parameter);
    if (!rows_find(c, x, &at))
        return rows_undecided(rows_reason_shape);
    if (is_training && at.axis != 1)
        return rows_mixed(reason_statistics);
    if (!channels_fit(c, at))
        return rows_mixed(rows_reason_parameter);
    return rows_split(c, &c->out[output], at);
}

row_relation independence_instance_normalization(const row_call *c, int output)
{
    const row_value *x = c->in[0];
    row_axis at;
    if (rows_is_same(x))
        return rows_mixed(rows_reason_parameter);
    if (!rows_find(c, x, &at))
        return rows_undecided(rows_reason_shape);
    if (at.axis > 1)
        return rows_mixed(reason_statistics);
    if (!channels_fit(c, at))
        return rows_mixed(rows_reason_parameter);
    return rows_split(c, &c->out[output], at);
}

row_relation independence_group_normalization(const row_call *c, int output)
{
    if (!rows_others_same(c, 1))
        return rows_mixed(rows_reason_parameter);
    return rows_keep(c, c->in[0], ~1u, &c->out[output], reason_statistics);
}

row_relation independence_layer_normalization(const row_call *c, int output)
{
    const row_value *x = c->in[0];
    int axis = rows_axis_attribute(c->node, "axis", -1, x->one.rank);
    if (!rows_others_same(c, 1))
        return rows_mixed(rows_reason_parameter);
    return rows_keep(c, x, ~0u << axis, &c->out[output], reason_statistics);
}

row_relation independence_lrn(const row_call *c, int output)
{
    return rows_keep(c, c->in[0], 1u << 1, &c->out[output], reason_statistics);
}

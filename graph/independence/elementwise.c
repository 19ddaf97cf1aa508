#include "graph/independence/rules.h"

/* Input 0 element by element; the others, if any, are the same for all rows. */
row_relation independence_unary(const row_call *c, int output)
{
    if (!rows_others_same(c, 1) && c->node->op != GRAPH_OP_CAST_LIKE)
        return rows_mixed(rows_reason_parameter);
    bool keeps_numbers = c->node->op == GRAPH_OP_IDENTITY ||
                         (c->node->op == GRAPH_OP_CAST && c->out[output].one.dtype == DTYPE_I64);
    if (c->in[0]->relation.kind == ROWS_NUMBERED && keeps_numbers)
        return c->in[0]->relation;
    return rows_broadcast(c, (int[]){0}, 1, &c->out[output]);
}

row_relation independence_broadcast(const row_call *c, int output)
{
    int positions[INDEPENDENCE_INPUTS_MAX];
    if (c->node->input_count > INDEPENDENCE_INPUTS_MAX)
        return rows_undecided("has more inputs than are followed");
    for (int i = 0; i < c->node->input_count; i++)
        positions[i] = i;
    return rows_broadcast(c, positions, c->node->input_count, &c->out[output]);
}

/* Scale and zero point: the same for all rows, or one of each for every index of `axis`, and the
 * rows lie there. */
row_relation independence_quantize(const row_call *c, int output)
{
    const row_value *x = c->in[0];
    row_axis at;
    if (rows_others_same(c, 1))
        return rows_keep(c, x, 0, &c->out[output], rows_reason_shape);
    if (x->one.rank == 0 || !rows_find(c, x, &at) ||
        rows_axis_attribute(c->node, "axis", 1, x->one.rank) != at.axis ||
        graph_attribute_int(c->node, "block_size", 0) != 0)
        return rows_mixed(rows_reason_parameter);
    for (int i = 1; i < c->node->input_count; i++)
        if (c->in[i] != NULL &&
            (c->in[i]->one.rank != 1 || !rows_lie(c, c->in[i], (row_axis){0, at.outer})))
            return rows_mixed(rows_reason_parameter);
    return rows_split(c, &c->out[output], at);
}

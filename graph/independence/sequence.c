#include "graph/independence/rules.h"

/* RNN, GRU, LSTM: steps of one row follow each other; rows do not meet. */
row_relation independence_recurrent(const row_call *c, int output)
{
    const row_value *x = c->in[0];
    bool is_batch_first = graph_attribute_int(c->node, "layout", 0) != 0;
    int batch = is_batch_first ? 0 : 1;
    row_axis at;
    if (rows_is_same(x) || !rows_find(c, x, &at))
        return rows_is_same(x) ? rows_mixed(rows_reason_parameter)
                               : rows_undecided(rows_reason_shape);
    if (at.axis != batch)
        return rows_mixed("goes along the rows, step by step");
    /* Weights, bias and peepholes; then lengths and states, which are the rows' own. */
    if (!rows_others_same(c, 1u << 0 | 1u << 4 | 1u << 5 | 1u << 6))
        return rows_mixed(rows_reason_parameter);
    for (int i = 4; i < 7; i++) {
        const row_value *v = rows_input(c, i);
        if (v != NULL && !rows_lie(c, v, (row_axis){i == 4 ? 0 : batch, at.outer}))
            return rows_mixed(rows_reason_pairs);
    }
    int axis = is_batch_first ? 0 : output == 0 ? 2 : 1;
    return rows_split(c, &c->out[output], (row_axis){axis, at.outer});
}

row_relation independence_dft(const row_call *c, int output)
{
    const row_value *x = c->in[0], *listed = rows_input(c, 2);
    int64_t axis = -2;
    if (!rows_others_same(c, 1))
        return rows_mixed(rows_reason_parameter);
    if (listed != NULL && rows_integers(&listed->one, 1, &axis) != 1)
        return rows_undecided(rows_reason_parameter);
    axis += axis < 0 ? x->one.rank : 0;
    return rows_keep(c, x, 1u << axis | 1u << (x->one.rank - 1), &c->out[output],
                     "transforms along the rows");
}

row_relation independence_stft(const row_call *c, int output)
{
    if (!rows_others_same(c, 1))
        return rows_mixed(rows_reason_parameter);
    return rows_keep(c, c->in[0], ~1u, &c->out[output], "transforms along the rows");
}

/* MelWeightMatrix: a table made from numbers that are not the same. */
row_relation independence_made_table(const row_call *c, int output)
{
    (void)c;
    (void)output;
    return rows_mixed(rows_reason_parameter);
}

/* Operators of ai.onnx.ml that compute each row from its own columns. */
row_relation independence_columns(const row_call *c, int output)
{
    if (!rows_others_same(c, 1))
        return rows_mixed(rows_reason_parameter);
    return rows_keep(c, c->in[0], ~1u, &c->out[output], "reads the columns");
}

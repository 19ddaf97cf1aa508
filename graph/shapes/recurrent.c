#include <string.h>

#include "graph/shapes/rules.h"

/* RNN, GRU and LSTM. */

static status expect_shape(const tensor *const *in, int position, const tensor *x, int rank,
                           const int64_t *dims)
{
    const tensor *t = in[position];
    if (t == NULL)
        return STATUS_OK;
    tensor wanted = {.dtype = position == 4 ? DTYPE_I32 : x->dtype, .rank = rank};
    memcpy(wanted.dims, dims, (size_t)rank * sizeof dims[0]);
    if (t->dtype != wanted.dtype || !tensor_same_shape(t, &wanted))
        return status_fail(STATUS_INVALID_ARGUMENT, "input %d is %s; it should be %s", position,
                           infer_text(t), infer_text(&wanted));
    return STATUS_OK;
}

static bool is_lstm(const graph_node *node)
{
    return node->op == GRAPH_OP_LSTM || node->op == GRAPH_OP_ROUNDED_LSTM;
}

static status check_attributes(const graph_node *node, int64_t directions, int64_t hidden)
{
    static const char *const choices[] = {"forward", "reverse", "bidirectional", NULL};
    status s = infer_expect_choice(node, "direction", choices);
    if (s)
        return s;
    const char *direction = graph_attribute_string(node, "direction", "forward");
    int64_t wanted = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    if (directions != wanted)
        return status_fail(STATUS_INVALID_ARGUMENT, "weights of %lld directions; it is %s",
                           (long long)directions, direction);
    int64_t size = graph_attribute_int(node, "hidden_size", hidden);
    if (size != hidden)
        return status_fail(STATUS_INVALID_ARGUMENT, "hidden_size %lld; the weights have %lld",
                           (long long)size, (long long)hidden);
    const graph_attribute *names = graph_find_attribute(node, "activations");
    int64_t functions = is_lstm(node) ? 3 : node->op == GRAPH_OP_GRU ? 2 : 1;
    if (names != NULL && (int64_t)names->count != functions * directions)
        return status_fail(STATUS_INVALID_ARGUMENT, "%zu activations; %lld are needed",
                           names->count, (long long)(functions * directions));
    int64_t layout = graph_attribute_int(node, "layout", 0);
    if (layout != 0 && layout != 1)
        return status_fail(STATUS_INVALID_ARGUMENT, "layout %lld is neither 0 nor 1",
                           (long long)layout);
    return STATUS_OK;
}

status infer_recurrent(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0], *r = in[2];
    if (x->rank != 3 || r->rank != 3)
        return status_fail(STATUS_INVALID_ARGUMENT, "inputs %s and %s are not of rank 3",
                           infer_text(x), infer_text(r));
    int64_t gates = is_lstm(node) ? 4 : node->op == GRAPH_OP_GRU ? 3 : 1;
    int64_t directions = r->dims[0], hidden = r->dims[2];
    bool is_batch_first = graph_attribute_int(node, "layout", 0) != 0;
    int64_t steps = x->dims[is_batch_first], rows = x->dims[!is_batch_first];
    status s = check_attributes(node, directions, hidden);
    if (s)
        return s;
    const int64_t state[2][3] = {{directions, rows, hidden}, {rows, directions, hidden}};
    const struct {
        int rank;
        int64_t dims[3];
    } wanted[] = {
        {3, {directions, gates * hidden, x->dims[2]}},
        {3, {directions, gates * hidden, hidden}},
        {2, {directions, 2 * gates * hidden}},
        {1, {rows}},
        {3, {state[is_batch_first][0], state[is_batch_first][1], hidden}},
        {3, {state[is_batch_first][0], state[is_batch_first][1], hidden}},
        {2, {directions, 3 * hidden}},
    };
    for (int i = 1; i < node->input_count; i++)
        if ((s = expect_shape(in, i, x, wanted[i - 1].rank, wanted[i - 1].dims)))
            return s;
    int64_t all[2][4] = {{steps, directions, rows, hidden}, {rows, steps, directions, hidden}};
    if ((s = infer_set(&out[0], x->dtype, 4, all[is_batch_first])))
        return s;
    for (int i = 1; i < 3; i++)
        if ((s = infer_set(&out[i], x->dtype, 3, state[is_batch_first])))
            return s;
    return STATUS_OK;
}

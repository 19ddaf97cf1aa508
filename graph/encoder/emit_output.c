#include <stdlib.h>

#include "graph/build.h"
#include "graph/encoder/emit.h"
#include "graph/encoder/emit_internal.h"

/* Pooling and heads. Rows without tokens give what sentence-transformers gives. */

#define MAXIMUM_OF_NONE (-1e9f)
#define COUNT_OF_NONE 1e-9f

static graph_value_index number(const encoder_emitter *m, float f)
{
    return graph_number(m->g, f);
}

/* f32 [B,S,1]: 1 for tokens that count; with `prompts`, those of prompts count too. */
static graph_value_index mask_column(const encoder_emitter *m, bool prompts)
{
    const int64_t last = -1, one = 1;
    graph_value_index mask = m->mask;
    if (mask == GRAPH_NO_VALUE) /* every token */
        mask = graph_binary(m->g, GRAPH_OP_EQUAL, m->ids, m->ids);
    else if (m->e->excludes_prompt && prompts)
        mask = graph_cast(m->g, mask, DTYPE_BOOL);
    else if (m->e->excludes_prompt)
        mask = graph_binary(m->g, GRAPH_OP_EQUAL, mask,
                            graph_add_constant_i64(m->g, NULL, 0, NULL, &one));
    return graph_binary(m->g, GRAPH_OP_UNSQUEEZE, graph_cast(m->g, mask, DTYPE_F32),
                        graph_ints(m->g, 1, &last));
}

/* f32 [S,1]: 1, 2, 3, ... */
static graph_value_index ordinals(const encoder_emitter *m)
{
    const int64_t last = -1;
    graph_value_index at = graph_cast(m->g, m->positions, DTYPE_F32);
    at = graph_binary(m->g, GRAPH_OP_ADD, at, number(m, 1));
    return graph_binary(m->g, GRAPH_OP_UNSQUEEZE, at, graph_ints(m->g, 1, &last));
}

/* Sum over tokens of x [B,S,n] times weights [B,S,1]. */
static graph_value_index weighted_sum(const encoder_emitter *m, graph_value_index x,
                                      graph_value_index weights)
{
    return graph_reduce(m->g, GRAPH_OP_REDUCE_SUM, graph_binary(m->g, GRAPH_OP_MUL, x, weights), 1,
                        false);
}

/* The sum of weights, [B,1], at least that of a row without tokens. */
static graph_value_index total(const encoder_emitter *m, graph_value_index weights)
{
    graph_value_index sum = graph_reduce(m->g, GRAPH_OP_REDUCE_SUM, weights, 1, false);
    return graph_binary(m->g, GRAPH_OP_MAX, sum, number(m, COUNT_OF_NONE));
}

static graph_value_index first_token(const encoder_emitter *m, graph_value_index x)
{
    const int64_t zero = 0;
    return graph_gather(m->g, x, graph_add_constant_i64(m->g, NULL, 0, NULL, &zero), 1);
}

/* The token whose ordinal is the largest of those that count. */
static graph_value_index last_token(const encoder_emitter *m, graph_value_index x,
                                    graph_value_index mask)
{
    graph_value_index place = graph_binary(m->g, GRAPH_OP_MUL, mask, ordinals(m));
    graph_value_index top = graph_reduce(m->g, GRAPH_OP_REDUCE_MAX, place, 1, true);
    graph_value_index is_last =
        graph_cast(m->g, graph_binary(m->g, GRAPH_OP_EQUAL, place, top), DTYPE_F32);
    return weighted_sum(m, x, graph_binary(m->g, GRAPH_OP_MUL, is_last, mask));
}

/* 1, 2, 3, ... from the first token of `from` on, 0 for tokens that are not in `mask`. */
static graph_value_index position_weights(const encoder_emitter *m, graph_value_index from,
                                          graph_value_index mask)
{
    graph_value_index backwards = graph_binary(m->g, GRAPH_OP_SUB, number(m, 1), ordinals(m));
    graph_value_index counts = graph_cast(m->g, from, DTYPE_BOOL);
    graph_value_index first = graph_reduce(
        m->g, GRAPH_OP_REDUCE_MAX, graph_where(m->g, counts, backwards, number(m, -1e9f)), 1, true);
    return graph_binary(m->g, GRAPH_OP_MUL, mask,
                        graph_binary(m->g, GRAPH_OP_ADD, ordinals(m), first));
}

/* The first token that counts. */
static graph_value_index first_counted(const encoder_emitter *m, graph_value_index x,
                                       graph_value_index mask)
{
    graph_value_index place = position_weights(m, mask, mask);
    graph_value_index is_first = graph_binary(m->g, GRAPH_OP_EQUAL, place, number(m, 1));
    return weighted_sum(m, x, graph_cast(m->g, is_first, DTYPE_F32));
}

static graph_value_index pool(const encoder_emitter *m, encoder_pooling pooling,
                              graph_value_index x)
{
    graph_value_index mask = mask_column(m, false), weights;
    switch (pooling) {
    case ENCODER_POOLING_NONE:
        return x;
    case ENCODER_POOLING_FIRST:
        return m->e->excludes_prompt ? first_counted(m, x, mask) : first_token(m, x);
    case ENCODER_POOLING_MAX:
        x = graph_where(m->g, graph_cast(m->g, mask, DTYPE_BOOL), x, number(m, MAXIMUM_OF_NONE));
        return graph_reduce(m->g, GRAPH_OP_REDUCE_MAX, x, 1, false);
    case ENCODER_POOLING_MEAN:
        return graph_binary(m->g, GRAPH_OP_DIV, weighted_sum(m, x, mask), total(m, mask));
    case ENCODER_POOLING_MEAN_SQRT:
        return graph_binary(m->g, GRAPH_OP_DIV, weighted_sum(m, x, mask),
                            graph_unary(m->g, GRAPH_OP_SQRT, total(m, mask)));
    case ENCODER_POOLING_WEIGHTED_MEAN:
        weights = position_weights(m, mask_column(m, true), mask);
        return graph_binary(m->g, GRAPH_OP_DIV, weighted_sum(m, x, weights), total(m, weights));
    case ENCODER_POOLING_LAST:
        return last_token(m, x, mask);
    }
    abort();
}

/* torch.nn.functional.normalize: x / max(|x|, epsilon). */
static graph_value_index normalise(const encoder_emitter *m, graph_value_index x, float epsilon)
{
    graph_value_index length = graph_reduce(m->g, GRAPH_OP_REDUCE_L2, x, -1, true);
    return graph_binary(m->g, GRAPH_OP_DIV, x,
                        graph_binary(m->g, GRAPH_OP_MAX, length, number(m, epsilon)));
}

graph_value_index encoder_emit_output(const encoder_emitter *m, const encoder_output *o,
                                      graph_value_index hidden)
{
    const int64_t last = -1;
    graph_value_index parts[ENCODER_POOLINGS_MAX] = {pool(m, o->pooling, hidden)};
    for (int i = 0; i < o->also_count; i++)
        parts[i + 1] = pool(m, o->also[i], hidden);
    graph_attribute axis = graph_make_int("axis", -1);
    graph_value_index x =
        o->also_count == 0 ? parts[0]
                           : graph_add(m->g, GRAPH_OP_CONCAT, o->also_count + 1, parts, 1, &axis);
    for (int i = 0; i < o->head_count; i++) {
        const encoder_head_layer *l = &o->head[i];
        if (l->linear.weight != NULL)
            x = encoder_emit_linear(m, &l->linear, x);
        x = encoder_emit_norm(m, &l->norm, encoder_activate_head(m->g, l->activation, x));
        if (l->is_normalised)
            x = normalise(m, x, l->norm_epsilon);
    }
    if (o->is_normalised)
        x = normalise(m, x, o->norm_epsilon);
    if (o->is_column)
        x = graph_binary(m->g, GRAPH_OP_SQUEEZE, x, graph_ints(m->g, 1, &last));
    return x;
}

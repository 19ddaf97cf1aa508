#include <stdlib.h>

#include "graph/build.h"
#include "graph/encoder/packer.h"

/* Outputs of a packed or padded graph: pooling over the tokens of a sequence, and heads. */

/* The maximum over no token, as in the ragged engine and in sentence-transformers. */
#define MAXIMUM_OF_NONE (-1e9f)

/* p->members, made at the first call. */
static graph_value_index members(packer *p)
{
    if (p->members != GRAPH_NO_VALUE)
        return p->members;
    int32_t *numbers = arena_allocate(&p->g->memory, (size_t)p->size.sequences * sizeof *numbers);
    if (numbers == NULL)
        return graph_lack_memory(p->g);
    for (int64_t i = 0; i < p->size.sequences; i++)
        numbers[i] = (int32_t)i + 1;
    const tensor t = {
        .dtype = DTYPE_I32, .rank = 2, .dims = {p->size.sequences, 1}, .data = numbers};
    const int64_t flat[] = {1, p->tokens};
    p->members = graph_binary(p->g, GRAPH_OP_EQUAL, packer_constant(p, &t),
                              graph_reshape(p->g, p->segments, 2, flat));
    if (p->mask != GRAPH_NO_VALUE)
        p->members = graph_binary(p->g, GRAPH_OP_AND, p->members,
                                  graph_reshape(p->g, packer_is_not_zero(p, p->mask), 2, flat));
    return p->members;
}

/* [tokens, hidden] to [sequences, hidden]; `is_sum`: times the number of tokens. */
static graph_value_index mean(packer *p, graph_value_index x, bool is_sum)
{
    graph_value_index weights = graph_cast(p->g, members(p), DTYPE_F32);
    graph_value_index sums = graph_binary(p->g, GRAPH_OP_MATMUL, weights, x);
    if (is_sum)
        return sums;
    graph_value_index counts = graph_reduce(p->g, GRAPH_OP_REDUCE_SUM, weights, 1, true);
    return graph_binary(p->g, GRAPH_OP_DIV, sums,
                        graph_binary(p->g, GRAPH_OP_MAX, counts, graph_number(p->g, 1)));
}

static graph_value_index maximum(packer *p, graph_value_index x)
{
    graph_value_index counts =
        graph_reshape(p->g, members(p), 3, (int64_t[]){p->size.sequences, p->tokens, 1});
    graph_value_index all = graph_reshape(p->g, x, 3, (int64_t[]){1, p->tokens, p->e->hidden});
    graph_value_index own = graph_where(p->g, counts, all, graph_number(p->g, MAXIMUM_OF_NONE));
    return graph_reduce(p->g, GRAPH_OP_REDUCE_MAX, own, 1, false);
}

/* [rows, length, hidden], and bool [rows, length, 1] of the tokens that are pooled. */
static graph_value_index by_row(packer *p, graph_value_index x)
{
    return graph_reshape(p->g, x, 3, (int64_t[]){p->size.rows, p->size.length, p->e->hidden});
}

static graph_value_index is_pooled(packer *p)
{
    return graph_reshape(p->g, packer_is_not_zero(p, p->mask), 3,
                         (int64_t[]){p->size.rows, p->size.length, 1});
}

static graph_value_index mean_of_rows(packer *p, graph_value_index x, bool is_sum)
{
    if (p->form.is_mean_product && p->mask != GRAPH_NO_VALUE)
        return mean(p, x, is_sum);
    x = by_row(p, x);
    if (p->mask == GRAPH_NO_VALUE)
        return graph_reduce(p->g, GRAPH_OP_REDUCE_MEAN, x, 1, false);
    graph_value_index weights = graph_cast(p->g, is_pooled(p), DTYPE_F32);
    x = graph_reduce(p->g, GRAPH_OP_REDUCE_SUM, graph_binary(p->g, GRAPH_OP_MUL, x, weights), 1,
                     false);
    if (is_sum)
        return x;
    graph_value_index counts = graph_reduce(p->g, GRAPH_OP_REDUCE_SUM, weights, 1, false);
    return graph_binary(p->g, GRAPH_OP_DIV, x,
                        graph_binary(p->g, GRAPH_OP_MAX, counts, graph_number(p->g, 1)));
}

static graph_value_index maximum_of_rows(packer *p, graph_value_index x)
{
    x = by_row(p, x);
    if (p->mask != GRAPH_NO_VALUE)
        x = graph_where(p->g, is_pooled(p), x, graph_number(p->g, MAXIMUM_OF_NONE));
    return graph_reduce(p->g, GRAPH_OP_REDUCE_MAX, x, 1, false);
}

static graph_value_index first_of_rows(packer *p, graph_value_index x)
{
    int64_t wide = p->size.length * p->e->hidden;
    x = graph_reshape(p->g, x, 2, (int64_t[]){p->size.rows, wide});
    const int64_t start[] = {0}, end[] = {p->e->hidden}, axis[] = {1};
    graph_value_index inputs[] = {x, graph_ints(p->g, 1, start), graph_ints(p->g, 1, end),
                                  graph_ints(p->g, 1, axis)};
    return graph_add(p->g, GRAPH_OP_SLICE, 4, inputs, 0, NULL);
}

/* Of one sequence a row: [rows * length, hidden] to [rows, hidden]. */
static graph_value_index pool_rows(packer *p, encoder_pooling pooling, graph_value_index x,
                                   bool is_sum)
{
    switch (pooling) {
    case ENCODER_POOLING_NONE:
        return x;
    case ENCODER_POOLING_MEAN:
        return mean_of_rows(p, x, is_sum);
    case ENCODER_POOLING_MAX:
        return maximum_of_rows(p, x);
    case ENCODER_POOLING_FIRST:
        return first_of_rows(p, x);
    default: /* encoder_can_pack() */
        abort();
    }
}

/* `is_sum`: a mean is as good times any number. */
static graph_value_index pool(packer *p, encoder_pooling pooling, graph_value_index x, bool is_sum)
{
    if (p->is_padded)
        return pool_rows(p, pooling, x, is_sum);
    switch (pooling) {
    case ENCODER_POOLING_NONE:
        return x;
    case ENCODER_POOLING_MEAN:
        return mean(p, x, is_sum);
    case ENCODER_POOLING_MAX:
        return maximum(p, x);
    case ENCODER_POOLING_FIRST:
        return graph_gather(p->g, x, p->starts, 0);
    default: /* encoder_can_pack() */
        abort();
    }
}

static graph_value_index activate_head(packer *p, encoder_head_activation a, graph_value_index x)
{
    switch (a) {
    case ENCODER_HEAD_NONE:
        return x;
    case ENCODER_HEAD_TANH:
        return graph_unary(p->g, GRAPH_OP_TANH, x);
    case ENCODER_HEAD_RELU:
        return graph_unary(p->g, GRAPH_OP_RELU, x);
    case ENCODER_HEAD_GELU:
        return packer_gelu(p, x, "none");
    case ENCODER_HEAD_GELU_TANH:
        return packer_gelu(p, x, "tanh");
    case ENCODER_HEAD_SILU:
        return graph_binary(p->g, GRAPH_OP_MUL, x, graph_unary(p->g, GRAPH_OP_SIGMOID, x));
    case ENCODER_HEAD_SIGMOID:
        return graph_unary(p->g, GRAPH_OP_SIGMOID, x);
    }
    abort();
}

void packer_add_output(packer *p, const encoder_output *o, graph_value_index x, const char *name)
{
    int64_t width = p->e->hidden;
    x = pool(p, o->pooling, x, o->is_normalised && o->head_count == 0);
    for (int i = 0; i < o->head_count; i++) {
        const encoder_linear *l = &o->head[i].linear;
        width = l->weight->dims[l->is_transposed ? 0 : 1];
        x = activate_head(p, o->head[i].activation, packer_linear(p, l, x));
    }
    if (o->is_normalised) {
        graph_value_index squares = graph_binary(p->g, GRAPH_OP_MUL, x, x);
        graph_value_index length = graph_unary(
            p->g, GRAPH_OP_SQRT, graph_reduce(p->g, GRAPH_OP_REDUCE_SUM, squares, 1, true));
        x = graph_binary(
            p->g, GRAPH_OP_DIV, x,
            graph_binary(p->g, GRAPH_OP_MAX, length, graph_number(p->g, o->norm_epsilon)));
    }
    if (o->is_column)
        x = graph_reshape(p->g, x, 2, (int64_t[]){p->size.rows, p->size.length});
    else if (o->pooling == ENCODER_POOLING_NONE)
        x = graph_reshape(p->g, x, 3, (int64_t[]){p->size.rows, p->size.length, width});
    graph_add_output(p->g, x, name);
}

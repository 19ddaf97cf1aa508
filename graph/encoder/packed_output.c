#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "graph/build.h"
#include "graph/encoder/emit.h"
#include "graph/encoder/packer.h"

/* Outputs of a packed or padded graph: pooling over the tokens of a sequence, and heads. */

/* The maximum over no token, as in the ragged engine and in sentence-transformers. */
#define MAXIMUM_OF_NONE (-1e9f)

/* i32 [rows, length]: 1, 1 ... of the first row, 2 of the second. */
static graph_value_index rows_from_one(packer *p)
{
    int32_t *numbers = arena_allocate(&p->g->memory, (size_t)p->tokens * sizeof *numbers);
    if (numbers == NULL)
        return graph_lack_memory(p->g);
    for (int64_t i = 0; i < p->tokens; i++)
        numbers[i] = (int32_t)(i / p->size.length) + 1;
    const tensor t = {
        .dtype = DTYPE_I32, .rank = 2, .dims = {p->size.rows, p->size.length}, .data = numbers};
    return packer_constant(p, &t);
}

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
    graph_value_index segments = p->is_padded ? rows_from_one(p) : p->segments;
    p->members = graph_binary(p->g, GRAPH_OP_EQUAL, packer_constant(p, &t),
                              graph_reshape(p->g, segments, 2, flat));
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

void packer_add_output(packer *p, const encoder_output *o, graph_value_index x, const char *name)
{
    int64_t width = p->e->hidden;
    x = pool(p, o->pooling, x, o->is_normalised && o->head_count == 0);
    for (int i = 0; i < o->head_count; i++) {
        const encoder_linear *l = &o->head[i].linear;
        width = l->weight->dims[l->is_transposed ? 0 : 1];
        x = encoder_activate_head(p->g, o->head[i].activation, packer_linear(p, l, x));
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

/* --- the graph of an encoder that is measured, or that imitates int8: encoder_trial --- */

void packer_end_trial(packer *p)
{
    for (int i = 0; p->ranges != NULL && i < 2 * p->e->layer_count * ENCODER_LINEARS; i++) {
        char name[40];
        snprintf(name, sizeof name, "%s of linear layer %d", i % 2 ? "most" : "least", i / 2);
        graph_add_output(p->g, p->ranges[i], name);
    }
    if (p->score_most != GRAPH_NO_VALUE)
        graph_add_output(p->g, p->score_most, "largest score");
}

void packer_note_scores(packer *p, graph_value_index scores)
{
    if (p->form.trial == NULL || !p->form.trial->shows_ranges)
        return;
    int64_t rows = p->size.rows, n = p->size.length;
    graph_value_index is_real = GRAPH_NO_VALUE;
    if (p->mask != GRAPH_NO_VALUE) {
        is_real = packer_is_not_zero(p, p->mask);
        graph_value_index keys = graph_reshape(p->g, is_real, 4, (int64_t[]){rows, 1, 1, n});
        scores = graph_where(p->g, keys, scores, graph_number(p->g, -FLT_MAX));
    }
    graph_value_index most = graph_reduce(p->g, GRAPH_OP_REDUCE_MAX, scores, -1, false);
    most = graph_unary(p->g, GRAPH_OP_ABS, most);
    if (p->mask != GRAPH_NO_VALUE)
        most = graph_where(p->g, graph_reshape(p->g, is_real, 3, (int64_t[]){rows, 1, n}), most,
                           graph_number(p->g, 0));
    most = graph_reshape(p->g, most, 2, (int64_t[]){1, rows * p->e->heads * n});
    most = graph_reduce(p->g, GRAPH_OP_REDUCE_MAX, most, 1, false);
    p->score_most = p->score_most == GRAPH_NO_VALUE
                        ? most
                        : graph_binary(p->g, GRAPH_OP_MAX, p->score_most, most);
}

/* The least and the largest value of each channel, f32 [K]; padding counts as 0. */
static void show_ranges(packer *p, int64_t number, graph_value_index x, int64_t width)
{
    x = graph_reshape(p->g, x, 2, (int64_t[]){p->tokens, width});
    if (p->mask != GRAPH_NO_VALUE) {
        graph_value_index is_real = graph_cast(p->g, packer_is_not_zero(p, p->mask), DTYPE_F32);
        is_real = graph_reshape(p->g, is_real, 2, (int64_t[]){p->tokens, 1});
        x = graph_binary(p->g, GRAPH_OP_MUL, x, is_real);
    }
    if (p->ranges == NULL) {
        size_t count = 2 * (size_t)p->e->layer_count * ENCODER_LINEARS;
        p->ranges = arena_allocate_zeroed(&p->g->memory, count, sizeof *p->ranges);
    }
    if (p->ranges == NULL) {
        (void)graph_lack_memory(p->g);
        return;
    }
    p->ranges[2 * number] = graph_reduce(p->g, GRAPH_OP_REDUCE_MIN, x, 0, false);
    p->ranges[2 * number + 1] = graph_reduce(p->g, GRAPH_OP_REDUCE_MAX, x, 0, false);
}

static int64_t width_of(const packer *p, int64_t number)
{
    return number % ENCODER_LINEARS == ENCODER_DOWN ? p->e->intermediate : p->e->hidden;
}

static quantise_channels channels_of(const packer *p, int64_t number)
{
    const encoder_trial *t = p->form.trial;
    return t == NULL || t->channels == NULL ? (quantise_channels){0} : t->channels[number];
}

static graph_value_index rounded(packer *p, graph_value_index x)
{
    graph_value_index q = graph_unary(p->g, GRAPH_OP_ROUND, x);
    q = graph_binary(p->g, GRAPH_OP_MAX, q, graph_number(p->g, -127));
    return graph_binary(p->g, GRAPH_OP_MIN, q, graph_number(p->g, 127));
}

/* By max|x| / 127 of each row. */
static graph_value_index rounded_by_row(packer *p, graph_value_index x)
{
    graph_value_index top =
        graph_reduce(p->g, GRAPH_OP_REDUCE_MAX, graph_unary(p->g, GRAPH_OP_ABS, x), -1, true);
    top = graph_binary(p->g, GRAPH_OP_MAX, top, graph_number(p->g, 1e-30f));
    graph_value_index scale = graph_binary(p->g, GRAPH_OP_DIV, top, graph_number(p->g, 127));
    x = rounded(p, graph_binary(p->g, GRAPH_OP_DIV, x, scale));
    return graph_binary(p->g, GRAPH_OP_MUL, x, scale);
}

static graph_value_index rounded_by_channel(packer *p, const quantise_channels *c,
                                            graph_value_index x)
{
    graph_value_index factors = packer_constant(p, c->factors);
    x = graph_binary(p->g, GRAPH_OP_MUL, x, factors);
    if (c->offsets == NULL)
        return graph_binary(p->g, GRAPH_OP_DIV, rounded(p, x), factors);
    graph_value_index offsets = packer_constant(p, c->offsets);
    x = rounded(p, graph_binary(p->g, GRAPH_OP_SUB, x, offsets));
    x = graph_binary(p->g, GRAPH_OP_ADD, x, offsets);
    return graph_binary(p->g, GRAPH_OP_DIV, x, factors);
}

graph_value_index packer_read(packer *p, int64_t number, graph_value_index x)
{
    const quantise_channels channels = channels_of(p, number);
    if (p->form.trial != NULL && p->form.trial->shows_ranges)
        show_ranges(p, number, x, width_of(p, number));
    if (channels.factors != NULL)
        return rounded_by_channel(p, &channels, x);
    return p->form.trial != NULL && p->form.trial->is_by_row ? rounded_by_row(p, x) : x;
}

/* One output of a weight: its numbers lie `step` apart. */
static void round_output(const float *from, float *to, int64_t depth, int64_t step,
                         const float *factors)
{
    float largest = 0;
    for (int64_t k = 0; k < depth; k++)
        largest = fmaxf(largest, fabsf(from[k * step] / (factors != NULL ? factors[k] : 1)));
    float scale = largest > 0 ? largest / 127 : 1;
    for (int64_t k = 0; k < depth; k++) {
        float factor = factors != NULL ? factors[k] : 1;
        to[k * step] = nearbyintf(from[k * step] / factor / scale) * scale * factor;
    }
}

const tensor *packer_weight(packer *p, int64_t number, const encoder_linear *l)
{
    const tensor *w = l->weight, *factors = channels_of(p, number).factors;
    if (factors == NULL && (p->form.trial == NULL || !p->form.trial->is_by_row))
        return w;
    tensor *made = arena_allocate(&p->g->memory, sizeof *made);
    float *to = packer_floats(p, tensor_count(w));
    if (made == NULL || to == NULL) {
        (void)graph_lack_memory(p->g);
        return NULL;
    }
    *made = *w;
    made->data = to;
    const float *from = w->data, *f = factors != NULL ? factors->data : NULL;
    int64_t rows = w->dims[0], columns = w->dims[1];
    for (int64_t i = 0; i < (l->is_transposed ? rows : columns); i++) {
        int64_t start = l->is_transposed ? i * columns : i;
        round_output(from + start, to + start, l->is_transposed ? columns : rows,
                     l->is_transposed ? 1 : columns, f);
    }
    return made;
}

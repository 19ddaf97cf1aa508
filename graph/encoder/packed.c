#include "graph/encoder/packed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "graph/build.h"
#include "graph/encoder/emit.h"
#include "graph/encoder/packer.h"

/* Sequences shorter than this on average use up the sequences of a batch before its tokens. */
#define TOKENS_PER_SEQUENCE 8
#define SEQUENCES_MAX 1024

/* Added to scores. A sequence whose keys are all masked attends to all of its tokens alike, so a
 * key of another sequence must score below a masked key of the same one. */
#define SCORE_OF_MASKED (-1e30f)
#define SCORE_OF_OTHER_SEQUENCE (-3e38f)
/* Where scores are clipped: so far below the least that it counts nothing, and its exponential not
 * 0. */
#define CLIPPED_SCORE_OF_MASKED (-16.0f - ENCODER_SCORE_MAX)

encoder_packing encoder_packing_of(int64_t rows, int64_t length)
{
    int64_t sequences = rows * length / TOKENS_PER_SEQUENCE;
    sequences = sequences > rows ? sequences : rows;
    return (encoder_packing){rows, length, sequences < SEQUENCES_MAX ? sequences : SEQUENCES_MAX};
}

/* Whether the layers are BERT's: what is packed. */
static bool has_bert_layers(const encoder *e)
{
    bool has = !e->is_pre_norm && e->distance_table == NULL && e->kv_heads == e->heads &&
               !e->is_causal && e->slopes == NULL && e->hidden == e->heads * e->head_dim &&
               e->final_norm.scale == NULL;
    for (int i = 0; i < e->layer_count && has; i++) {
        const encoder_layer *l = &e->layers[i];
        has = l->gate.weight == NULL && l->rotary == NULL && l->window == 0 &&
              l->query_norm.scale == NULL && l->key_norm.scale == NULL;
    }
    return has;
}

/* Whether pooling and heads are those that are packed. */
static bool has_plain_output(const encoder_output *o)
{
    bool is_plain = o->pooling <= ENCODER_POOLING_FIRST && o->also_count == 0;
    for (int i = 0; i < o->head_count && is_plain; i++)
        is_plain = o->head[i].linear.weight != NULL && o->head[i].norm.scale == NULL &&
                   !o->head[i].is_normalised;
    return is_plain;
}

status encoder_can_pack(const encoder *e, const graph *g)
{
    graph_dim batch = {.batch = 1}, sequence = {.sequence = 1};
    assert(e->ids_input >= 0 && e->output_count == g->output_count);
    if (e->excludes_prompt)
        return status_fail(STATUS_UNSUPPORTED, "pooling leaves prompts out");
    if (!has_bert_layers(e))
        return status_fail(STATUS_UNSUPPORTED, "only layers like BERT's are packed");
    for (int i = 0; i < e->output_count; i++)
        if (!has_plain_output(&e->outputs[i]))
            return status_fail(STATUS_UNSUPPORTED,
                               "output %d has a pooling or a head that is not packed", i);
    for (int i = 0; i < g->input_count; i++) {
        const graph_value *v = &g->values[g->inputs[i]];
        if (!dtype_is_integer(v->dtype) || v->shape.rank != 2 ||
            !graph_dim_equal(v->shape.dims[0], batch) ||
            !graph_dim_equal(v->shape.dims[1], sequence))
            return status_fail(STATUS_UNSUPPORTED, "input \"%.200s\" is not one integer per token",
                               v->name);
    }
    return STATUS_OK;
}

/* --- operators --- */

/* `is_product`: its sums are better a matrix multiplication, where that is accurate enough. */
static graph_value_index norm(packer *p, const encoder_norm *n, bool is_product,
                              graph_value_index x)
{
    if (n->scale == NULL)
        return x;
    graph_value_index inputs[] = {x, packer_constant(p, n->scale),
                                  n->bias ? packer_constant(p, n->bias) : GRAPH_NO_VALUE};
    graph_attribute attributes[] = {graph_make_int("axis", -1),
                                    graph_make_float("epsilon", n->epsilon),
                                    graph_make_int("sums_by_product", 1)};
    return graph_add(p->g, GRAPH_OP_LAYER_NORMALIZATION, n->bias ? 3 : 2, inputs, 2 + is_product,
                     attributes);
}

/* --- what depends on the sequence that a token belongs to --- */

/* bool [rows, length, length]: tokens i (dim 1) and j (dim 2) belong to the same sequence. Padding
 * counts as one more sequence, so that every row of scores has a key. */
static graph_value_index same_sequence(packer *p)
{
    int64_t n = p->size.length;
    graph_value_index of_i = graph_reshape(p->g, p->segments, 3, (int64_t[]){p->size.rows, n, 1});
    graph_value_index of_j = graph_reshape(p->g, p->segments, 3, (int64_t[]){p->size.rows, 1, n});
    return graph_binary(p->g, GRAPH_OP_EQUAL, of_i, of_j);
}

/* Relative bias as [1, heads, length, length]: distances in a row are distances in the sequence. */
static graph_value_index relative_bias(packer *p)
{
    const encoder *e = p->e;
    int64_t n = p->size.length, dims[] = {1, e->heads, n, n};
    const float *table = e->relative_table->data;
    tensor *t = arena_allocate(&p->g->memory, sizeof *t);
    if (t == NULL || tensor_allocate(t, &p->g->memory, DTYPE_F32, 4, dims))
        return graph_lack_memory(p->g);
    float *to = t->data;
    for (int64_t h = 0; h < e->heads; h++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                int64_t row = encoder_relative_bucket(e->relative_table->dims[0],
                                                      e->relative_distance_max, j - i);
                *to++ = table[row * e->heads + h];
            }
    return packer_constant(p, t);
}

graph_value_index packer_is_not_zero(packer *p, graph_value_index x)
{
    return graph_cast(p->g, x, DTYPE_BOOL);
}

/* p->score_bound. The keys of a sequence without real ones have the same score. */
static void make_score_bound(packer *p, graph_value_index same)
{
    const int64_t rows = p->size.rows, n = p->size.length, by_key[] = {rows, 1, 1, n};
    graph_value_index most = graph_number(p->g, ENCODER_SCORE_MAX);
    graph_value_index none = graph_number(p->g, SCORE_OF_OTHER_SEQUENCE);
    p->score_bound = GRAPH_NO_VALUE;
    if (p->mask != GRAPH_NO_VALUE) {
        graph_value_index keys = graph_reshape(p->g, packer_is_not_zero(p, p->mask), 4, by_key);
        most = p->score_bound =
            graph_where(p->g, keys, most, graph_number(p->g, CLIPPED_SCORE_OF_MASKED));
    }
    if (!p->is_padded) {
        same = graph_reshape(p->g, same, 4, (int64_t[]){rows, 1, n, n});
        p->score_bound = graph_where(p->g, same, most, none);
    }
}

/* p->score_bias and p->score_bound. */
static void make_score_bias(packer *p, graph_value_index same)
{
    int64_t rows = p->size.rows, n = p->size.length;
    p->score_bound = GRAPH_NO_VALUE;
    if (p->form.are_scores_clipped) {
        make_score_bound(p, same);
        p->score_bias = p->e->relative_table ? relative_bias(p) : GRAPH_NO_VALUE;
        return;
    }
    if (p->is_padded && p->mask == GRAPH_NO_VALUE) {
        p->score_bias = p->e->relative_table ? relative_bias(p) : GRAPH_NO_VALUE;
        return;
    }
    graph_value_index own = graph_number(p->g, 0);
    if (p->mask != GRAPH_NO_VALUE) {
        graph_value_index keys =
            graph_reshape(p->g, packer_is_not_zero(p, p->mask), 4, (int64_t[]){rows, 1, 1, n});
        own = graph_where(p->g, keys, own, graph_number(p->g, SCORE_OF_MASKED));
    }
    p->score_bias = own;
    if (!p->is_padded) {
        same = graph_reshape(p->g, same, 4, (int64_t[]){rows, 1, n, n});
        p->score_bias = graph_where(p->g, same, own, graph_number(p->g, SCORE_OF_OTHER_SEQUENCE));
    }
    if (p->e->relative_table != NULL)
        p->score_bias = graph_binary(p->g, GRAPH_OP_ADD, p->score_bias, relative_bias(p));
}

/* RoBERTa's positions: the tokens of a sequence that are not pad_id count pad_id + 1, pad_id + 2,
 * ...; padding has position pad_id. */
static graph_value_index counted_tokens(packer *p, graph_value_index same)
{
    int64_t rows = p->size.rows, n = p->size.length;
    float pad = (float)p->e->pad_id;
    graph_value_index ids = graph_cast(p->g, p->ids, DTYPE_F32);
    graph_value_index is_pad = graph_binary(p->g, GRAPH_OP_EQUAL, ids, graph_number(p->g, pad));
    graph_value_index is_token = graph_unary(p->g, GRAPH_OP_NOT, is_pad);
    int64_t seen = p->is_padded ? 1 : rows;
    graph_value_index of_i = graph_reshape(p->g, p->positions, 3, (int64_t[]){seen, n, 1});
    graph_value_index of_j = graph_reshape(p->g, p->positions, 3, (int64_t[]){seen, 1, n});
    graph_value_index counts = graph_binary(p->g, GRAPH_OP_LESS_OR_EQUAL, of_j, of_i);
    if (!p->is_padded)
        counts = graph_binary(p->g, GRAPH_OP_AND, counts, same);
    counts = graph_binary(p->g, GRAPH_OP_AND, counts,
                          graph_reshape(p->g, is_token, 3, (int64_t[]){rows, 1, n}));
    graph_value_index count =
        graph_reduce(p->g, GRAPH_OP_REDUCE_SUM, graph_cast(p->g, counts, DTYPE_F32), 2, false);
    graph_value_index index = graph_binary(p->g, GRAPH_OP_ADD, count, graph_number(p->g, pad));
    return graph_cast(p->g, graph_where(p->g, is_pad, graph_number(p->g, pad), index), DTYPE_I32);
}

/* What is looked up for each token: i [rows, length], or [length] of one row, for which compilers
 * find better programs without the dimension of 1. */
static graph_value_index gather_tokens(packer *p, graph_value_index table, graph_value_index i)
{
    if (p->size.rows == 1)
        i = graph_reshape(p->g, i, 1, (int64_t[]){p->size.length});
    return graph_gather(p->g, table, i, 0);
}

/* Of two token types: the second row of their table less the first one, times the type. The first
 * row is added to the table of positions, `*positions`. */
static graph_value_index second_type(packer *p, graph_value_index *positions)
{
    const tensor *types = p->e->token_type_table, *table = p->e->position_table;
    int64_t width = types->dims[1], count = tensor_count(table);
    const float *first = types->data, *second = first + width, *from = table->data;
    float *difference = packer_floats(p, width), *sums = packer_floats(p, count);
    if (difference == NULL || sums == NULL)
        return graph_lack_memory(p->g);
    for (int64_t i = 0; i < width; i++)
        difference[i] = second[i] - first[i];
    for (int64_t i = 0; i < count; i++)
        sums[i] = from[i] + first[i % width];
    tensor t = *table;
    t.data = sums;
    *positions = packer_constant(p, &t);
    t = (tensor){.dtype = DTYPE_F32, .rank = 1, .dims = {width}, .data = difference};
    const int64_t dims[] = {p->size.rows, p->size.length, 1};
    bool is_one = p->size.rows == 1;
    graph_value_index by_token = graph_reshape(p->g, graph_cast(p->g, p->types, DTYPE_F32),
                                               is_one ? 2 : 3, is_one ? dims + 1 : dims);
    return graph_binary(p->g, GRAPH_OP_MUL, by_token, packer_constant(p, &t));
}

static bool has_two_types(const packer *p)
{
    const tensor *types = p->e->token_type_table, *table = p->e->position_table;
    return p->types != GRAPH_NO_VALUE && types != NULL && table != NULL && types->dims[0] == 2 &&
           types->dtype == DTYPE_F32 && table->dtype == DTYPE_F32 &&
           types->dims[1] == table->dims[1] && p->e->positions != ENCODER_POSITIONS_NONE;
}

/* The table of positions, and what the types of tokens add: GRAPH_NO_VALUE where it is nothing. */
static graph_value_index type_term(packer *p, graph_value_index *positions)
{
    const encoder *e = p->e;
    if (e->position_table != NULL)
        *positions = packer_constant(p, e->position_table);
    if (e->token_type_table == NULL)
        return GRAPH_NO_VALUE;
    if (has_two_types(p))
        return second_type(p, positions);
    graph_value_index types = packer_constant(p, e->token_type_table);
    if (p->types != GRAPH_NO_VALUE)
        return gather_tokens(p, types, p->types);
    const int64_t zero = 0; /* the type of all tokens where no input says it */
    return graph_gather(p->g, types, graph_add_constant_i64(p->g, NULL, 0, NULL, &zero), 0);
}

static graph_value_index embeddings(packer *p, graph_value_index same)
{
    const encoder *e = p->e;
    graph_value_index x = gather_tokens(p, packer_constant(p, e->word_table), p->ids);
    graph_value_index table = GRAPH_NO_VALUE, types = type_term(p, &table);
    if (types != GRAPH_NO_VALUE)
        x = graph_binary(p->g, GRAPH_OP_ADD, x, types);
    if (e->positions == ENCODER_POSITIONS_FROM_IDS) {
        graph_value_index index = counted_tokens(p, same);
        x = graph_binary(p->g, GRAPH_OP_ADD, x, gather_tokens(p, table, index));
    } else if (e->positions == ENCODER_POSITIONS_COUNTED) {
        int32_t *offset = arena_allocate(&p->g->memory, sizeof *offset);
        if (offset == NULL)
            return graph_lack_memory(p->g);
        *offset = (int32_t)e->position_offset;
        const tensor t = {.dtype = DTYPE_I32, .data = offset};
        graph_value_index index =
            graph_binary(p->g, GRAPH_OP_ADD, p->positions, packer_constant(p, &t));
        x = graph_binary(p->g, GRAPH_OP_ADD, x, gather_tokens(p, table, index));
    }
    const int64_t width = e->word_table->dims[1];
    x = packer_tokens(p, x, width);
    x = norm(p, &e->embedding_norm, p->form.are_embedding_sums_products, x);
    if (e->embedding_projection.weight == NULL)
        return x;
    x = graph_reshape(p->g, x, 2, (int64_t[]){p->tokens, width});
    return packer_tokens(p, packer_linear(p, &e->embedding_projection, x), e->hidden);
}

/* --- layers; x is as packer_tokens() has it --- */

static graph_value_index layer(packer *p, const encoder_layer *l, graph_value_index x)
{
    x = graph_binary(p->g, GRAPH_OP_ADD, packer_attention(p, l, x), x);
    x = norm(p, &l->attention_norm, false, x);
    graph_value_index inner =
        encoder_activate(p->g, l->activation, packer_layer_linear(p, l, ENCODER_UP, x));
    x = graph_binary(p->g, GRAPH_OP_ADD, packer_layer_linear(p, l, ENCODER_DOWN, inner), x);
    return norm(p, &l->output_norm, false, x);
}

/* --- the whole --- */

static graph_value_index add_own_input(packer *p, const char *name, int rank, int64_t first,
                                       int64_t second)
{
    const graph_dim dims[] = {graph_dim_constant(first), graph_dim_constant(second)};
    return graph_add_input(p->g, name, DTYPE_I32, rank, dims);
}

/* i32 [1, length]: 0, 1, 2 ... */
static graph_value_index counted_positions(packer *p)
{
    int32_t *numbers = arena_allocate(&p->g->memory, (size_t)p->size.length * sizeof *numbers);
    if (numbers == NULL)
        return graph_lack_memory(p->g);
    for (int64_t i = 0; i < p->size.length; i++)
        numbers[i] = (int32_t)i;
    const tensor t = {.dtype = DTYPE_I32, .rank = 2, .dims = {1, p->size.length}, .data = numbers};
    return packer_constant(p, &t);
}

static void add_inputs(packer *p, const graph *source)
{
    const encoder *e = p->e;
    const graph_dim dims[] = {graph_dim_constant(p->size.rows), graph_dim_constant(p->size.length)};
    p->types = p->mask = GRAPH_NO_VALUE;
    for (int i = 0; i < source->input_count; i++) {
        const graph_value *v = &source->values[source->inputs[i]];
        graph_value_index input = graph_add_input(p->g, v->name, v->dtype, 2, dims);
        if (i == e->ids_input)
            p->ids = input;
        if (i == e->token_type_input)
            p->types = input;
        if (i == e->mask_input)
            p->mask = input;
    }
    if (p->is_padded) {
        p->positions = counted_positions(p);
        p->segments = p->starts = GRAPH_NO_VALUE;
        return;
    }
    p->positions = add_own_input(p, "packed_positions", 2, p->size.rows, p->size.length);
    p->segments = add_own_input(p, "packed_segments", 2, p->size.rows, p->size.length);
    p->starts = add_own_input(p, "packed_starts", 1, p->size.sequences, 0);
}

static void build(packer *p, const graph *source)
{
    const encoder *e = p->e;
    add_inputs(p, source);
    graph_value_index same = p->is_padded ? GRAPH_NO_VALUE : same_sequence(p);
    make_score_bias(p, same);
    if (p->form.block_width > 0)
        packer_make_columns(p);
    graph_value_index x = embeddings(p, same);
    for (int i = 0; i < e->layer_count; i++)
        x = layer(p, &e->layers[i], x);
    x = graph_reshape(p->g, x, 2, (int64_t[]){p->tokens, e->hidden});
    for (int i = 0; i < e->output_count; i++)
        packer_add_output(p, &e->outputs[i], x, source->values[source->outputs[i]].name);
    packer_end_trial(p);
}

bool encoder_clips_scores(const encoder *e, const encoder_form *form)
{
    bool is_late = packer_can_block(e, form->block_width) ||
                   (form->is_softmax_late && !form->are_heads_transposed);
    return form->are_scores_clipped && is_late;
}

static void destroy_built(void *built)
{
    graph_destroy(built);
}

static status make(const encoder *e, const graph *g, const graph_budget *budget,
                   graph_evaluate_fn evaluate, encoder_packing packing, bool is_padded,
                   const encoder_form *form, graph **out)
{
    assert(packing.rows > 0 && packing.length > 0 && packing.sequences > 0);
    status s = encoder_can_pack(e, g);
    if (s)
        return s;
    packer p = {.g = graph_create(is_padded ? "padded" : "packed"),
                .e = e,
                .form = *form,
                .is_padded = is_padded,
                .size = packing,
                .tokens = packing.rows * packing.length,
                .score_most = GRAPH_NO_VALUE,
                .members = GRAPH_NO_VALUE};
    if (p.g == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the graph of an encoder");
    p.form.are_scores_clipped = encoder_clips_scores(e, form);
    if (!packer_can_block(e, p.form.block_width))
        p.form.block_width = 0;
    build(&p, g);
    tensor *inputs = calloc((size_t)p.g->input_count + 1, sizeof *inputs);
    s = graph_check_memory(p.g);
    if (s == STATUS_OK)
        s = inputs == NULL
                ? status_fail(STATUS_OUT_OF_MEMORY, "no memory for the graph of an encoder")
                : graph_bind(p.g, 1, 1, inputs);
    if (s == STATUS_OK)
        s = graph_specialise(p.g, &(graph_binding){inputs, budget}, evaluate, out);
    free(inputs);
    if (s) {
        graph_destroy(p.g);
        return s;
    }
    /* The result shares the constants of p.g: it is destroyed with the result. */
    assert((*out)->release == NULL);
    (*out)->release = destroy_built;
    (*out)->release_context = p.g;
    return STATUS_OK;
}

status encoder_pack(const encoder *e, const graph *g, const graph_budget *budget,
                    graph_evaluate_fn evaluate, encoder_packing packing, const encoder_form *form,
                    graph **out)
{
    return make(e, g, budget, evaluate, packing, false, form, out);
}

status encoder_pad(const encoder *e, const graph *g, const graph_budget *budget,
                   graph_evaluate_fn evaluate, int64_t rows, int64_t length,
                   const encoder_form *form, graph **out)
{
    encoder_packing one_each = {rows, length, rows};
    return make(e, g, budget, evaluate, one_each, true, form, out);
}

double encoder_flops(const encoder *e, int64_t rows, int64_t length)
{
    double of_layers = 4.0 * (double)(e->hidden * e->hidden) +
                       2.0 * (double)(e->hidden * e->intermediate) +
                       2.0 * (double)(e->hidden * length);
    double of_token = (double)e->layer_count * of_layers;
    if (e->embedding_projection.weight != NULL)
        of_token += (double)(e->word_table->dims[1] * e->hidden);
    return 2 * (double)(rows * length) * of_token;
}

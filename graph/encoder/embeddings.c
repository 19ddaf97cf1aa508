#include <math.h>
#include <string.h>

#include "graph/encoder/internal.h"

/* Embeddings are a normalised sum of terms: table rows gathered by an input or by positions, and
 * constants. Positions that count the tokens have been folded into one constant. */
#define TERMS_MAX 8

typedef struct term_list {
    graph_value_index terms[TERMS_MAX];
    int count;
} term_list;

/* False: more than TERMS_MAX terms, or sums nested deeper than that. */
static bool collect_terms(const encoder_recogniser *r, graph_value_index v, int depth,
                          term_list *list)
{
    v = match_skip_casts(&r->m, v);
    const graph_node *n = match_producer(&r->m, v);
    if (n != NULL && n->op == GRAPH_OP_ADD && depth < TERMS_MAX)
        return collect_terms(r, n->inputs[0], depth + 1, list) &&
               collect_terms(r, n->inputs[1], depth + 1, list);
    if (list->count == TERMS_MAX || (n != NULL && n->op == GRAPH_OP_ADD))
        return false;
    list->terms[list->count++] = v;
    return true;
}

/* The graph input that `v` is, or -1. Integer casts keep token ids as they are. */
static int find_input(const encoder_recogniser *r, graph_value_index v)
{
    const graph *g = r->m.g;
    while (g->values[v].producer >= 0) {
        const graph_node *n = &g->nodes[g->values[v].producer];
        if (n->op != GRAPH_OP_IDENTITY &&
            !(n->op == GRAPH_OP_CAST && dtype_is_integer(g->values[v].dtype) &&
              dtype_bytes(g->values[v].dtype) >= 4))
            return -1;
        v = n->inputs[0];
    }
    for (int i = 0; i < g->input_count; i++)
        if (g->inputs[i] == v)
            return i;
    return -1;
}

/* Whether `v` gathers rows of a float table; the indices are computed or an input. */
static bool find_lookup(const encoder_recogniser *r, graph_value_index v, const tensor **table,
                        graph_value_index *indices)
{
    const graph_node *n = match_producer(&r->m, v);
    if (n == NULL || n->op != GRAPH_OP_GATHER || graph_attribute_int(n, "axis", 0) != 0)
        return false;
    const tensor *t = match_constant(&r->m, n->inputs[0]);
    if (t == NULL || t->rank != 2 || !dtype_is_float(t->dtype))
        return false;
    *table = t;
    *indices = n->inputs[1];
    return true;
}

/* The rows of a constant term: [length, hidden], or one row for all tokens. */
typedef struct position_rows {
    int64_t count, hidden; /* count: 1 or length */
    const tensor *values;
} position_rows;

/* A batch dim may come before. False: its rows differ, or the shape is another one. */
static bool read_rows(const encoder_recogniser *r, const tensor *t, int64_t hidden,
                      position_rows *out)
{
    if (t->rank < 1 || t->dims[t->rank - 1] != hidden || !dtype_is_float(t->dtype))
        return false;
    int64_t rows = tensor_count(t) / hidden;
    int64_t positions = t->rank >= 2 ? t->dims[t->rank - 2] : 1;
    if ((positions != 1 && positions != r->length) || rows % positions != 0)
        return false;
    size_t bytes = (size_t)(positions * hidden) * dtype_bytes(t->dtype);
    for (int64_t b = 1; b < rows / positions; b++)
        if (memcmp(t->data, (const char *)t->data + (size_t)b * bytes, bytes) != 0)
            return false;
    /* The same row for each token: it does not depend on positions. */
    bool is_one = true;
    for (int64_t i = 1; i < positions; i++)
        is_one &= memcmp(t->data, (const char *)t->data + (size_t)i * bytes / (size_t)positions,
                         bytes / (size_t)positions) == 0;
    *out = (position_rows){.count = is_one ? 1 : positions, .hidden = hidden, .values = t};
    return true;
}

/* The table of the source that holds these rows one after the other; *offset: the first of them. */
static const tensor *find_table(const encoder_recogniser *r, const position_rows *rows,
                                int64_t *offset)
{
    size_t row_bytes = (size_t)rows->hidden * dtype_bytes(rows->values->dtype);
    for (int32_t v = 0; v < r->source->value_count; v++) {
        const tensor *t = r->source->values[v].constant;
        if (t == NULL || t->dtype != rows->values->dtype || t->rank < 2 ||
            t->dims[t->rank - 1] != rows->hidden || t->data == NULL ||
            tensor_count(t) != t->dims[t->rank - 1] * t->dims[t->rank - 2])
            continue;
        int64_t last = t->dims[t->rank - 2] - rows->count;
        for (int64_t at = 0; at <= last; at++)
            if (memcmp((const char *)t->data + (size_t)at * row_bytes, rows->values->data,
                       (size_t)rows->count * row_bytes) == 0) {
                *offset = at;
                return t;
            }
    }
    return NULL;
}

/* Adds one row to each row of a table: the constant token type of a model without that input. */
static status add_row(encoder_recogniser *r, const tensor **table, const tensor *row)
{
    tensor *sum = arena_allocate(&r->e->memory, sizeof *sum);
    if (sum == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for an encoder");
    status s = tensor_allocate(sum, &r->e->memory, DTYPE_F32, 2, (*table)->dims);
    if (s)
        return s;
    int64_t hidden = sum->dims[1];
    for (int64_t i = 0; i < tensor_count(sum); i++)
        ((float *)sum->data)[i] =
            ((const float *)(*table)->data)[i] + (float)tensor_get_number(row, i % hidden);
    *table = sum;
    return STATUS_OK;
}

/* A token id for experiments: a random one, or an integer constant of the graph, which may compare
 * ids with it. */
static int64_t random_id(encoder_recogniser *r, graph_value_index indices)
{
    const graph *g = r->m.g;
    int32_t near = (int32_t)(fabs(recogniser_draw_number(r)) * (double)g->value_count);
    for (int32_t v = near; recogniser_draw_number(r) > 0 && v < g->value_count && v < indices;
         v++) {
        double scalar;
        if (g->values[v].constant != NULL && dtype_is_integer(g->values[v].constant->dtype) &&
            match_scalar(&r->m, v, &scalar) && scalar >= 0 && scalar < 1e6)
            return (int64_t)scalar;
    }
    return (int64_t)(fabs(recogniser_draw_number(r)) * (recogniser_draw_number(r) > 0 ? 8 : 60000));
}

/* Whether `indices` are RoBERTa's positions, on random ids, some of which are `pad`. */
static bool has_roberta_positions(encoder_recogniser *r, graph_value_index indices,
                                  graph_value_index ids, int64_t pad)
{
    bool is_so = true;
    for (int round = 0; round < 8 && is_so; round++) {
        arena memory = {0};
        tensor given, made;
        is_so = recogniser_draw_mask(r, &memory, ids, false, &given) == STATUS_OK;
        for (int64_t i = 0; is_so && i < tensor_count(&given); i++) {
            int64_t token = random_id(r, indices);
            token = token == pad ? token + 1 : token;
            bool is_pad = tensor_get_integer(&given, i) == 0;
            tensor_set_number(&given, i, (double)(is_pad ? pad : token));
        }
        is_so = is_so &&
                match_experiment(&r->m, &memory, 1, &ids, &given, indices, &made) == STATUS_OK &&
                tensor_count(&made) == tensor_count(&given);
        for (int64_t i = 0, count = 0; is_so && i < tensor_count(&given); i++) {
            count = i % r->length == 0 ? 0 : count;
            bool is_token = tensor_get_integer(&given, i) != pad;
            count += is_token;
            is_so = tensor_get_integer(&made, i) == (is_token ? pad + count : pad);
        }
        arena_dispose(&memory);
    }
    return is_so;
}

/* Positions computed from the ids. The id of padding is one of the constants that the graph
 * compares or subtracts. */
static status find_positions_from_ids(encoder_recogniser *r, graph_value_index indices,
                                      graph_value_index ids, graph_value_index term)
{
    const graph *g = r->m.g;
    for (int32_t i = 0; i <= g->values[indices].producer; i++) {
        const graph_node *n = &g->nodes[i];
        const tensor *t;
        graph_value_index other;
        if ((n->op != GRAPH_OP_EQUAL && n->op != GRAPH_OP_SUB && n->op != GRAPH_OP_GREATER) ||
            !match_one_constant(&r->m, n, &t, &other) || tensor_count(t) != 1)
            continue;
        int64_t pad = (int64_t)tensor_get_number(t, 0);
        if (!has_roberta_positions(r, indices, ids, pad))
            continue;
        r->e->positions = ENCODER_POSITIONS_FROM_IDS;
        r->e->pad_id = pad;
        r->e->position_offset = pad + 1;
        return STATUS_OK;
    }
    return recogniser_reject(r, term,
                             "positions are computed from the token ids in an unknown way");
}

/* The terms that have been identified. */
typedef struct embedding_sum {
    graph_value_index word_term;
    const tensor *words, *types, *positions, *extra; /* extra: one row for all tokens */
} embedding_sum;

static status add_lookup(encoder_recogniser *r, graph_value_index term, const tensor *table,
                         graph_value_index indices, embedding_sum *sum)
{
    encoder *e = r->e;
    int input = find_input(r, indices);
    if (input >= 0 && sum->words == NULL) {
        sum->words = table;
        sum->word_term = term;
        e->ids_input = input;
        return STATUS_OK;
    }
    if (input >= 0 && sum->types == NULL && input != e->ids_input) {
        /* The smaller table is that of token types. */
        sum->types = table;
        e->token_type_input = input;
        if (sum->types->dims[0] > sum->words->dims[0]) {
            sum->types = sum->words;
            sum->words = table;
            e->token_type_input = e->ids_input;
            e->ids_input = input;
        }
        return STATUS_OK;
    }
    return recogniser_reject(r, term, "an input selects rows of a third table");
}

static status add_constant(encoder_recogniser *r, graph_value_index term, const tensor *t,
                           int64_t hidden, embedding_sum *sum)
{
    position_rows rows;
    if (!read_rows(r, t, hidden, &rows))
        return recogniser_reject(
            r, term, "the embeddings add a constant that differs between rows of the batch");
    if (rows.count == 1 && r->length > 1) {
        if (sum->extra != NULL)
            return recogniser_reject(r, term, "the embeddings add two constant vectors");
        sum->extra = t;
        return STATUS_OK;
    }
    if (sum->positions != NULL)
        return recogniser_reject(r, term, "the embeddings add positions twice");
    sum->positions = find_table(r, &rows, &r->e->position_offset);
    if (sum->positions == NULL)
        return recogniser_reject(r, term,
                                 "position embeddings are not consecutive rows of a table");
    r->e->positions = ENCODER_POSITIONS_COUNTED;
    r->counted_table = sum->positions;
    r->counted_term = graph_find_value(r->source, r->m.g->values[term].name);
    return STATUS_OK;
}

/* Whether computed indices are the same row whatever the ids are: constant token types, written in
 * a complicated way. */
static bool is_one_row(encoder_recogniser *r, graph_value_index indices, graph_value_index ids,
                       arena *memory, int64_t *row)
{
    bool is_one = true;
    for (int round = 0; round < 8 && is_one; round++) {
        tensor given, made;
        is_one = recogniser_draw_mask(r, memory, ids, false, &given) == STATUS_OK;
        for (int64_t i = 0; is_one && i < tensor_count(&given); i++)
            tensor_set_number(&given, i, (double)random_id(r, indices));
        is_one = is_one &&
                 match_experiment(&r->m, memory, 1, &ids, &given, indices, &made) == STATUS_OK &&
                 tensor_count(&made) > 0;
        for (int64_t i = 0; is_one && i < tensor_count(&made); i++) {
            int64_t index = tensor_get_integer(&made, i);
            *row = round == 0 && i == 0 ? index : *row;
            is_one = index == *row;
        }
    }
    return is_one;
}

/* Row `row` of a table as a tensor; negative rows count from the end, as in Gather. NULL: there is
 * no such row, or no memory. */
static const tensor *make_row(encoder_recogniser *r, const tensor *table, int64_t row)
{
    row += row < 0 ? table->dims[0] : 0;
    tensor *t = arena_allocate(&r->e->memory, sizeof *t);
    if (row < 0 || row >= table->dims[0] || t == NULL)
        return NULL;
    size_t row_bytes = (size_t)table->dims[1] * dtype_bytes(table->dtype);
    *t = (tensor){.dtype = table->dtype, .rank = 1, .dims = {table->dims[1]}};
    t->data = (char *)table->data + (size_t)row * row_bytes;
    return t;
}

/* Identifies a term that is neither a plain constant nor selected by an input directly. */
static status add_computed(encoder_recogniser *r, graph_value_index term, int64_t hidden,
                           arena *memory, embedding_sum *sum)
{
    const graph *g = r->m.g;
    const tensor *table;
    graph_value_index indices, ids = g->inputs[r->e->ids_input];
    bool *needed = arena_allocate_zeroed(memory, (size_t)g->value_count + 1, sizeof needed[0]);
    if (needed == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for an encoder");
    uint32_t inputs = match_cone(&r->m, term, 0, NULL, needed);
    tensor made;
    status s;
    if (inputs == 0) { /* a constant, not folded because it is large */
        s = match_experiment(&r->m, memory, 0, NULL, NULL, term, &made);
        tensor *kept = arena_allocate(&r->e->memory, sizeof *kept);
        if (s || kept == NULL)
            return recogniser_reject(r, term,
                                     "the embeddings add a constant that cannot be computed");
        *kept = made;
        return add_constant(r, term, kept, hidden, sum);
    }
    if (!find_lookup(r, term, &table, &indices))
        return recogniser_reject(r, term, "the embeddings add a term that is no row of a table");
    if (inputs >> r->e->ids_input != 1 || r->e->ids_input >= 31)
        return recogniser_reject(r, term,
                                 "an embedding is selected by something other than the token ids");
    int64_t row = 0;
    if (is_one_row(r, indices, ids, memory, &row)) {
        const tensor *t = make_row(r, table, row);
        return t != NULL ? add_constant(r, term, t, hidden, sum)
                         : recogniser_reject(r, term, "an embedding index is outside its table");
    }
    if (sum->positions != NULL)
        return recogniser_reject(
            r, term,
            "besides positions, another table is read by indices computed from the token ids");
    sum->positions = table;
    return find_positions_from_ids(r, indices, ids, term);
}

static status keep_sum(encoder_recogniser *r, const embedding_sum *sum, int64_t width)
{
    encoder *e = r->e;
    if (sum->words->dims[1] != width)
        return recogniser_reject(r, sum->word_term,
                                 "the word embeddings are not as wide as the layers");
    status s = recogniser_keep_tensor(r, sum->words, 2, &e->word_table);
    if (s == STATUS_OK && sum->types != NULL)
        s = recogniser_keep_tensor(r, sum->types, 2, &e->token_type_table);
    if (s == STATUS_OK && sum->positions != NULL)
        s = recogniser_keep_tensor(r, sum->positions, 2, &e->position_table);
    if (s == STATUS_OK && sum->extra != NULL)
        s = add_row(r, sum->positions != NULL ? &e->position_table : &e->word_table, sum->extra);
    return s;
}

static status read_terms(encoder_recogniser *r, const term_list *list, int64_t hidden,
                         arena *memory)
{
    embedding_sum sum = {.words = NULL};
    bool is_added[TERMS_MAX] = {false};
    const tensor *table;
    graph_value_index indices;
    status s = STATUS_OK;
    for (int i = 0; s == STATUS_OK && i < list->count; i++) {
        is_added[i] =
            find_lookup(r, list->terms[i], &table, &indices) && find_input(r, indices) >= 0;
        if (is_added[i])
            s = add_lookup(r, list->terms[i], table, indices, &sum);
    }
    if (s == STATUS_OK && sum.words == NULL)
        s = recogniser_reject(r, list->terms[0], "no word embeddings that an input selects");
    for (int i = 0; s == STATUS_OK && i < list->count; i++) {
        const tensor *t = match_constant(&r->m, list->terms[i]);
        if (!is_added[i] && t != NULL)
            s = add_constant(r, list->terms[i], t, hidden, &sum);
        else if (!is_added[i])
            s = add_computed(r, list->terms[i], hidden, memory, &sum);
    }
    return s ? s : keep_sum(r, &sum, hidden);
}

status recogniser_read_embeddings(encoder_recogniser *r, graph_value_index x)
{
    encoder *e = r->e;
    graph_value_index sum = x;
    term_list list = {.count = 0};
    arena memory = {0};
    found_linear projection;
    if (recogniser_find_linear(r, x, &projection)) {
        status kept = recogniser_keep_linear(r, &projection, found_linear_columns(&projection),
                                             NULL, NULL, 1, &e->embedding_projection);
        if (kept)
            return kept;
        sum = x = projection.x;
    }
    if (!recogniser_find_norm(r, x, &sum, &e->embedding_norm))
        e->embedding_norm = (encoder_norm){.scale = NULL};
    status s = collect_terms(r, sum, 0, &list)
                   ? read_terms(r, &list, match_dim(&r->m, x, -1), &memory)
                   : recogniser_reject(r, x, "the embeddings have too many terms");
    arena_dispose(&memory);
    return s;
}

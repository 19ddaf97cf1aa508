#include <math.h>
#include <string.h>

#include "graph/encoder/internal.h"

/* Embeddings are a sum of terms under a normalisation: rows of tables gathered by an input or by
 * positions, and constants (positions that were only counted have been folded into one). */
#define TERMS_MAX 8

typedef struct term_list {
    graph_value_index terms[TERMS_MAX];
    int count;
} term_list;

/* False: more terms than we know, or sums nested as deep. */
static bool collect_terms(const look *l, graph_value_index v, int depth, term_list *list)
{
    v = match_skip_casts(&l->m, v);
    const graph_node *n = match_producer(&l->m, v);
    if (n != NULL && n->op == GRAPH_OP_ADD && depth < TERMS_MAX)
        return collect_terms(l, n->inputs[0], depth + 1, list) &&
               collect_terms(l, n->inputs[1], depth + 1, list);
    if (list->count == TERMS_MAX || (n != NULL && n->op == GRAPH_OP_ADD))
        return false;
    list->terms[list->count++] = v;
    return true;
}

/* The graph input that `v` is, or -1: through integer casts, which keep token ids as they are. */
static int find_input(const look *l, graph_value_index v)
{
    const graph *g = l->m.g;
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

/* A gather of table rows by computed indices. */
static bool find_lookup(const look *l, graph_value_index v, const tensor **table,
                        graph_value_index *indices)
{
    const graph_node *n = match_producer(&l->m, v);
    if (n == NULL || n->op != GRAPH_OP_GATHER || graph_attribute_int(n, "axis", 0) != 0)
        return false;
    const tensor *t = match_constant(&l->m, n->inputs[0]);
    if (t == NULL || t->rank != 2 || !dtype_is_float(t->dtype))
        return false;
    *table = t;
    *indices = n->inputs[1];
    return true;
}

/* `row` of the constant term, which may be [length, hidden] or one row for all positions, with
 * any batch in front. False: rows of the batch differ. */
typedef struct position_rows {
    int64_t count, hidden; /* count: 1 or length */
    const tensor *values;
} position_rows;

static bool read_rows(const look *l, const tensor *t, int64_t hidden, position_rows *out)
{
    if (t->rank < 1 || t->dims[t->rank - 1] != hidden || !dtype_is_float(t->dtype))
        return false;
    int64_t rows = tensor_count(t) / hidden;
    int64_t positions = t->rank >= 2 ? t->dims[t->rank - 2] : 1;
    if ((positions != 1 && positions != l->length) || rows % positions != 0)
        return false;
    size_t bytes = (size_t)(positions * hidden) * dtype_bytes(t->dtype);
    for (int64_t b = 1; b < rows / positions; b++)
        if (memcmp(t->data, (const char *)t->data + (size_t)b * bytes, bytes) != 0)
            return false;
    /* The same row for each position: no positions, then. */
    bool is_one = true;
    for (int64_t i = 1; i < positions; i++)
        is_one &= memcmp(t->data, (const char *)t->data + (size_t)i * bytes / (size_t)positions,
                         bytes / (size_t)positions) == 0;
    *out = (position_rows){.count = is_one ? 1 : positions, .hidden = hidden, .values = t};
    return true;
}

/* The table of the source that holds these rows one after the other, and where. */
static const tensor *find_table(const look *l, const position_rows *rows, int64_t *offset)
{
    size_t row_bytes = (size_t)rows->hidden * dtype_bytes(rows->values->dtype);
    for (int32_t v = 0; v < l->source->value_count; v++) {
        const tensor *t = l->source->values[v].constant;
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

/* Adds one row to each row of a table: token types that are no input. */
static status add_row(look *l, const tensor **table, const tensor *row)
{
    tensor *sum = arena_allocate(&l->e->memory, sizeof *sum);
    if (sum == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for an encoder");
    status s = tensor_allocate(sum, &l->e->memory, DTYPE_F32, 2, (*table)->dims);
    if (s)
        return s;
    int64_t hidden = sum->dims[1];
    for (int64_t i = 0; i < tensor_count(sum); i++)
        ((float *)sum->data)[i] =
            ((const float *)(*table)->data)[i] + (float)tensor_get_number(row, i % hidden);
    *table = sum;
    return STATUS_OK;
}

/* A token id for experiments: any, or near a number that the graph compares ids with. */
static int64_t random_id(look *l, graph_value_index indices)
{
    const graph *g = l->m.g;
    int32_t near = (int32_t)(fabs(look_random(l)) * (double)g->value_count);
    for (int32_t v = near; look_random(l) > 0 && v < g->value_count && v < indices; v++) {
        double scalar;
        if (g->values[v].constant != NULL && dtype_is_integer(g->values[v].constant->dtype) &&
            match_scalar(&l->m, v, &scalar) && scalar >= 0 && scalar < 1e6)
            return (int64_t)scalar;
    }
    return (int64_t)(fabs(look_random(l)) * (look_random(l) > 0 ? 8 : 60000));
}

/* RoBERTa's positions of random ids, some of which are `pad`. */
static bool is_numbered(look *l, graph_value_index indices, graph_value_index ids, int64_t pad)
{
    bool is_so = true;
    for (int round = 0; round < 8 && is_so; round++) {
        arena memory = {0};
        tensor given, made;
        is_so = look_random_mask(l, &memory, ids, false, &given) == STATUS_OK;
        for (int64_t i = 0; is_so && i < tensor_count(&given); i++) {
            int64_t token = random_id(l, indices);
            token = token == pad ? token + 1 : token;
            bool is_pad = tensor_get_integer(&given, i) == 0;
            tensor_set_number(&given, i, (double)(is_pad ? pad : token));
        }
        is_so = is_so &&
                match_experiment(&l->m, &memory, 1, &ids, &given, indices, &made) == STATUS_OK &&
                tensor_count(&made) == tensor_count(&given);
        for (int64_t i = 0, count = 0; is_so && i < tensor_count(&given); i++) {
            count = i % l->length == 0 ? 0 : count;
            bool is_token = tensor_get_integer(&given, i) != pad;
            count += is_token;
            is_so = tensor_get_integer(&made, i) == (is_token ? pad + count : pad);
        }
        arena_dispose(&memory);
    }
    return is_so;
}

/* Positions computed from the ids: which id is padding is found among the integers compared. */
static status find_numbering(look *l, graph_value_index indices, graph_value_index ids,
                             graph_value_index term)
{
    const graph *g = l->m.g;
    for (int32_t i = 0; i <= g->values[indices].producer; i++) {
        const graph_node *n = &g->nodes[i];
        const tensor *t;
        graph_value_index other;
        if ((n->op != GRAPH_OP_EQUAL && n->op != GRAPH_OP_SUB && n->op != GRAPH_OP_GREATER) ||
            !match_one_constant(&l->m, n, &t, &other) || tensor_count(t) != 1)
            continue;
        int64_t pad = (int64_t)tensor_get_number(t, 0);
        if (!is_numbered(l, indices, ids, pad))
            continue;
        l->e->positions = ENCODER_POSITIONS_FROM_IDS;
        l->e->pad_id = pad;
        l->e->position_offset = pad + 1;
        return STATUS_OK;
    }
    return look_refuse(l, term, "positions are computed from the ids in an unknown way");
}

/* What has been found of the sum. */
typedef struct embedding_sum {
    graph_value_index word_term;
    const tensor *words, *types, *positions, *extra; /* extra: one row for all */
} embedding_sum;

static status take_lookup(look *l, graph_value_index term, const tensor *table,
                          graph_value_index indices, embedding_sum *sum)
{
    encoder *e = l->e;
    int input = find_input(l, indices);
    if (input >= 0 && sum->words == NULL) {
        sum->words = table;
        sum->word_term = term;
        e->ids_input = input;
        return STATUS_OK;
    }
    if (input >= 0 && sum->types == NULL && input != e->ids_input) {
        /* Whichever table is the smaller is that of token types. */
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
    return look_refuse(l, term, "a third table is read by an input");
}

static status take_constant(look *l, graph_value_index term, const tensor *t, int64_t hidden,
                            embedding_sum *sum)
{
    position_rows rows;
    if (!read_rows(l, t, hidden, &rows))
        return look_refuse(l, term, "embeddings have a constant that differs from row to row");
    if (rows.count == 1 && l->length > 1) {
        if (sum->extra != NULL)
            return look_refuse(l, term, "embeddings have two constant vectors");
        sum->extra = t;
        return STATUS_OK;
    }
    if (sum->positions != NULL)
        return look_refuse(l, term, "embeddings have positions twice");
    sum->positions = find_table(l, &rows, &l->e->position_offset);
    if (sum->positions == NULL)
        return look_refuse(l, term, "position embeddings are not consecutive rows of a table");
    l->e->positions = ENCODER_POSITIONS_COUNTED;
    l->counted_table = sum->positions;
    l->counted_term = graph_find_value(l->source, l->m.g->values[term].name);
    return STATUS_OK;
}

/* Token types that are always the same, said in a complicated way: indices that follow no ids. */
static bool is_one_row(look *l, graph_value_index indices, graph_value_index ids, arena *memory,
                       int64_t *row)
{
    bool is_one = true;
    for (int round = 0; round < 8 && is_one; round++) {
        tensor given, made;
        is_one = look_random_mask(l, memory, ids, false, &given) == STATUS_OK;
        for (int64_t i = 0; is_one && i < tensor_count(&given); i++)
            tensor_set_number(&given, i, (double)random_id(l, indices));
        is_one = is_one &&
                 match_experiment(&l->m, memory, 1, &ids, &given, indices, &made) == STATUS_OK &&
                 tensor_count(&made) > 0;
        for (int64_t i = 0; is_one && i < tensor_count(&made); i++) {
            int64_t index = tensor_get_integer(&made, i);
            *row = round == 0 && i == 0 ? index : *row;
            is_one = index == *row;
        }
    }
    return is_one;
}

/* Row `row` of a table as a tensor, which may count from the end as Gather does; NULL: beyond. */
static const tensor *make_row(look *l, const tensor *table, int64_t row)
{
    row += row < 0 ? table->dims[0] : 0;
    tensor *t = arena_allocate(&l->e->memory, sizeof *t);
    if (row < 0 || row >= table->dims[0] || t == NULL)
        return NULL;
    size_t row_bytes = (size_t)table->dims[1] * dtype_bytes(table->dtype);
    *t = (tensor){.dtype = table->dtype, .rank = 1, .dims = {table->dims[1]}};
    t->data = (char *)table->data + (size_t)row * row_bytes;
    return t;
}

/* A term that is neither a plain constant nor read by an input directly: computed indices. */
static status take_computed(look *l, graph_value_index term, int64_t hidden, arena *memory,
                            embedding_sum *sum)
{
    const graph *g = l->m.g;
    const tensor *table;
    graph_value_index indices, ids = g->inputs[l->e->ids_input];
    bool *needed = arena_allocate_zeroed(memory, (size_t)g->value_count + 1, sizeof needed[0]);
    if (needed == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for an encoder");
    uint32_t inputs = match_cone(&l->m, term, 0, NULL, needed);
    tensor made;
    status s;
    if (inputs == 0) { /* not folded because it is large */
        s = match_experiment(&l->m, memory, 0, NULL, NULL, term, &made);
        tensor *kept = arena_allocate(&l->e->memory, sizeof *kept);
        if (s || kept == NULL)
            return look_refuse(l, term, "embeddings have a constant that cannot be computed");
        *kept = made;
        return take_constant(l, term, kept, hidden, sum);
    }
    if (!find_lookup(l, term, &table, &indices))
        return look_refuse(l, term, "embeddings have a term that is no row of a table");
    if (inputs >> l->e->ids_input != 1 || l->e->ids_input >= 31)
        return look_refuse(l, term, "an embedding is chosen by something other than the ids");
    int64_t row = 0;
    if (is_one_row(l, indices, ids, memory, &row)) {
        const tensor *t = make_row(l, table, row);
        return t != NULL ? take_constant(l, term, t, hidden, sum)
                         : look_refuse(l, term, "an embedding lies outside its table");
    }
    if (sum->positions != NULL)
        return look_refuse(
            l, term, "besides positions, another table is read by numbers computed from the ids");
    sum->positions = table;
    return find_numbering(l, indices, ids, term);
}

static status keep_sum(look *l, const embedding_sum *sum, int64_t width)
{
    encoder *e = l->e;
    if (sum->words->dims[1] != width)
        return look_refuse(l, sum->word_term, "word embeddings are not as wide as the layers");
    status s = look_keep_tensor(l, sum->words, 2, &e->word_table);
    if (s == STATUS_OK && sum->types != NULL)
        s = look_keep_tensor(l, sum->types, 2, &e->token_type_table);
    if (s == STATUS_OK && sum->positions != NULL)
        s = look_keep_tensor(l, sum->positions, 2, &e->position_table);
    if (s == STATUS_OK && sum->extra != NULL)
        s = add_row(l, sum->positions != NULL ? &e->position_table : &e->word_table, sum->extra);
    return s;
}

static status read_terms(look *l, const term_list *list, int64_t hidden, arena *memory)
{
    embedding_sum sum = {.words = NULL};
    bool is_taken[TERMS_MAX] = {false};
    const tensor *table;
    graph_value_index indices;
    status s = STATUS_OK;
    for (int i = 0; s == STATUS_OK && i < list->count; i++) {
        is_taken[i] =
            find_lookup(l, list->terms[i], &table, &indices) && find_input(l, indices) >= 0;
        if (is_taken[i])
            s = take_lookup(l, list->terms[i], table, indices, &sum);
    }
    if (s == STATUS_OK && sum.words == NULL)
        s = look_refuse(l, list->terms[0], "no word embeddings that are read by an input");
    for (int i = 0; s == STATUS_OK && i < list->count; i++) {
        const tensor *t = match_constant(&l->m, list->terms[i]);
        if (!is_taken[i] && t != NULL)
            s = take_constant(l, list->terms[i], t, hidden, &sum);
        else if (!is_taken[i])
            s = take_computed(l, list->terms[i], hidden, memory, &sum);
    }
    return s ? s : keep_sum(l, &sum, hidden);
}

status look_embeddings(look *l, graph_value_index x)
{
    encoder *e = l->e;
    graph_value_index sum = x;
    term_list list = {.count = 0};
    arena memory = {0};
    found_linear projection;
    if (look_find_linear(l, x, &projection)) {
        status kept = look_keep_linear(l, &projection, look_linear_columns(&projection), NULL, NULL,
                                       1, &e->embedding_projection);
        if (kept)
            return kept;
        sum = x = projection.x;
    }
    if (!look_find_norm(l, x, &sum, &e->embedding_norm))
        e->embedding_norm = (encoder_norm){.scale = NULL};
    status s = collect_terms(l, sum, 0, &list)
                   ? read_terms(l, &list, match_dim(&l->m, x, -1), &memory)
                   : look_refuse(l, x, "embeddings have too many terms");
    arena_dispose(&memory);
    return s;
}

#include <math.h>
#include <stdlib.h>

#include "graph/encoder_internal.h"

/* Attention is found by its two products: probabilities x values and queries x keys. How heads are
 * split, transposed and scaled is read off a trace of elements; what lies between the scores and
 * the probabilities (scale, masks, biases, softmax, guards against NaN) off an experiment. */
typedef struct attention {
    graph_value_index mixed, probabilities, values; /* mixed = probabilities x values */
    graph_value_index scores, queries, keys;        /* scores = queries x keys */
    int64_t heads, size;
} attention;

/* The last product of two computed values that `v` is made from. */
static graph_value_index find_scores(const look *l, graph_value_index v, arena *memory)
{
    const graph *g = l->m.g;
    bool *needed = arena_allocate_zeroed(memory, (size_t)g->value_count + 1, sizeof needed[0]);
    if (needed == NULL)
        return GRAPH_NO_VALUE;
    match_cone(&l->m, v, 0, NULL, needed);
    for (int32_t i = g->values[v].producer; i >= 0; i--) {
        const graph_node *n = &g->nodes[i];
        if (n->op == GRAPH_OP_MATMUL && needed[n->outputs[0]] && l->m.is_hidden[n->inputs[0]] &&
            l->m.is_hidden[n->inputs[1]])
            return n->outputs[0];
    }
    return GRAPH_NO_VALUE;
}

/* Finds both products; sizes must fit together. */
static status find_products(look *l, graph_value_index y, arena *memory, attention *a,
                            match_trace *mixed)
{
    const match *m = &l->m;
    status s = match_trace_back(m, memory, y, mixed);
    if (s)
        return s;
    const graph_node *n = match_producer(m, mixed->base);
    if (n == NULL || n->op != GRAPH_OP_MATMUL || !m->is_hidden[n->inputs[0]] ||
        !m->is_hidden[n->inputs[1]])
        return look_refuse(l, mixed->base,
                           "expected attention (probabilities x values) before a dense layer with "
                           "a residual");
    a->mixed = mixed->base;
    a->probabilities = n->inputs[0];
    a->values = n->inputs[1];
    a->scores = find_scores(l, a->probabilities, memory);
    if (a->scores == GRAPH_NO_VALUE)
        return look_refuse(l, a->mixed, "found no product of queries and keys");
    n = match_producer(m, a->scores);
    a->queries = n->inputs[0];
    a->keys = n->inputs[1];
    int64_t rows = l->batch * l->length;
    a->size = match_dim(m, a->mixed, -1);
    if (match_dim(m, a->scores, -1) != l->length || match_dim(m, a->scores, -2) != l->length ||
        match_dim(m, a->mixed, -2) != l->length || match_dim(m, a->queries, -1) != a->size ||
        match_count(m, a->mixed) % (rows * a->size) != 0)
        return look_refuse(l, a->scores, "attention is not over the positions of a row");
    a->heads = match_count(m, a->mixed) / (rows * a->size);
    if (match_count(m, a->scores) != l->batch * a->heads * l->length * l->length ||
        match_count(m, a->probabilities) != match_count(m, a->scores))
        return look_refuse(l, a->scores, "queries and keys have not as many heads as values");
    return STATUS_OK;
}

/* Element (row b, head h, position i, number k) of an operand that is laid out
 * [rows, heads, length, size], or with the last two swapped. */
static int64_t element_of(const look *l, const attention *a, bool is_swapped, int64_t b, int64_t h,
                          int64_t i, int64_t k)
{
    int64_t at = b * a->heads + h;
    return is_swapped ? (at * a->size + k) * l->length + i : (at * l->length + i) * a->size + k;
}

/* Which column of a dense layer each number of each head is, and that it is the same one for all
 * positions: columns[heads * size]. */
static status read_columns(const look *l, const attention *a, graph_value_index operand,
                           const match_trace *t, bool is_swapped, int64_t columns_all,
                           int64_t *columns)
{
    if (t->count != l->batch * a->heads * l->length * a->size)
        return look_refuse(l, operand, "heads are not of equal size");
    for (int64_t b = 0; b < l->batch; b++)
        for (int64_t h = 0; h < a->heads; h++)
            for (int64_t i = 0; i < l->length; i++)
                for (int64_t k = 0; k < a->size; k++) {
                    int64_t from = t->map[element_of(l, a, is_swapped, b, h, i, k)];
                    int64_t column = from % columns_all;
                    if (b == 0 && i == 0)
                        columns[h * a->size + k] = column;
                    if (from / columns_all != b * l->length + i ||
                        columns[h * a->size + k] != column)
                        return look_refuse(l, operand,
                                           "heads are not split from each position's own vector");
                }
    return STATUS_OK;
}

static status keep_operand(look *l, const attention *a, graph_value_index operand, bool is_swapped,
                           double *scale, graph_value_index *x, encoder_linear *out)
{
    arena memory = {0};
    match_trace t;
    found_linear f;
    status s = match_trace_back(&l->m, &memory, operand, &t);
    if (s)
        goto done;
    if (!look_find_linear(l, t.base, &f)) {
        s = look_refuse(l, t.base, "expected the dense layer of queries, keys or values");
        goto done;
    }
    int64_t *columns =
        arena_allocate_zeroed(&memory, (size_t)(a->heads * a->size), sizeof columns[0]);
    if (columns == NULL) {
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for an encoder");
        goto done;
    }
    if ((s = read_columns(l, a, operand, &t, is_swapped, look_linear_columns(&f), columns)))
        goto done;
    graph_value_index reads = match_skip_views(&l->m, f.x);
    if (*x != GRAPH_NO_VALUE && *x != reads) {
        s = look_refuse(l, t.base, "queries, keys and values are made from different vectors");
        goto done;
    }
    *x = reads;
    double weight_scale = scale == NULL ? t.scale : 1; /* values: into the weights */
    if (scale != NULL)
        *scale *= t.scale;
    s = look_keep_linear(l, &f, a->heads * a->size, columns, NULL, weight_scale, out);
done:
    arena_dispose(&memory);
    return s;
}

/* The softmax between scores and probabilities. */
static graph_value_index find_softmax(const look *l, const attention *a, const bool *needed)
{
    const graph *g = l->m.g;
    for (int32_t i = g->values[a->probabilities].producer; i > g->values[a->scores].producer; i--) {
        const graph_node *n = &g->nodes[i];
        int64_t axis = graph_attribute_int(n, "axis", -1);
        if (n->op == GRAPH_OP_SOFTMAX && needed[n->outputs[0]] && l->m.is_hidden[n->outputs[0]] &&
            (axis == -1 || axis == g->values[n->inputs[0]].shape.rank - 1))
            return n->inputs[0];
    }
    return GRAPH_NO_VALUE;
}

/* What the experiments found out. `bias` is [heads, length, length] or NULL. */
typedef struct score_rule {
    double scale;
    const double *bias;
} score_rule;

/* Scores in, softmax's input out, all keys present: scale and bias. */
static status find_rule(look *l, const attention *a, graph_value_index before, int bound_count,
                        graph_value_index *bound, tensor *given, arena *memory, score_rule *rule)
{
    tensor zeros, randoms, at_zero, at_random;
    status s = look_random_tensor(l, memory, a->scores, 0, &zeros);
    if (s == STATUS_OK)
        s = look_random_tensor(l, memory, a->scores, 3, &randoms);
    bound[bound_count] = a->scores;
    given[bound_count] = zeros;
    if (s == STATUS_OK)
        s = match_experiment(&l->m, memory, bound_count + 1, bound, given, before, &at_zero);
    given[bound_count] = randoms;
    if (s == STATUS_OK)
        s = match_experiment(&l->m, memory, bound_count + 1, bound, given, before, &at_random);
    if (s)
        return s;
    int64_t count = tensor_count(&randoms), per_row = count / l->batch;
    double *bias = arena_allocate_zeroed(memory, (size_t)per_row, sizeof bias[0]);
    if (bias == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for an experiment");
    if (tensor_count(&at_zero) != count || tensor_count(&at_random) != count)
        return look_refuse(l, before, "softmax is not over scores");
    double products = 0, squares = 0, largest = 0;
    for (int64_t i = 0; i < count; i++) {
        double t = tensor_get_number(&randoms, i), b = tensor_get_number(&at_zero, i);
        if (i < per_row)
            bias[i] = b;
        else if (!(fabs(b - bias[i % per_row]) <= look_tolerance(l, before) * (1 + fabs(b))))
            return look_refuse(l, before, "attention has a bias that differs from row to row");
        products += (tensor_get_number(&at_random, i) - b) * t;
        squares += t * t;
        largest = fmax(largest, fabs(b));
    }
    rule->scale = products / squares;
    rule->bias = largest > look_tolerance(l, before) ? bias : NULL;
    return isfinite(rule->scale) ? STATUS_OK
                                 : look_refuse(l, before, "scores of present keys are not finite");
}

/* Whether `p` is the softmax of scale * t + bias over the keys of each row's mask. */
static bool obeys(const look *l, const attention *a, const score_rule *rule, const tensor *t,
                  const tensor *mask, const tensor *p, double tolerance)
{
    int64_t n = l->length;
    for (int64_t row = 0; row < l->batch * a->heads * n; row++) {
        int64_t b = row / (a->heads * n), of_bias = row % (a->heads * n);
        double sum = 0, top = -INFINITY;
        for (int pass = 0; pass < 3; pass++)
            for (int64_t j = 0; j < n; j++) {
                bool is_key = mask == NULL || tensor_get_number(mask, b * n + j) != 0;
                double score = rule->scale * tensor_get_number(t, row * n + j);
                score += rule->bias != NULL ? rule->bias[of_bias * n + j] : 0;
                if (pass == 0)
                    top = is_key ? fmax(top, score) : top;
                else if (pass == 1)
                    sum += is_key ? exp(score - top) : 0;
                else if (!(fabs((is_key ? exp(score - top) / sum : 0) -
                                tensor_get_number(p, row * n + j)) <= tolerance))
                    return false;
            }
    }
    return true;
}

static status check_rule(look *l, const attention *a, const score_rule *rule, int bound_count,
                         graph_value_index *bound, tensor *given, arena *memory)
{
    status s = STATUS_OK;
    for (int round = 0; s == STATUS_OK && round < 3; round++) {
        tensor made;
        bound[bound_count] = a->scores;
        s = look_random_tensor(l, memory, a->scores, 4, &given[bound_count]);
        if (s == STATUS_OK && bound_count > 0)
            s = look_random_mask(l, memory, bound[0], false, &given[0]);
        if (s == STATUS_OK)
            s = match_experiment(&l->m, memory, bound_count + 1, bound, given, a->probabilities,
                                 &made);
        if (s)
            return s;
        if (!obeys(l, a, rule, &given[bound_count], bound_count > 0 ? &given[0] : NULL, &made,
                   look_tolerance(l, a->probabilities)))
            return look_refuse(l, a->probabilities,
                               "attention is not a softmax over the keys that the mask leaves, as "
                               "an experiment with random scores and masks shows");
    }
    return s;
}

static status keep_rule(look *l, const attention *a, const score_rule *rule, double scale)
{
    encoder *e = l->e;
    double usual = 1 / sqrt((double)a->size);
    double close = look_tolerance(l, a->scores);
    /* The model means the usual scale, and rounded it. */
    if (fabs(scale / usual - 1) <= close)
        scale = usual;
    if (e->attention_scale == 0)
        e->attention_scale = (float)scale;
    else if (fabs(scale / (double)e->attention_scale - 1) > close)
        return look_refuse(l, a->scores, "attention is scaled by %g, in another layer by %g", scale,
                           (double)e->attention_scale);
    return look_relative_bias(l, a->scores, a->heads, rule->bias);
}

/* Scale, mask and bias, by experiment. `scale` comes from queries and keys. */
static status find_softmax_rule(look *l, const attention *a, double scale)
{
    const graph *g = l->m.g;
    arena memory = {0};
    graph_value_index bound[2];
    tensor given[2];
    score_rule rule = {.bias = NULL};
    bool *needed = arena_allocate_zeroed(&memory, (size_t)g->value_count + 1, sizeof needed[0]);
    status s = STATUS_OK;
    if (needed == NULL) {
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for an experiment");
        goto done;
    }
    uint32_t inputs = match_cone(&l->m, a->probabilities, 1, &a->scores, needed);
    graph_value_index before = find_softmax(l, a, needed);
    if (before == GRAPH_NO_VALUE) {
        s = look_refuse(l, a->probabilities, "found no Softmax over the keys");
        goto done;
    }
    if ((s = look_take_mask(l, inputs, a->probabilities)))
        goto done;
    int bound_count = inputs != 0;
    if (bound_count > 0) {
        bound[0] = g->inputs[l->e->mask_input];
        if ((s = look_random_mask(l, &memory, bound[0], true, &given[0])))
            goto done;
    }
    if ((s = find_rule(l, a, before, bound_count, bound, given, &memory, &rule)) == STATUS_OK &&
        (s = check_rule(l, a, &rule, bound_count, bound, given, &memory)) == STATUS_OK)
        s = keep_rule(l, a, &rule, scale * rule.scale);
done:
    arena_dispose(&memory);
    return s;
}

status look_attention(look *l, graph_value_index y, encoder_layer *layer, graph_value_index *x,
                      int64_t *rows)
{
    encoder *e = l->e;
    arena memory = {0};
    attention a;
    match_trace mixed;
    status s = find_products(l, y, &memory, &a, &mixed);
    if (s)
        goto done;
    if (a.heads * a.size != e->hidden || (e->heads != 0 && e->heads != a.heads)) {
        s = look_refuse(l, a.scores, "%lld heads of %lld do not make %lld numbers",
                        (long long)a.heads, (long long)a.size, (long long)e->hidden);
        goto done;
    }
    e->heads = a.heads;
    e->head_dim = a.size;
    /* Element (position, c) of y comes from one place of one head: heads side by side, in any
     * order. */
    for (int64_t i = 0; i < mixed.count; i++) {
        int64_t from = mixed.map[i], k = from % a.size, position = from / a.size % l->length;
        int64_t h = from / (a.size * l->length) % a.heads;
        int64_t b = from / (a.size * l->length * a.heads), c = i % e->hidden;
        if (i < e->hidden)
            rows[h * a.size + k] = c;
        if (mixed.count != l->batch * l->length * e->hidden ||
            i / e->hidden != b * l->length + position || rows[h * a.size + k] != c) {
            s = look_refuse(l, y, "heads are not joined to each position's own vector");
            goto done;
        }
    }
    *x = GRAPH_NO_VALUE;
    double scale = 1, value_scale = mixed.scale;
    if ((s = keep_operand(l, &a, a.queries, false, &scale, x, &layer->query)) ||
        (s = keep_operand(l, &a, a.keys, true, &scale, x, &layer->key)) ||
        (s = keep_operand(l, &a, a.values, false, NULL, x, &layer->value)))
        goto done;
    if (value_scale != 1) {
        s = look_refuse(l, y, "attention's result is scaled");
        goto done;
    }
    s = find_softmax_rule(l, &a, scale);
done:
    arena_dispose(&memory);
    return s;
}

#include <math.h>
#include <string.h>

#include "graph/encoder/internal.h"

/* Attention is found by its two products: probabilities x values and queries x keys. How heads are
 * split, transposed and scaled is read off a trace of elements; what lies between the scores and
 * the probabilities (scale, masks, biases, softmax, guards against NaN) off an experiment. */
typedef struct attention {
    found_product mix;   /* probabilities x values */
    found_product score; /* queries x keys */
    int64_t heads, size;
} attention;

/* The last product of two computed values that `v` is made from. */
static bool find_scores(const look *l, graph_value_index v, arena *memory, found_product *out)
{
    const graph *g = l->m.g;
    bool *needed = arena_allocate_zeroed(memory, (size_t)g->value_count + 1, sizeof needed[0]);
    if (needed == NULL)
        return false;
    match_cone(&l->m, v, 0, NULL, needed);
    for (int32_t i = g->values[v].producer; i >= 0; i--) {
        graph_value_index made = g->nodes[i].outputs[0];
        if (made != GRAPH_NO_VALUE && needed[made] && look_find_product(l, made, out))
            return true;
    }
    return false;
}

/* Finds both products; sizes must fit together. */
static status find_products(look *l, graph_value_index y, arena *memory, attention *a,
                            match_trace *mixed)
{
    const match *m = &l->m;
    status s = match_trace_back(m, memory, y, mixed);
    if (s)
        return s;
    if (!look_find_product(l, mixed->base, &a->mix))
        return look_refuse(l, mixed->base,
                           "expected attention (probabilities x values) before a dense layer with "
                           "a residual");
    if (strcmp(a->mix.terms[0], "rhmk") != 0)
        look_swap_product(&a->mix);
    if (!find_scores(l, a->mix.operands[0], memory, &a->score))
        return look_refuse(l, mixed->base, "found no product of queries and keys");
    if (strcmp(a->score.terms[2], "rhmn") != 0)
        look_swap_product(&a->score);
    int64_t n = l->length;
    a->size = l->e->hidden;
    a->heads = match_count(m, a->score.result) / (l->batch * n * n);
    if (a->heads > 0)
        a->size /= a->heads;
    if (strcmp(a->mix.terms[0], "rhmk") != 0 || strcmp(a->score.terms[2], "rhmn") != 0 ||
        !look_fits_product(l, &a->score, (product_sizes){{l->batch, a->heads, n, n, a->size}}) ||
        !look_fits_product(l, &a->mix, (product_sizes){{l->batch, a->heads, n, a->size, n}}))
        return look_refuse(l, a->score.result,
                           "attention is not over the positions of a row, in heads that make "
                           "%lld numbers together",
                           (long long)l->e->hidden);
    return STATUS_OK;
}

/* Which column of a dense layer each number of each head is, and that it is the same one for all
 * positions: columns[heads * size]. */
static status read_columns(const look *l, const attention *a, const match_trace *t,
                           operand_place place, graph_value_index operand, int64_t columns_all,
                           int64_t *columns)
{
    const found_product *p = place == PLACE_VALUES ? &a->mix : &a->score;
    product_sizes sizes = {{l->batch, a->heads, l->length, l->length, a->size}};
    if (place == PLACE_VALUES)
        sizes = (product_sizes){{l->batch, a->heads, l->length, a->size, l->length}};
    for (int64_t b = 0; b < l->batch; b++)
        for (int64_t h = 0; h < a->heads; h++)
            for (int64_t i = 0; i < l->length; i++)
                for (int64_t k = 0; k < a->size; k++) {
                    product_sizes at = {{b, h, i, i, k}};
                    if (place == PLACE_VALUES)
                        at = (product_sizes){{b, h, 0, k, i}};
                    const char *term = p->terms[place == PLACE_QUERIES ? 0 : 1];
                    int64_t from = t->map[look_product_offset(term, sizes, at)];
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

/* Values are scaled in their weights; the scale of queries and keys goes into *scale. */
static status keep_operand(look *l, const attention *a, operand_place place, double *scale,
                           graph_value_index *x, encoder_linear *out)
{
    graph_value_index operand = place == PLACE_QUERIES ? a->score.operands[0]
                                : place == PLACE_KEYS  ? a->score.operands[1]
                                                       : a->mix.operands[1];
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
    if (look_linear_rows(&f) != l->e->hidden) {
        s = look_refuse(l, t.base, "queries, keys or values are not made from the hidden vector");
        goto done;
    }
    int64_t *columns =
        arena_allocate_zeroed(&memory, (size_t)(a->heads * a->size), sizeof columns[0]);
    if (columns == NULL) {
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for an encoder");
        goto done;
    }
    if ((s = read_columns(l, a, &t, place, operand, look_linear_columns(&f), columns)))
        goto done;
    graph_value_index reads = match_skip_views(&l->m, f.x);
    if (*x != GRAPH_NO_VALUE && *x != reads) {
        s = look_refuse(l, t.base, "queries, keys and values are made from different vectors");
        goto done;
    }
    *x = reads;
    double weight_scale = place == PLACE_VALUES ? t.scale : 1;
    if (place != PLACE_VALUES)
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
    for (int32_t i = g->values[a->mix.operands[0]].producer;
         i > g->values[a->score.result].producer; i--) {
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
    status s = look_random_tensor(l, memory, a->score.result, 0, &zeros);
    if (s == STATUS_OK)
        s = look_random_tensor(l, memory, a->score.result, 3, &randoms);
    bound[bound_count] = a->score.result;
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
    for (int round = 0; s == STATUS_OK && round < 4; round++) {
        tensor made;
        bound[bound_count] = a->score.result;
        s = look_random_tensor(l, memory, a->score.result, 4, &given[bound_count]);
        if (s == STATUS_OK && bound_count > 0)
            s = look_random_mask(l, memory, bound[0], false, &given[0]);
        if (s == STATUS_OK)
            s = match_experiment(&l->m, memory, bound_count + 1, bound, given, a->mix.operands[0],
                                 &made);
        if (s)
            return s;
        if (!obeys(l, a, rule, &given[bound_count], bound_count > 0 ? &given[0] : NULL, &made,
                   look_tolerance(l, a->mix.operands[0])))
            return look_refuse(l, a->mix.operands[0],
                               "attention is not a softmax over the keys that the mask leaves, as "
                               "an experiment with random scores and masks shows");
    }
    return s;
}

static status keep_rule(look *l, const attention *a, const score_rule *rule, double scale)
{
    encoder *e = l->e;
    double usual = 1 / sqrt((double)a->size);
    double close = look_tolerance(l, a->score.result);
    /* The model means the usual scale, and rounded it. */
    if (fabs(scale / usual - 1) <= close)
        scale = usual;
    if (e->attention_scale == 0)
        e->attention_scale = (float)scale;
    else if (fabs(scale / (double)e->attention_scale - 1) > close)
        return look_refuse(l, a->score.result, "attention is scaled by %g, in another layer by %g",
                           scale, (double)e->attention_scale);
    return look_relative_bias(l, a->score.result, a->heads, rule->bias);
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
    uint32_t inputs = match_cone(&l->m, a->mix.operands[0], 1, &a->score.result, needed);
    graph_value_index before = find_softmax(l, a, needed);
    if (before == GRAPH_NO_VALUE) {
        s = look_refuse(l, a->mix.operands[0], "found no Softmax over the keys");
        goto done;
    }
    if ((s = look_take_mask(l, inputs, a->mix.operands[0])))
        goto done;
    int bound_count = inputs != 0;
    if (bound_count > 0) {
        bound[0] = g->inputs[l->e->mask_input];
        if ((s = look_random_mask(l, &memory, bound[0], true, &given[0])))
            goto done;
    }
    if ((s = find_rule(l, a, before, bound_count, bound, given, &memory, &rule)) == STATUS_OK &&
        (l->is_for_bias ||
         (s = check_rule(l, a, &rule, bound_count, bound, given, &memory)) == STATUS_OK))
        s = keep_rule(l, a, &rule, scale * rule.scale);
done:
    arena_dispose(&memory);
    return s;
}

/* Element (position, c) of y comes from one number of one head: heads side by side, in any order.
 */
static status read_rows(const look *l, const attention *a, const match_trace *mixed,
                        graph_value_index y, arena *memory, int64_t *rows)
{
    int64_t count = l->batch * l->length * l->e->hidden;
    product_sizes sizes = {{l->batch, a->heads, l->length, a->size, l->length}};
    int64_t *element = arena_allocate_zeroed(memory, (size_t)count, sizeof element[0]);
    if (element == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for an encoder");
    for (int64_t i = 0; i < count; i++) { /* as [batch, length, heads, size] */
        int64_t k = i % a->size, h = i / a->size % a->heads, position = i / l->e->hidden;
        product_sizes at = {{position / l->length, h, position % l->length, k, 0}};
        element[look_product_offset(a->mix.terms[2], sizes, at)] = i;
    }
    for (int64_t i = 0; i < mixed->count; i++) {
        int64_t from = mixed->count == count ? element[mixed->map[i]] : -1;
        if (from >= 0 && i < l->e->hidden)
            rows[from % l->e->hidden] = i;
        if (from < 0 || from / l->e->hidden != i / l->e->hidden ||
            rows[from % l->e->hidden] != i % l->e->hidden)
            return look_refuse(l, y, "heads are not joined to each position's own vector");
    }
    return STATUS_OK;
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
    if (e->heads != 0 && e->heads != a.heads) {
        s = look_refuse(l, a.score.result, "%lld heads, and %lld in another layer",
                        (long long)a.heads, (long long)e->heads);
        goto done;
    }
    e->heads = a.heads;
    e->head_dim = a.size;
    if ((s = read_rows(l, &a, &mixed, y, &memory, rows)))
        goto done;
    *x = GRAPH_NO_VALUE;
    double scale = 1, value_scale = mixed.scale;
    if ((s = keep_operand(l, &a, PLACE_QUERIES, &scale, x, &layer->query)) ||
        (s = keep_operand(l, &a, PLACE_KEYS, &scale, x, &layer->key)) ||
        (s = keep_operand(l, &a, PLACE_VALUES, &scale, x, &layer->value)))
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

#include <math.h>
#include <string.h>

#include "graph/encoder/internal.h"

/* Attention is found by its two matrix multiplications: probabilities x values and queries x keys.
 * A trace of elements shows how heads are split, transposed and scaled. An experiment shows what
 * lies between the scores and the probabilities: scale, masks, biases, softmax, guards against NaN.
 */
typedef struct attention {
    found_matmul mix;   /* probabilities x values */
    found_matmul score; /* queries x keys */
    int64_t heads, size;
} attention;

/* The last matrix multiplication of two computed values that `v` is made from. */
static bool find_scores(const encoder_recogniser *r, graph_value_index v, arena *memory,
                        found_matmul *out)
{
    const graph *g = r->m.g;
    bool *needed = arena_allocate_zeroed(memory, (size_t)g->value_count + 1, sizeof needed[0]);
    if (needed == NULL)
        return false;
    match_cone(&r->m, v, 0, NULL, needed);
    for (int32_t i = g->values[v].producer; i >= 0; i--) {
        graph_value_index made = g->nodes[i].outputs[0];
        if (made != GRAPH_NO_VALUE && needed[made] && recogniser_find_matmul(r, made, out))
            return true;
    }
    return false;
}

/* Finds both matrix multiplications and checks that their sizes fit together. */
static status find_matmuls(encoder_recogniser *r, graph_value_index y, arena *memory, attention *a,
                           match_trace *mixed)
{
    const match *m = &r->m;
    status s = match_trace_back(m, memory, y, mixed);
    if (s)
        return s;
    if (!recogniser_find_matmul(r, mixed->base, &a->mix))
        return recogniser_reject(
            r, mixed->base,
            "expected attention (probabilities x values) before a dense layer with "
            "a residual");
    if (strcmp(a->mix.terms[0], "rhmk") != 0)
        found_matmul_swap(&a->mix);
    if (!find_scores(r, a->mix.operands[0], memory, &a->score))
        return recogniser_reject(r, mixed->base, "found no multiplication of queries and keys");
    if (strcmp(a->score.terms[2], "rhmn") != 0)
        found_matmul_swap(&a->score);
    int64_t n = r->length;
    a->size = r->e->hidden;
    a->heads = match_count(m, a->score.result) / (r->batch * n * n);
    if (a->heads > 0)
        a->size /= a->heads;
    if (strcmp(a->mix.terms[0], "rhmk") != 0 || strcmp(a->score.terms[2], "rhmn") != 0 ||
        !recogniser_fits_matmul(r, &a->score,
                                (matmul_sizes){{r->batch, a->heads, n, n, a->size}}) ||
        !recogniser_fits_matmul(r, &a->mix, (matmul_sizes){{r->batch, a->heads, n, a->size, n}}))
        return recogniser_reject(r, a->score.result,
                                 "attention is not over the tokens of a row, in heads that make "
                                 "%lld numbers together",
                                 (long long)r->e->hidden);
    return STATUS_OK;
}

/* Reads which column of the dense layer each number of each head is: columns[heads * size]. It must
 * be the same column for all tokens. */
static status read_columns(const encoder_recogniser *r, const attention *a, const match_trace *t,
                           operand_place place, graph_value_index operand, int64_t columns_all,
                           int64_t *columns)
{
    const found_matmul *p = place == PLACE_VALUES ? &a->mix : &a->score;
    matmul_sizes sizes = {{r->batch, a->heads, r->length, r->length, a->size}};
    if (place == PLACE_VALUES)
        sizes = (matmul_sizes){{r->batch, a->heads, r->length, a->size, r->length}};
    for (int64_t b = 0; b < r->batch; b++)
        for (int64_t h = 0; h < a->heads; h++)
            for (int64_t i = 0; i < r->length; i++)
                for (int64_t k = 0; k < a->size; k++) {
                    matmul_sizes at = {{b, h, i, i, k}};
                    if (place == PLACE_VALUES)
                        at = (matmul_sizes){{b, h, 0, k, i}};
                    const char *term = p->terms[place == PLACE_QUERIES ? 0 : 1];
                    int64_t from = t->map[matmul_offset(term, sizes, at)];
                    int64_t column = from % columns_all;
                    if (b == 0 && i == 0)
                        columns[h * a->size + k] = column;
                    if (from / columns_all != b * r->length + i ||
                        columns[h * a->size + k] != column)
                        return recogniser_reject(
                            r, operand, "heads are not split from the vector of their own token");
                }
    return STATUS_OK;
}

/* Values are scaled in their weights; the scale of queries and keys goes into *scale. */
static status keep_operand(encoder_recogniser *r, const attention *a, operand_place place,
                           double *scale, graph_value_index *x, encoder_linear *out)
{
    graph_value_index operand = place == PLACE_QUERIES ? a->score.operands[0]
                                : place == PLACE_KEYS  ? a->score.operands[1]
                                                       : a->mix.operands[1];
    arena memory = {0};
    match_trace t;
    found_linear f;
    status s = match_trace_back(&r->m, &memory, operand, &t);
    if (s)
        goto done;
    if (!recogniser_find_linear(r, t.base, &f)) {
        s = recogniser_reject(r, t.base, "expected the dense layer of queries, keys or values");
        goto done;
    }
    if (found_linear_rows(&f) != r->e->hidden) {
        s = recogniser_reject(r, t.base,
                              "queries, keys or values are not computed from the hidden states");
        goto done;
    }
    int64_t *columns =
        arena_allocate_zeroed(&memory, (size_t)(a->heads * a->size), sizeof columns[0]);
    if (columns == NULL) {
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for an encoder");
        goto done;
    }
    if ((s = read_columns(r, a, &t, place, operand, found_linear_columns(&f), columns)))
        goto done;
    graph_value_index reads = match_skip_views(&r->m, f.x);
    if (*x != GRAPH_NO_VALUE && *x != reads) {
        s = recogniser_reject(r, t.base,
                              "queries, keys and values are computed from different vectors");
        goto done;
    }
    *x = reads;
    double weight_scale = place == PLACE_VALUES ? t.scale : 1;
    if (place != PLACE_VALUES)
        *scale *= t.scale;
    s = recogniser_keep_linear(r, &f, a->heads * a->size, columns, NULL, weight_scale, out);
done:
    arena_dispose(&memory);
    return s;
}

/* The softmax between scores and probabilities. */
static graph_value_index find_softmax(const encoder_recogniser *r, const attention *a,
                                      const bool *needed)
{
    const graph *g = r->m.g;
    for (int32_t i = g->values[a->mix.operands[0]].producer;
         i > g->values[a->score.result].producer; i--) {
        const graph_node *n = &g->nodes[i];
        int64_t axis = graph_attribute_int(n, "axis", -1);
        if (n->op == GRAPH_OP_SOFTMAX && needed[n->outputs[0]] && r->m.is_hidden[n->outputs[0]] &&
            (axis == -1 || axis == g->values[n->inputs[0]].shape.rank - 1))
            return n->inputs[0];
    }
    return GRAPH_NO_VALUE;
}

/* probabilities = softmax(scale * scores + bias). `bias` is [heads, length, length] or NULL. */
typedef struct score_rule {
    double scale;
    const double *bias;
} score_rule;

/* Finds scale and bias: computes the input of the softmax from zero and from random scores, with no
 * key masked. */
static status find_rule(encoder_recogniser *r, const attention *a, graph_value_index before,
                        int bound_count, graph_value_index *bound, tensor *given, arena *memory,
                        score_rule *rule)
{
    tensor zeros, randoms, at_zero, at_random;
    status s = recogniser_draw_tensor(r, memory, a->score.result, 0, &zeros);
    if (s == STATUS_OK)
        s = recogniser_draw_tensor(r, memory, a->score.result, 3, &randoms);
    bound[bound_count] = a->score.result;
    given[bound_count] = zeros;
    if (s == STATUS_OK)
        s = match_experiment(&r->m, memory, bound_count + 1, bound, given, before, &at_zero);
    given[bound_count] = randoms;
    if (s == STATUS_OK)
        s = match_experiment(&r->m, memory, bound_count + 1, bound, given, before, &at_random);
    if (s)
        return s;
    int64_t count = tensor_count(&randoms), per_row = count / r->batch;
    double *bias = arena_allocate_zeroed(memory, (size_t)per_row, sizeof bias[0]);
    if (bias == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for an experiment");
    if (tensor_count(&at_zero) != count || tensor_count(&at_random) != count)
        return recogniser_reject(r, before, "the softmax is not over the scores");
    double products = 0, squares = 0, largest = 0;
    for (int64_t i = 0; i < count; i++) {
        double t = tensor_get_number(&randoms, i), b = tensor_get_number(&at_zero, i);
        if (i < per_row)
            bias[i] = b;
        else if (!(fabs(b - bias[i % per_row]) <= recogniser_tolerance(r, before) * (1 + fabs(b))))
            return recogniser_reject(r, before,
                                     "attention has a bias that differs from row to row");
        products += (tensor_get_number(&at_random, i) - b) * t;
        squares += t * t;
        largest = fmax(largest, fabs(b));
    }
    rule->scale = products / squares;
    rule->bias = largest > recogniser_tolerance(r, before) ? bias : NULL;
    return isfinite(rule->scale)
               ? STATUS_OK
               : recogniser_reject(r, before, "the scores of unmasked keys are not finite");
}

/* Whether `p` is the softmax of scale * t + bias over the keys that each row's mask keeps. */
static bool obeys(const encoder_recogniser *r, const attention *a, const score_rule *rule,
                  const tensor *t, const tensor *mask, const tensor *p, double tolerance)
{
    int64_t n = r->length;
    for (int64_t row = 0; row < r->batch * a->heads * n; row++) {
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

static status check_rule(encoder_recogniser *r, const attention *a, const score_rule *rule,
                         int bound_count, graph_value_index *bound, tensor *given, arena *memory)
{
    status s = STATUS_OK;
    for (int round = 0; s == STATUS_OK && round < 4; round++) {
        tensor made;
        bound[bound_count] = a->score.result;
        s = recogniser_draw_tensor(r, memory, a->score.result, 4, &given[bound_count]);
        if (s == STATUS_OK && bound_count > 0)
            s = recogniser_draw_mask(r, memory, bound[0], false, &given[0]);
        if (s == STATUS_OK)
            s = match_experiment(&r->m, memory, bound_count + 1, bound, given, a->mix.operands[0],
                                 &made);
        if (s)
            return s;
        if (!obeys(r, a, rule, &given[bound_count], bound_count > 0 ? &given[0] : NULL, &made,
                   recogniser_tolerance(r, a->mix.operands[0])))
            return recogniser_reject(
                r, a->mix.operands[0],
                "attention is not a softmax over the keys that the mask keeps: an "
                "experiment with random scores and masks differs");
    }
    return s;
}

static status keep_rule(encoder_recogniser *r, const attention *a, const score_rule *rule,
                        double scale)
{
    encoder *e = r->e;
    double usual = 1 / sqrt((double)a->size);
    double close = recogniser_tolerance(r, a->score.result);
    /* The exporter rounded the usual scale. */
    if (fabs(scale / usual - 1) <= close)
        scale = usual;
    if (e->attention_scale == 0)
        e->attention_scale = (float)scale;
    else if (fabs(scale / (double)e->attention_scale - 1) > close)
        return recogniser_reject(r, a->score.result,
                                 "attention is scaled by %g, in another layer by %g", scale,
                                 (double)e->attention_scale);
    return recogniser_read_relative_bias(r, a->score.result, a->heads, rule->bias);
}

/* Scale, mask and bias, by experiment. `scale` comes from queries and keys. */
static status find_softmax_rule(encoder_recogniser *r, const attention *a, double scale)
{
    const graph *g = r->m.g;
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
    uint32_t inputs = match_cone(&r->m, a->mix.operands[0], 1, &a->score.result, needed);
    graph_value_index before = find_softmax(r, a, needed);
    if (before == GRAPH_NO_VALUE) {
        s = recogniser_reject(r, a->mix.operands[0], "found no Softmax over the keys");
        goto done;
    }
    if ((s = recogniser_set_mask(r, inputs, a->mix.operands[0])))
        goto done;
    int bound_count = inputs != 0;
    if (bound_count > 0) {
        bound[0] = g->inputs[r->e->mask_input];
        if ((s = recogniser_draw_mask(r, &memory, bound[0], true, &given[0])))
            goto done;
    }
    if ((s = find_rule(r, a, before, bound_count, bound, given, &memory, &rule)) == STATUS_OK &&
        (r->is_for_bias ||
         (s = check_rule(r, a, &rule, bound_count, bound, given, &memory)) == STATUS_OK))
        s = keep_rule(r, a, &rule, scale * rule.scale);
done:
    arena_dispose(&memory);
    return s;
}

/* Reads which number of which head element (token, c) of y is: the heads are concatenated, in any
 * order. */
static status read_rows(const encoder_recogniser *r, const attention *a, const match_trace *mixed,
                        graph_value_index y, arena *memory, int64_t *rows)
{
    int64_t count = r->batch * r->length * r->e->hidden;
    matmul_sizes sizes = {{r->batch, a->heads, r->length, a->size, r->length}};
    int64_t *element = arena_allocate_zeroed(memory, (size_t)count, sizeof element[0]);
    if (element == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for an encoder");
    for (int64_t i = 0; i < count; i++) { /* as [batch, length, heads, size] */
        int64_t k = i % a->size, h = i / a->size % a->heads, token = i / r->e->hidden;
        matmul_sizes at = {{token / r->length, h, token % r->length, k, 0}};
        element[matmul_offset(a->mix.terms[2], sizes, at)] = i;
    }
    for (int64_t i = 0; i < mixed->count; i++) {
        int64_t from = mixed->count == count ? element[mixed->map[i]] : -1;
        if (from >= 0 && i < r->e->hidden)
            rows[from % r->e->hidden] = i;
        if (from < 0 || from / r->e->hidden != i / r->e->hidden ||
            rows[from % r->e->hidden] != i % r->e->hidden)
            return recogniser_reject(r, y,
                                     "heads are not concatenated to the vector of their own token");
    }
    return STATUS_OK;
}

status recogniser_read_attention(encoder_recogniser *r, graph_value_index y, encoder_layer *layer,
                                 graph_value_index *x, int64_t *rows)
{
    encoder *e = r->e;
    arena memory = {0};
    attention a;
    match_trace mixed;
    status s = find_matmuls(r, y, &memory, &a, &mixed);
    if (s)
        goto done;
    if (e->heads != 0 && e->heads != a.heads) {
        s = recogniser_reject(r, a.score.result, "%lld heads, and %lld in another layer",
                              (long long)a.heads, (long long)e->heads);
        goto done;
    }
    e->heads = a.heads;
    e->head_dim = a.size;
    if ((s = read_rows(r, &a, &mixed, y, &memory, rows)))
        goto done;
    *x = GRAPH_NO_VALUE;
    double scale = 1, value_scale = mixed.scale;
    if ((s = keep_operand(r, &a, PLACE_QUERIES, &scale, x, &layer->query)) ||
        (s = keep_operand(r, &a, PLACE_KEYS, &scale, x, &layer->key)) ||
        (s = keep_operand(r, &a, PLACE_VALUES, &scale, x, &layer->value)))
        goto done;
    if (value_scale != 1) {
        s = recogniser_reject(r, y, "attention's result is scaled");
        goto done;
    }
    s = find_softmax_rule(r, &a, scale);
done:
    arena_dispose(&memory);
    return s;
}

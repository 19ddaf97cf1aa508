#include <math.h>

#include "graph/encoder/internal.h"

/* An output is read from its end: L2 normalisation, dense layers. What is left between them and the
 * hidden states is compared with the known poolings on random hidden states and masks. */

/* Element c of row `row` after that pooling of x [batch, length, hidden]. `mask` may be NULL. */
static double pooling_element(const encoder_recogniser *r, encoder_pooling pooling, const tensor *x,
                              const tensor *mask, int64_t row, int64_t c)
{
    int64_t n = r->length, hidden = r->e->hidden;
    double sum = 0, count = 0, top = -INFINITY;
    if (pooling == ENCODER_POOLING_FIRST)
        return tensor_get_number(x, row * n * hidden + c);
    for (int64_t i = 0; i < n; i++) {
        if (mask != NULL && tensor_get_number(mask, row * n + i) == 0)
            continue;
        double v = tensor_get_number(x, (row * n + i) * hidden + c);
        sum += v;
        count += 1;
        top = fmax(top, v);
    }
    return pooling == ENCODER_POOLING_MEAN ? sum / count : top;
}

static bool is_pooling(const encoder_recogniser *r, encoder_pooling pooling, const tensor *x,
                       const tensor *mask, const tensor *y, double tolerance)
{
    for (int64_t i = 0; i < tensor_count(y); i++) {
        double want = pooling_element(r, pooling, x, mask, i / r->e->hidden, i % r->e->hidden);
        if (!(fabs(want - tensor_get_number(y, i)) <= tolerance))
            return false;
    }
    return true;
}

/* The pooling that makes `v` [batch, hidden] from the hidden states and perhaps the mask. */
static status find_pooling(encoder_recogniser *r, graph_value_index v, graph_value_index hidden,
                           encoder_pooling *out)
{
    arena memory = {0};
    graph_value_index bound[2] = {hidden};
    tensor given[2], y;
    bool *needed =
        arena_allocate_zeroed(&memory, (size_t)r->m.g->value_count + 1, sizeof needed[0]);
    status s = needed == NULL ? status_fail(STATUS_OUT_OF_MEMORY, "no memory") : STATUS_OK;
    if (s)
        goto done;
    uint32_t inputs = match_cone(&r->m, v, 1, &hidden, needed);
    if (match_count(&r->m, v) != r->batch * r->e->hidden ||
        match_dim(&r->m, v, -1) != r->e->hidden) {
        s = recogniser_reject(r, v, "expected one vector of the hidden size per row");
        goto done;
    }
    if (inputs != 0 && (s = recogniser_set_mask(r, inputs, v)))
        goto done;
    bool fits[] = {[ENCODER_POOLING_NONE] = false, true, true, true};
    for (int round = 0; round < 3; round++) {
        s = recogniser_draw_tensor(r, &memory, hidden, 2, &given[0]);
        if (s == STATUS_OK && inputs != 0) {
            bound[1] = r->m.g->inputs[r->e->mask_input];
            s = recogniser_draw_mask(r, &memory, bound[1], false, &given[1]);
        }
        if (s == STATUS_OK)
            s = match_experiment(&r->m, &memory, inputs != 0 ? 2 : 1, bound, given, v, &y);
        if (s)
            goto done;
        /* Without a mask input all tokens count. Where the encoder has a mask that the pooling does
         * not read, only the first token gives the same result. */
        const tensor *mask = inputs != 0 ? &given[1] : NULL;
        bool counts_all = mask == NULL && r->e->mask_input >= 0;
        for (int pooling = ENCODER_POOLING_MEAN; pooling <= ENCODER_POOLING_FIRST; pooling++)
            fits[pooling] &= (!counts_all || pooling == ENCODER_POOLING_FIRST) &&
                             is_pooling(r, (encoder_pooling)pooling, &given[0], mask, &y,
                                        5 * recogniser_tolerance(r, v));
    }
    s = STATUS_UNSUPPORTED;
    for (int pooling = ENCODER_POOLING_MEAN; s && pooling <= ENCODER_POOLING_FIRST; pooling++)
        if (fits[pooling]) {
            *out = (encoder_pooling)pooling;
            s = STATUS_OK;
        }
    if (s)
        s = recogniser_reject(r, v,
                              "the pooling is neither the mean, the maximum nor the first of the "
                              "tokens that the mask keeps");
done:
    arena_dispose(&memory);
    return s;
}

/* Whether y = x / max(|x|, epsilon), row by row. */
static bool is_normalised(const tensor *x, const tensor *y, int64_t columns, double epsilon,
                          double tolerance)
{
    for (int64_t row = 0; row < tensor_count(x) / columns; row++) {
        double squares = 0;
        for (int64_t c = 0; c < columns; c++)
            squares += pow(tensor_get_number(x, row * columns + c), 2);
        double norm = fmax(sqrt(squares), epsilon);
        for (int64_t c = 0; c < columns; c++)
            if (!(fabs(tensor_get_number(x, row * columns + c) / norm -
                       tensor_get_number(y, row * columns + c)) <= tolerance))
                return false;
    }
    return true;
}

/* The smallest positive constant between x and v: the lower bound of the norm. */
static double find_norm_epsilon(const encoder_recogniser *r, graph_value_index v,
                                graph_value_index x, bool *needed)
{
    const graph *g = r->m.g;
    double least = 0;
    match_cone(&r->m, v, 1, &x, needed);
    for (int32_t i = 0; i < g->value_count; i++) {
        double scalar;
        if (needed[i] && g->values[i].constant != NULL &&
            dtype_is_float(g->values[i].constant->dtype) && match_scalar(&r->m, i, &scalar) &&
            scalar > 0 && scalar < 0.1 && (least == 0 || scalar < least))
            least = scalar;
    }
    return least;
}

/* v = u / max(|u|, epsilon): *u and *epsilon. */
static bool find_normalisation(encoder_recogniser *r, graph_value_index v, graph_value_index *u,
                               double *epsilon)
{
    const graph_node *n = match_producer(&r->m, v);
    if (n == NULL ||
        (n->op != GRAPH_OP_DIV && n->op != GRAPH_OP_LP_NORMALIZATION && n->op != GRAPH_OP_MUL))
        return false;
    graph_value_index x = match_skip_casts(&r->m, n->inputs[0]);
    int64_t columns = match_dim(&r->m, v, -1);
    if (match_constant(&r->m, x) != NULL || match_count(&r->m, x) != match_count(&r->m, v))
        return false;
    arena memory = {0};
    tensor given, y;
    bool *needed =
        arena_allocate_zeroed(&memory, (size_t)r->m.g->value_count + 1, sizeof needed[0]);
    bool is_one = needed != NULL;
    double least = is_one ? find_norm_epsilon(r, v, x, needed) : 0;
    double reaches[] = {2, least / (double)columns / 4};
    for (int i = 0; is_one && i < 2; i++)
        is_one = recogniser_draw_tensor(r, &memory, x, reaches[i], &given) == STATUS_OK &&
                 match_experiment(&r->m, &memory, 1, &x, &given, v, &y) == STATUS_OK &&
                 (reaches[i] == 0 ||
                  is_normalised(&given, &y, columns, least, 5 * recogniser_tolerance(r, v)));
    arena_dispose(&memory);
    *u = x;
    *epsilon = least;
    return is_one;
}

/* Whether v is the value `hidden`, seen as [batch, length, hidden]. */
static bool is_hidden_states(const encoder_recogniser *r, graph_value_index v,
                             graph_value_index hidden)
{
    return match_skip_views(&r->m, v) == match_skip_views(&r->m, hidden);
}

/* Whether a dense layer lies between v and the hidden states. */
static bool has_dense(encoder_recogniser *r, graph_value_index v, graph_value_index hidden)
{
    const graph *g = r->m.g;
    arena memory = {0};
    bool *needed = arena_allocate_zeroed(&memory, (size_t)g->value_count + 1, sizeof needed[0]);
    bool is_found = false;
    if (needed != NULL) {
        match_cone(&r->m, v, 1, &hidden, needed);
        for (int32_t i = g->values[hidden].producer + 1; i < g->node_count; i++)
            is_found |= (g->nodes[i].op == GRAPH_OP_MATMUL || g->nodes[i].op == GRAPH_OP_GEMM) &&
                        needed[g->nodes[i].outputs[0]];
    }
    arena_dispose(&memory);
    return is_found;
}

/* v [batch, length] is one column of *x [batch, length, columns] or [batch * length, columns],
 * however the graph selects it. */
static bool find_column(const encoder_recogniser *r, graph_value_index v, graph_value_index *x,
                        int64_t *column)
{
    arena memory = {0};
    match_trace from;
    bool is_one = r->m.g->values[v].shape.rank == 2 && match_dim(&r->m, v, 0) == r->batch &&
                  match_dim(&r->m, v, 1) == r->length &&
                  match_trace_back(&r->m, &memory, v, &from) == STATUS_OK && from.scale == 1 &&
                  match_producer(&r->m, from.base) != NULL && from.count > 0;
    int64_t columns = is_one ? match_dim(&r->m, from.base, -1) : 0;
    is_one = is_one && match_count(&r->m, from.base) == r->batch * r->length * columns;
    for (int64_t i = 0; is_one && i < from.count; i++)
        is_one = from.map[i] == i * columns + from.map[0];
    if (is_one) {
        *x = from.base;
        *column = from.map[0];
    }
    arena_dispose(&memory);
    return is_one;
}

/* Reads the last dense layer of a head. `column`: the only one to keep, or NULL. */
static status peel_dense(encoder_recogniser *r, graph_value_index *v, const int64_t *column,
                         encoder_output *out)
{
    found_linear f;
    if (out->head_count == ENCODER_HEAD_LAYERS_MAX)
        return recogniser_reject(r, *v, "more than %d dense layers in a head",
                                 ENCODER_HEAD_LAYERS_MAX);
    /* Layers are collected from the last to the first. */
    encoder_head_layer *layer = &out->head[out->head_count++];
    status s =
        recogniser_read_head_activation(r, match_skip_views(&r->m, *v), &f, &layer->activation);
    if (s == STATUS_OK && found_linear_columns(&f) != match_dim(&r->m, *v, -1))
        s = recogniser_reject(r, *v, "the rows of a dense layer are reshaped into other rows");
    if (s == STATUS_OK)
        s = recogniser_keep_linear(r, &f, column != NULL ? 1 : found_linear_columns(&f), column,
                                   NULL, 1, &layer->linear);
    if (s == STATUS_OK)
        *v = f.x;
    return s;
}

/* The output is [batch, length, columns], [batch, length] or [batch, columns]. The last layer of
 * the head still comes first. */
static status check_shape(const encoder_recogniser *r, graph_value_index v, const encoder_output *o)
{
    bool is_hidden = o->pooling == ENCODER_POOLING_NONE;
    int rank = r->m.g->values[v].shape.rank;
    int64_t columns = r->e->hidden;
    if (o->head_count > 0)
        columns = o->head[0].linear.weight->dims[o->head[0].linear.is_transposed ? 0 : 1];
    if (o->is_column && is_hidden && o->head_count > 0)
        return STATUS_OK; /* find_column checked the shape */
    if (rank != (is_hidden ? 3 : 2) || match_dim(&r->m, v, 0) != r->batch ||
        match_dim(&r->m, v, -1) != columns || (is_hidden && match_dim(&r->m, v, 1) != r->length))
        return recogniser_reject(
            r, v, "the output is neither [batch, tokens, numbers] nor [batch, numbers]");
    return STATUS_OK;
}

status recogniser_read_output(encoder_recogniser *r, graph_value_index v, graph_value_index hidden,
                              encoder_output *out)
{
    encoder_output found = {.pooling = ENCODER_POOLING_NONE};
    graph_value_index made = v;
    v = match_skip_casts(&r->m, v);
    double epsilon;
    graph_value_index u;
    status s;
    if (!is_hidden_states(r, v, hidden) && find_normalisation(r, v, &u, &epsilon)) {
        found.is_normalised = true;
        found.norm_epsilon = (float)epsilon;
        v = match_skip_casts(&r->m, u);
    }
    int64_t column;
    found.is_column =
        !found.is_normalised && has_dense(r, v, hidden) && find_column(r, v, &u, &column);
    if (found.is_column) {
        if ((s = peel_dense(r, &u, &column, &found)))
            return s;
        v = u;
    }
    while (has_dense(r, v, hidden))
        if ((s = peel_dense(r, &v, NULL, &found)))
            return s;
    if (!is_hidden_states(r, v, hidden) && (s = find_pooling(r, v, hidden, &found.pooling)))
        return s;
    if ((s = check_shape(r, made, &found)))
        return s;
    for (int i = 0; i < found.head_count / 2; i++) {
        encoder_head_layer last = found.head[found.head_count - 1 - i];
        found.head[found.head_count - 1 - i] = found.head[i];
        found.head[i] = last;
    }
    *out = found;
    return STATUS_OK;
}

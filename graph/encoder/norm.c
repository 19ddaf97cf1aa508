#include <math.h>

#include "graph/encoder/internal.h"

/* A layer normalisation written as single operators, in one of the ways of the exporters. Scale,
 * bias and epsilon are read off the nodes; an experiment proves that together they are a layer
 * normalisation. */
#define NORM_NODES_MAX 24

typedef struct norm_parts {
    graph_value_index x;
    const tensor *scale, *bias;
    double epsilon;
} norm_parts;

static bool is_hidden_vector(const tensor *t, int64_t hidden)
{
    return t != NULL && dtype_is_float(t->dtype) && t->rank >= 1 && tensor_count(t) == hidden &&
           t->dims[t->rank - 1] == hidden;
}

/* The input of the first of the last two ReduceMean before `y`. */
static graph_value_index find_mean(const encoder_recogniser *r, graph_value_index y,
                                   const bool *needed)
{
    const graph *g = r->m.g;
    int means = 0, steps = 0;
    for (int32_t i = g->values[y].producer; i >= 0 && steps < NORM_NODES_MAX; i--) {
        const graph_node *n = &g->nodes[i];
        if (n->outputs[0] == GRAPH_NO_VALUE || !needed[n->outputs[0]])
            continue;
        steps++;
        if (n->op == GRAPH_OP_MATMUL || n->op == GRAPH_OP_GEMM)
            break;
        if (n->op == GRAPH_OP_REDUCE_MEAN && ++means == 2)
            return n->inputs[0];
    }
    return GRAPH_NO_VALUE;
}

static bool collect_parts(const encoder_recogniser *r, graph_value_index y, const bool *needed,
                          norm_parts *p)
{
    const graph *g = r->m.g;
    int64_t hidden = match_dim(&r->m, y, -1);
    int32_t first = g->values[p->x].producer;
    for (int32_t i = g->values[y].producer; i > first; i--) {
        const graph_node *n = &g->nodes[i];
        const tensor *t;
        graph_value_index other;
        if (n->outputs[0] == GRAPH_NO_VALUE || !needed[n->outputs[0]] ||
            !match_one_constant(&r->m, n, &t, &other))
            continue;
        if (n->op == GRAPH_OP_MUL && p->scale == NULL && is_hidden_vector(t, hidden))
            p->scale = t;
        else if ((n->op == GRAPH_OP_ADD || n->op == GRAPH_OP_SUB) && p->bias == NULL &&
                 is_hidden_vector(t, hidden))
            p->bias = t;
        else if (n->op == GRAPH_OP_ADD && tensor_count(t) == 1)
            p->epsilon = tensor_get_number(t, 0);
    }
    return p->scale != NULL;
}

static double norm_error(const norm_parts *p, const tensor *x, const tensor *y, int64_t hidden)
{
    double worst = 0;
    for (int64_t row = 0; row < tensor_count(x) / hidden; row++) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < hidden; i++)
            mean += tensor_get_number(x, row * hidden + i) / (double)hidden;
        for (int64_t i = 0; i < hidden; i++) {
            double d = tensor_get_number(x, row * hidden + i) - mean;
            variance += d * d / (double)hidden;
        }
        for (int64_t i = 0; i < hidden; i++) {
            double want = (tensor_get_number(x, row * hidden + i) - mean) /
                          sqrt(variance + p->epsilon) * tensor_get_number(p->scale, i);
            want += p->bias != NULL ? tensor_get_number(p->bias, i) : 0;
            double error = fabs(tensor_get_number(y, row * hidden + i) - want) / (1 + fabs(want));
            worst = isnan(error) ? INFINITY : fmax(worst, error);
        }
    }
    return worst;
}

static bool is_norm(encoder_recogniser *r, graph_value_index y, const norm_parts *p)
{
    int64_t hidden = match_dim(&r->m, y, -1);
    /* Small inputs show where epsilon is added. */
    double reaches[] = {2, fmax(2 * sqrt(p->epsilon), 1e-3)};
    bool is_one = true;
    for (int i = 0; i < 2 && is_one; i++) {
        arena memory = {0};
        tensor x, made;
        is_one = recogniser_draw_tensor(r, &memory, p->x, reaches[i], &x) == STATUS_OK &&
                 match_experiment(&r->m, &memory, 1, &p->x, &x, y, &made) == STATUS_OK &&
                 tensor_count(&made) == tensor_count(&x) &&
                 norm_error(p, &x, &made, hidden) <= 20 * recogniser_tolerance(r, y);
        arena_dispose(&memory);
    }
    return is_one;
}

static bool find_unfused(encoder_recogniser *r, graph_value_index y, norm_parts *out)
{
    arena memory = {0};
    bool *needed =
        arena_allocate_zeroed(&memory, (size_t)r->m.g->value_count + 1, sizeof needed[0]);
    bool is_found = needed != NULL;
    norm_parts p = {.x = GRAPH_NO_VALUE};
    if (is_found) {
        match_cone(&r->m, y, 0, NULL, needed);
        p.x = find_mean(r, y, needed);
        is_found = p.x != GRAPH_NO_VALUE && match_constant(&r->m, p.x) == NULL &&
                   match_dim(&r->m, p.x, -1) == match_dim(&r->m, y, -1) &&
                   match_count(&r->m, p.x) == match_count(&r->m, y);
    }
    if (is_found) {
        match_cone(&r->m, y, 1, &p.x, needed);
        is_found = collect_parts(r, y, needed, &p) && is_norm(r, y, &p);
    }
    arena_dispose(&memory);
    if (is_found)
        *out = p;
    return is_found;
}

static bool find_fused(const encoder_recogniser *r, const graph_node *n, graph_value_index y,
                       norm_parts *p)
{
    int64_t hidden = match_dim(&r->m, y, -1);
    int64_t rank = r->m.g->values[n->inputs[0]].shape.rank;
    int64_t axis = graph_attribute_int(n, "axis", -1);
    p->x = n->inputs[0];
    p->scale = match_constant(&r->m, n->inputs[1]);
    p->epsilon = (double)graph_attribute_float(n, "epsilon", 1e-5f);
    if ((axis != -1 && axis != rank - 1) || !is_hidden_vector(p->scale, hidden))
        return false;
    if (graph_input_of(n, 2) == GRAPH_NO_VALUE)
        return true;
    p->bias = match_constant(&r->m, n->inputs[2]);
    return is_hidden_vector(p->bias, hidden);
}

bool recogniser_find_norm(encoder_recogniser *r, graph_value_index y, graph_value_index *x,
                          encoder_norm *out)
{
    y = match_skip_views(&r->m, y);
    const graph_node *n = match_producer(&r->m, y);
    norm_parts p = {.x = GRAPH_NO_VALUE};
    if (n == NULL || match_dim(&r->m, y, -1) < 2)
        return false;
    bool is_found = n->op == GRAPH_OP_LAYER_NORMALIZATION ? find_fused(r, n, y, &p)
                    : n->op == GRAPH_OP_ADD || n->op == GRAPH_OP_MUL || n->op == GRAPH_OP_SUB
                        ? find_unfused(r, y, &p)
                        : false;
    encoder_norm kept = {.epsilon = (float)p.epsilon};
    if (!is_found || recogniser_keep_tensor(r, p.scale, 1, &kept.scale) ||
        (p.bias != NULL && recogniser_keep_tensor(r, p.bias, 1, &kept.bias)))
        return false;
    *x = p.x;
    *out = kept;
    return true;
}

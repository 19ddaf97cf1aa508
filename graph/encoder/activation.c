#include <math.h>

#include "graph/encoder/internal.h"

/* An activation is recognised by computing it: then a dozen ways to write GELU look alike. */

static double gelu(double x)
{
    return 0.5 * x * (1 + erf(x / sqrt(2)));
}

/* arXiv 1606.08415, section 2. */
static double gelu_tanh(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

static double relu(double x)
{
    return x > 0 ? x : 0;
}

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static double same(double x)
{
    return x;
}

typedef struct known_activation {
    double (*compute)(double);
    int code;
} known_activation;

static const known_activation layer_activations[] = {
    {gelu, ENCODER_GELU},
    {gelu_tanh, ENCODER_GELU_TANH},
    {relu, ENCODER_RELU},
    {silu, ENCODER_SILU},
};
static const known_activation head_activations[] = {
    {same, ENCODER_HEAD_NONE},
    {tanh, ENCODER_HEAD_TANH},
    {relu, ENCODER_HEAD_RELU},
    {gelu, ENCODER_HEAD_GELU},
};

/* The last dense layer before `a`. */
static graph_value_index find_dense(const encoder_recogniser *r, graph_value_index a, arena *memory,
                                    found_linear *up)
{
    const graph *g = r->m.g;
    bool *needed = arena_allocate_zeroed(memory, (size_t)g->value_count + 1, sizeof needed[0]);
    if (needed == NULL)
        return GRAPH_NO_VALUE;
    match_cone(&r->m, a, 0, NULL, needed);
    for (int32_t i = g->values[a].producer; i >= 0; i--) {
        const graph_node *n = &g->nodes[i];
        if (n->outputs[0] == GRAPH_NO_VALUE || !needed[n->outputs[0]])
            continue;
        if (recogniser_find_linear(r, n->outputs[0], up))
            return n->outputs[0];
        if (n->op == GRAPH_OP_MATMUL || n->op == GRAPH_OP_GEMM)
            break;
    }
    return GRAPH_NO_VALUE;
}

/* Largest difference between y and f(x) over the first `count` elements, relative to 1 + |f(x)|,
 * and the mean in `mean`. */
static double error_of(double (*f)(double), const tensor *x, const tensor *y, int64_t count,
                       double *mean)
{
    double worst = 0;
    *mean = 0;
    for (int64_t i = 0; i < count; i++) {
        double want = f(tensor_get_number(x, i));
        double error = fabs(tensor_get_number(y, i) - want) / (1 + fabs(want));
        worst = isnan(error) ? INFINITY : fmax(worst, error);
        *mean += error / (double)count;
    }
    return worst;
}

/* The known activation with the smallest error on some elements, if all errors are within the
 * tolerance; or NULL. */
static const known_activation *find_nearest(const tensor *x, const tensor *y, int count,
                                            const known_activation *known, double tolerance)
{
    int64_t all = tensor_count(x), some = all < 256 ? all : 256;
    const known_activation *best = NULL;
    double least = INFINITY, mean;
    if (tensor_count(y) != all)
        return NULL;
    for (int i = 0; i < count; i++)
        if (error_of(known[i].compute, x, y, some, &mean) <= tolerance && mean < least) {
            least = mean;
            best = &known[i];
        }
    if (best == NULL || error_of(best->compute, x, y, all, &mean) > tolerance)
        return NULL;
    return best;
}

static status find_activation(encoder_recogniser *r, graph_value_index a, int count,
                              const known_activation *known, found_linear *up, int *out)
{
    arena memory = {0};
    tensor x, y;
    status s = STATUS_OK;
    graph_value_index u = find_dense(r, a, &memory, up);
    if (u == GRAPH_NO_VALUE) {
        s = recogniser_reject(r, a, "expected an activation of a dense layer");
        goto done;
    }
    if ((s = recogniser_draw_tensor(r, &memory, u, 5, &x)))
        goto done;
    if ((s = match_experiment(&r->m, &memory, 1, &u, &x, a, &y))) {
        s = recogniser_reject(r, a, "expected an activation of the output of one dense layer");
        goto done;
    }
    const known_activation *best =
        find_nearest(&x, &y, count, known, 5 * recogniser_tolerance(r, a));
    if (best == NULL)
        s = recogniser_reject(r, a, "the activation is none of GELU, GELU by tanh, ReLU and SiLU");
    else
        *out = best->code;
done:
    arena_dispose(&memory);
    return s;
}

status recogniser_read_activation(encoder_recogniser *r, graph_value_index a, found_linear *up,
                                  encoder_activation *out)
{
    int code = 0;
    status s = find_activation(r, a, sizeof layer_activations / sizeof layer_activations[0],
                               layer_activations, up, &code);
    if (s == STATUS_OK)
        *out = (encoder_activation)code;
    return s;
}

status recogniser_read_head_activation(encoder_recogniser *r, graph_value_index a, found_linear *up,
                                       encoder_head_activation *out)
{
    int code = 0;
    status s = find_activation(r, a, sizeof head_activations / sizeof head_activations[0],
                               head_activations, up, &code);
    if (s == STATUS_OK)
        *out = (encoder_head_activation)code;
    return s;
}

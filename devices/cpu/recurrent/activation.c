#include <math.h>
#include <string.h>
#include <strings.h>

#include "devices/cpu/recurrent/recurrent.h"

/* The activation functions that RNN, GRU and LSTM name in a list. Defaults of alpha and beta: those
 * of the operators of that name; Affine and ScaledTanh, which are no operators, need theirs. A
 * function consumes one of the node's alphas or betas only if it has one. */
static const struct {
    const char *name;
    recurrent_curve curve;
    bool has_alpha, has_beta;
    float alpha, beta;
} curves[] = {
    {"Affine", RECURRENT_AFFINE, true, true, NAN, NAN},
    {"Elu", RECURRENT_ELU, true, false, 1, 0},
    {"HardSigmoid", RECURRENT_HARD_SIGMOID, true, true, 0.2f, 0.5f},
    {"LeakyRelu", RECURRENT_LEAKY_RELU, true, false, 0.01f, 0},
    {"Relu", RECURRENT_RELU, false, false, 0, 0},
    {"ScaledTanh", RECURRENT_SCALED_TANH, true, true, NAN, NAN},
    {"Sigmoid", RECURRENT_SIGMOID, false, false, 0, 0},
    {"Softplus", RECURRENT_SOFTPLUS, false, false, 0, 0},
    {"Softsign", RECURRENT_SOFTSIGN, false, false, 0, 0},
    {"Tanh", RECURRENT_TANH, false, false, 0, 0},
    {"ThresholdedRelu", RECURRENT_THRESHOLDED_RELU, true, false, 1, 0},
};

static float next_number(const graph_attribute *list, size_t *at, float otherwise)
{
    return list && *at < list->count ? list->floats[(*at)++] : otherwise;
}

status recurrent_find_activations(const graph_node *node, int direction, recurrent_direction *out)
{
    static const char *const usual[] = {"Sigmoid", "Tanh", "Tanh"};
    recurrent_activation *const places[] = {&out->f, &out->g, &out->h};
    const graph_attribute *names = graph_find_attribute(node, "activations");
    const graph_attribute *alphas = graph_find_attribute(node, "activation_alpha");
    const graph_attribute *betas = graph_find_attribute(node, "activation_beta");
    size_t per_direction = node->op == GRAPH_OP_LSTM || node->op == GRAPH_OP_ROUNDED_LSTM ? 3
                           : node->op == GRAPH_OP_GRU                                     ? 2
                                                                                          : 1;
    size_t alpha_at = 0, beta_at = 0;
    for (size_t i = 0; i < ((size_t)direction + 1) * per_direction; i++) {
        size_t place = i % per_direction, k = 0;
        const char *name = names                      ? names->strings[i]
                           : node->op == GRAPH_OP_RNN ? "Tanh"
                                                      : usual[place];
        size_t count = sizeof curves / sizeof curves[0];
        while (k < count && strcasecmp(curves[k].name, name) != 0)
            k++;
        if (k == count)
            return status_fail(STATUS_UNSUPPORTED, "activation '%.40s' is not supported", name);
        recurrent_activation found = {curves[k].curve, curves[k].alpha, curves[k].beta};
        if (curves[k].has_alpha)
            found.alpha = next_number(alphas, &alpha_at, found.alpha);
        if (curves[k].has_beta)
            found.beta = next_number(betas, &beta_at, found.beta);
        if (isnan(found.alpha) || isnan(found.beta))
            return status_fail(STATUS_UNSUPPORTED, "activation '%s' has no alpha or no beta",
                               curves[k].name);
        *places[place] = found;
    }
    return STATUS_OK;
}

static float curve_at(const recurrent_activation *a, float x)
{
    switch (a->curve) {
    case RECURRENT_AFFINE:
        return a->alpha * x + a->beta;
    case RECURRENT_ELU:
        return x < 0 ? a->alpha * expm1f(x) : x;
    case RECURRENT_HARD_SIGMOID:
        return fmaxf(0, fminf(1, a->alpha * x + a->beta));
    case RECURRENT_LEAKY_RELU:
        return x < 0 ? a->alpha * x : x;
    case RECURRENT_SOFTPLUS:
        return x > 0 ? x + log1pf(expf(-x)) : log1pf(expf(x));
    case RECURRENT_SOFTSIGN:
        return x / (1 + fabsf(x));
    case RECURRENT_THRESHOLDED_RELU:
        return x >= a->alpha ? x : 0;
    case RECURRENT_RELU:
    case RECURRENT_SCALED_TANH:
    case RECURRENT_SIGMOID:
    case RECURRENT_TANH:
        break;
    }
    return x;
}

void recurrent_activate(const kernels *k, const recurrent_activation *a, float *x, size_t count)
{
    switch (a->curve) {
    case RECURRENT_RELU:
        k->relu_f32(x, x, count);
        break;
    case RECURRENT_SIGMOID:
        k->sigmoid_f32(x, x, count);
        break;
    case RECURRENT_TANH:
        k->tanh_f32(x, x, count);
        break;
    case RECURRENT_SCALED_TANH:
        k->mul_f32(x, 1, &a->beta, 0, x, count);
        k->tanh_f32(x, x, count);
        k->mul_f32(x, 1, &a->alpha, 0, x, count);
        break;
    default:
        for (size_t i = 0; i < count; i++)
            x[i] = curve_at(a, x[i]);
    }
}

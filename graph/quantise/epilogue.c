#include <math.h>
#include <string.h>

#include "graph/quantise/internal.h"

/* What is computed with the results of a layer: biases, residuals, activations, also those that
 * exporters write as several nodes, such as x * Sigmoid(x). */

/* One float, constant; false otherwise. */
static bool read_number(const fusion *w, graph_value_index v, float *out)
{
    const tensor *t = fusion_constant(w, v);
    if (!t || t->dtype != DTYPE_F32 || tensor_count(t) != 1)
        return false;
    *out = *(const float *)t->data;
    return true;
}

/* The bounds of a Clip of floats; infinite where they are absent. */
static bool read_bounds(const fusion *w, const graph_node *n, float *low, float *high)
{
    graph_value_index at[] = {graph_input_of(n, 1), graph_input_of(n, 2)};
    *low = -INFINITY;
    *high = INFINITY;
    return (at[0] == GRAPH_NO_VALUE || read_number(w, at[0], low)) &&
           (at[1] == GRAPH_NO_VALUE || read_number(w, at[1], high));
}

/* Sets the activation of `l` to that of node `n`; false when `n` is none. */
static bool set_activation(const fusion *w, fused_layer *l, const graph_node *n)
{
    const char *name = NULL;
    bool is_late = true;
    float a = 0, b = 0;
    switch (n->op) {
    case GRAPH_OP_RELU:
    case GRAPH_OP_TANH:
    case GRAPH_OP_SIGMOID:
    case GRAPH_OP_GELU:
        name = n->op == GRAPH_OP_RELU ? "Relu" : n->op == GRAPH_OP_TANH ? "Tanh" : "Sigmoid";
        if (n->op == GRAPH_OP_GELU)
            name = strcmp(graph_attribute_string(n, "approximate", "none"), "tanh") == 0
                       ? "GeluTanh"
                       : "Gelu";
        is_late = false;
        break;
    case GRAPH_OP_CLIP:
        if (!read_bounds(w, n, &a, &b))
            return false;
        is_late = a != 0 || b != INFINITY;
        name = is_late ? "Clip" : "Relu";
        break;
    case GRAPH_OP_LEAKY_RELU:
        name = "LeakyRelu";
        a = graph_attribute_float(n, "alpha", 0.01f);
        break;
    case GRAPH_OP_HARD_SIGMOID:
        name = "HardSigmoid";
        a = graph_attribute_float(n, "alpha", 0.2f);
        b = graph_attribute_float(n, "beta", 0.5f);
        break;
    case GRAPH_OP_ELU:
        name = "Elu";
        a = graph_attribute_float(n, "alpha", 1);
        break;
    case GRAPH_OP_HARD_SWISH:
    case GRAPH_OP_SOFTPLUS:
    case GRAPH_OP_MISH:
        name = n->op == GRAPH_OP_HARD_SWISH ? "HardSwish"
               : n->op == GRAPH_OP_MISH     ? "Mish"
                                            : "Softplus";
        break;
    default:
        return false;
    }
    if (l->is_quantised && (is_late || n->op == GRAPH_OP_GELU))
        return false; /* the uint8 kernel of GELU errs by 1e-4 */
    l->activation = name;
    l->is_late = is_late;
    l->a = a;
    l->b = b;
    l->scale = 1;
    return true;
}

/* The single reader of what node `at` makes, or -1; only nodes that are not fused otherwise. */
static int32_t next_of(const fusion *w, int32_t at)
{
    const graph_node *n = &w->g->nodes[at];
    int32_t next =
        n->output_count == 1 && w->uses[n->outputs[0]] == 1 ? w->reader[n->outputs[0]] : -1;
    return next >= 0 && !w->roles[next].is_absorbed && !w->roles[next].layer &&
                   w->g->nodes[next].output_count == 1
               ? next
               : -1;
}

/* The constant that `n` combines with `v`. */
static bool read_other(const fusion *w, const graph_node *n, graph_value_index v, float *out)
{
    return n->input_count == 2 && read_number(w, n->inputs[n->inputs[0] == v], out);
}

static bool is_near(float x, float expected)
{
    return fabsf(x - expected) <= 1e-5f * expected;
}

static bool is_product(const graph_node *n, graph_value_index a, graph_value_index b)
{
    return n->op == GRAPH_OP_MUL && n->input_count == 2 &&
           ((n->inputs[0] == a && n->inputs[1] == b) || (n->inputs[0] == b && n->inputs[1] == a));
}

#define GATE_NODES_MAX 4

/* v * Sigmoid(v), v * HardSigmoid(v), v * Clip(v + 3, 0, 6) / 6 in either order, v *
 * Tanh(Softplus(v)): writes the nodes up to the product or the division behind it; returns how many
 * they are and their name. */
static int match_gate(const fusion *w, graph_value_index v, int32_t nodes[GATE_NODES_MAX],
                      const char **name)
{
    const graph *g = w->g;
    const graph_node *n = &g->nodes[nodes[0]];
    float c = 0, low, high, divisor = 1;
    int count = 1;
    if (n->op == GRAPH_OP_SIGMOID) {
        *name = "Silu";
    } else if (n->op == GRAPH_OP_HARD_SIGMOID &&
               is_near(graph_attribute_float(n, "alpha", 0.2f), 1 / 6.0f) &&
               is_near(graph_attribute_float(n, "beta", 0.5f), 0.5f)) {
        *name = "HardSwish";
    } else if (n->op == GRAPH_OP_SOFTPLUS || (n->op == GRAPH_OP_ADD && read_other(w, n, v, &c))) {
        int32_t next = next_of(w, nodes[0]);
        if (next < 0)
            return 0;
        nodes[count++] = next;
        bool is_mish = n->op == GRAPH_OP_SOFTPLUS && g->nodes[next].op == GRAPH_OP_TANH;
        bool is_hard_swish = n->op == GRAPH_OP_ADD && g->nodes[next].op == GRAPH_OP_CLIP &&
                             read_bounds(w, &g->nodes[next], &low, &high) && low == 0 &&
                             high == 6 && c == 3;
        if (!is_mish && !is_hard_swish)
            return 0;
        *name = is_mish ? "Mish" : "HardSwish";
        divisor = is_mish ? 1 : 6;
    } else {
        return 0;
    }
    for (bool has_product = false; !has_product || divisor != 1;) {
        int32_t next = next_of(w, nodes[count - 1]);
        graph_value_index made = g->nodes[nodes[count - 1]].outputs[0];
        if (next < 0 || count == GATE_NODES_MAX)
            return 0;
        n = &g->nodes[next];
        if (!has_product && is_product(n, v, made)) {
            has_product = true;
        } else if (divisor != 1 && n->inputs[0] == made &&
                   ((n->op == GRAPH_OP_DIV && read_other(w, n, made, &c) && c == divisor) ||
                    (n->op == GRAPH_OP_MUL && read_other(w, n, made, &c) &&
                     is_near(c, 1 / divisor)))) {
            divisor = 1;
        } else {
            return 0;
        }
        nodes[count++] = next;
    }
    return count;
}

/* Absorbs a gate behind the layer; false where there is none. */
static bool absorb_gate(fusion *w, fused_layer *l, int32_t *last)
{
    graph_value_index v = l->out;
    int32_t nodes[GATE_NODES_MAX] = {w->first_reader[v]};
    const char *name = NULL;
    if (w->uses[v] != 2 || w->first_reader[v] == w->reader[v] || l->activation || l->is_quantised ||
        fusion_type(w, v) != DTYPE_F32)
        return false;
    const fusion_role *role = &w->roles[nodes[0]];
    int count = role->is_absorbed || role->layer ? 0 : match_gate(w, v, nodes, &name);
    if (count == 0)
        return false;
    w->roles[*last].is_absorbed = true;
    for (int i = 0; i + 1 < count; i++)
        w->roles[nodes[i]].is_absorbed = true;
    *last = nodes[count - 1];
    l->out = w->g->nodes[*last].outputs[0];
    l->activation = name;
    l->is_late = strcmp(name, "Silu") != 0;
    l->scale = 1;
    return true;
}

/* The result of a late activation times a number, or plus one. */
static bool absorb_affine(const fusion *w, fused_layer *l, const graph_node *n)
{
    float x;
    if (!l->is_late || l->adds_last || !read_other(w, n, l->out, &x) ||
        fusion_rank(w, n->outputs[0]) != fusion_rank(w, l->out))
        return false;
    if (n->op == GRAPH_OP_MUL && isfinite(x) && x != 0) {
        l->scale *= x;
        l->shift *= x;
        return true;
    }
    if (n->op == GRAPH_OP_ADD) {
        l->shift += x;
        return true;
    }
    return false;
}

/* Whether `v`, added behind the layer, is a bias: one number per output channel, on its axis. */
static bool lies_along_channels(const fusion *w, const fused_layer *l, graph_value_index v)
{
    int64_t n = fusion_layer_width(w, l->anchor);
    int rank = fusion_rank(w, v), axis = l->op == GRAPH_OP_FUSED_DENSE ? rank - 1 : rank - 3;
    return rank <= fusion_rank(w, l->out) && axis >= 0 && fusion_count(w, v) == n &&
           fusion_dim(w, v, axis) == n;
}

static bool absorb_add(fusion *w, fused_layer *l, const graph_node *n)
{
    graph_value_index other = n->inputs[0] == l->out ? n->inputs[1] : n->inputs[0];
    bool has_bias = l->bias_made || l->bias != GRAPH_NO_VALUE;
    if (!l->activation && !has_bias && l->residual == GRAPH_NO_VALUE &&
        lies_along_channels(w, l, other) && fusion_set_bias(w, l, other))
        return true;
    int rank = fusion_rank(w, l->out);
    bool is_same = l->residual == GRAPH_NO_VALUE && !fusion_constant(w, other) &&
                   fusion_rank(w, other) == rank;
    for (int i = 0; is_same && i < rank; i++)
        is_same = fusion_dim(w, other, i) == fusion_dim(w, l->out, i);
    if (is_same)
        l->residual = other;
    return is_same;
}

static bool absorb_quantise(fusion *w, fused_layer *l, const graph_node *n)
{
    l->has_quantised_result =
        n->op == GRAPH_OP_QUANTIZE_LINEAR && n->inputs[0] == l->out && l->is_quantised &&
        l->residual == GRAPH_NO_VALUE && fusion_read_parameters(w, n, &l->y_is) &&
        (fusion_type(w, n->outputs[0]) == DTYPE_U8 || w->is_shifted[n->outputs[0]]);
    return l->has_quantised_result;
}

static bool absorb_one(fusion *w, fused_layer *l, const graph_node *n)
{
    if (l->adds_last)
        return false;
    if (absorb_affine(w, l, n))
        return true;
    if (n->op == GRAPH_OP_ADD && (!l->activation || !l->is_quantised) && absorb_add(w, l, n)) {
        l->adds_last = l->activation != NULL;
        return true;
    }
    if (!l->activation && n->inputs[0] == l->out && set_activation(w, l, n))
        return true;
    return absorb_quantise(w, l, n);
}

int32_t fusion_absorb_epilogue(fusion *w, fused_layer *l, int32_t last)
{
    const graph *g = w->g;
    while (!l->has_quantised_result) {
        if (absorb_gate(w, l, &last))
            continue;
        int32_t at = w->uses[l->out] == 1 ? w->reader[l->out] : -1;
        if (at < 0 || w->roles[at].is_absorbed || w->roles[at].layer ||
            g->nodes[at].output_count != 1 || !absorb_one(w, l, &g->nodes[at]))
            break;
        w->roles[last].is_absorbed = true;
        last = at;
        l->out = g->nodes[at].outputs[0];
    }
    return last;
}

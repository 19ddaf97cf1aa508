#include "devices/cpu/fused/epilogue.h"

#include <assert.h>
#include <string.h>

#include "devices/cpu/fused/fused.h"

float cpu_fused_scale(const tensor *t, size_t i)
{
    return t ? ((const float *)t->data)[tensor_count(t) == 1 ? 0 : i] : 1;
}

int32_t cpu_fused_zero(const tensor *t)
{
    return t ? (int32_t)tensor_get_integer(t, 0) : 0;
}

kernels_activation cpu_fused_activation(const graph_node *n)
{
    static const struct {
        const char *name;
        kernels_activation activation;
    } names[] = {{"Relu", KERNELS_RELU}, {"Tanh", KERNELS_TANH}, {"Sigmoid", KERNELS_SIGMOID},
                 {"Silu", KERNELS_SILU}, {"Gelu", KERNELS_GELU}, {"GeluTanh", KERNELS_GELU_TANH}};
    const char *name = graph_attribute_string(n, "activation", "");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i].name) == 0)
            return names[i].activation;
    return KERNELS_IDENTITY;
}

static activation_kind kind_of(const graph_node *n)
{
    static const struct {
        const char *name;
        activation_kind kind;
    } names[] = {{"LeakyRelu", ACTIVATION_LEAKY_RELU},
                 {"Clip", ACTIVATION_CLIP},
                 {"HardSigmoid", ACTIVATION_HARD_SIGMOID},
                 {"HardSwish", ACTIVATION_HARD_SWISH},
                 {"Elu", ACTIVATION_ELU},
                 {"Softplus", ACTIVATION_SOFTPLUS},
                 {"Mish", ACTIVATION_MISH}};
    const char *name = graph_attribute_string(n, "activation", "");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i].name) == 0)
            return names[i].kind;
    return ACTIVATION_COUNT;
}

void fused_epilogue_prepare(const graph_node *n, bool adds_no_residual,
                            kernels_activation *in_kernel, fused_epilogue *after)
{
    kernels_activation activation = cpu_fused_activation(n);
    *after = (fused_epilogue){.kind = kind_of(n),
                              .adds_last = graph_attribute_int(n, "adds_last", 0) != 0,
                              .a = graph_attribute_float(n, "alpha", 0),
                              .b = graph_attribute_float(n, "beta", 0),
                              .scale = graph_attribute_float(n, "scale", 1),
                              .shift = graph_attribute_float(n, "shift", 0)};
    assert(after->kind != ACTIVATION_COUNT || activation != KERNELS_IDENTITY ||
           graph_attribute_string(n, "activation", "")[0] == 0);
    bool has_residual = n->input_count > 3 && n->inputs[3] != GRAPH_NO_VALUE;
    after->adds_residual = has_residual && (adds_no_residual || after->adds_last);
    bool is_late = !in_kernel || (after->adds_residual && !after->adds_last);
    if (in_kernel)
        *in_kernel = is_late ? KERNELS_IDENTITY : activation;
    after->activation = is_late ? activation : KERNELS_IDENTITY;
}

static void activate(const fused_epilogue *e, const kernels *k, float *x, size_t count)
{
    const kernels_unary_f32 unary[KERNELS_ACTIVATION_COUNT] = {
        [KERNELS_RELU] = k->relu_f32,           [KERNELS_GELU] = k->gelu_f32,
        [KERNELS_GELU_TANH] = k->gelu_tanh_f32, [KERNELS_TANH] = k->tanh_f32,
        [KERNELS_SIGMOID] = k->sigmoid_f32,     [KERNELS_SILU] = k->silu_f32};
    if (unary[e->activation])
        unary[e->activation](x, x, count);
    if (e->kind != ACTIVATION_COUNT)
        k->activation_f32(&(activation_f32){
            .kind = e->kind, .a = e->a, .b = e->b, .in = x, .out = x, .count = count});
    if (e->scale != 1)
        k->mul_f32(x, 1, &e->scale, 0, x, count);
    if (e->shift != 0)
        k->add_f32(x, 1, &e->shift, 0, x, count);
}

void fused_epilogue_run(const fused_epilogue *e, const kernels *k, const float *residual,
                        float *out, size_t count)
{
    if (e->adds_residual && !e->adds_last)
        k->add_f32(out, 1, residual, 1, out, count);
    activate(e, k, out, count);
    if (e->adds_residual && e->adds_last)
        k->add_f32(out, 1, residual, 1, out, count);
}

#include <math.h>
#include <tgmath.h>

#include "devices/cpu/ops/op.h"
#include "devices/cpu/tensor_loops/block.h"

/* Operators that take each element by itself. A formula is written once and made for float and for
 * double (tgmath picks the function); F16 and BF16 are computed as float. */

#define PARAMETERS_MAX 2

typedef struct unary_formula {
    graph_op op;
    void (*f32)(const float *in, float *out, size_t count, const float *p);
    void (*f64)(const double *in, double *out, size_t count, const float *p);
    void (*i64)(const int64_t *in, int64_t *out, size_t count);
    const char *names[PARAMETERS_MAX]; /* attributes, handed over as p[] */
    float defaults[PARAMETERS_MAX];
} unary_formula;

#define FORMULA(f32_name, f64_name, expression)                                                    \
    static void f32_name(const float *in, float *out, size_t count, const float *p)                \
    {                                                                                              \
        const float alpha = p[0], beta = p[1];                                                     \
        for (size_t i = 0; i < count; i++) {                                                       \
            float x = in[i];                                                                       \
            out[i] = (expression);                                                                 \
        }                                                                                          \
        (void)alpha, (void)beta;                                                                   \
    }                                                                                              \
    static void f64_name(const double *in, double *out, size_t count, const float *p)              \
    {                                                                                              \
        const double alpha = (double)p[0], beta = (double)p[1];                                    \
        for (size_t i = 0; i < count; i++) {                                                       \
            double x = in[i];                                                                      \
            out[i] = (expression);                                                                 \
        }                                                                                          \
        (void)alpha, (void)beta;                                                                   \
    }

FORMULA(abs_f32, abs_f64, fabs(x))
FORMULA(acos_f32, acos_f64, acos(x))
FORMULA(acosh_f32, acosh_f64, acosh(x))
FORMULA(asin_f32, asin_f64, asin(x))
FORMULA(asinh_f32, asinh_f64, asinh(x))
FORMULA(atan_f32, atan_f64, atan(x))
FORMULA(atanh_f32, atanh_f64, atanh(x))
FORMULA(ceil_f32, ceil_f64, ceil(x))
FORMULA(celu_f32, celu_f64, x > 0 ? x : alpha * expm1(x / alpha))
FORMULA(cos_f32, cos_f64, cos(x))
FORMULA(cosh_f32, cosh_f64, cosh(x))
FORMULA(elu_f32, elu_f64, x < 0 ? alpha * expm1(x) : x)
FORMULA(erf_f32, erf_f64, erf(x))
FORMULA(exp_f32, exp_f64, exp(x))
FORMULA(floor_f32, floor_f64, floor(x))
FORMULA(gelu_f32, gelu_f64, x *(1 + erf(x * (float)M_SQRT1_2)) / 2)
FORMULA(gelu_tanh_f32, gelu_tanh_f64,
        x *(1 + tanh((float)(M_2_SQRTPI * M_SQRT1_2) * (x + 0.044715f * x * x * x))) / 2)
FORMULA(hard_sigmoid_f32, hard_sigmoid_f64, fmax(0, fmin(1, alpha *x + beta)))
FORMULA(hard_swish_f32, hard_swish_f64, x *fmax(0, fmin(1, x / 6 + 0.5f)))
FORMULA(leaky_relu_f32, leaky_relu_f64, x < 0 ? alpha * x : x)
FORMULA(log_f32, log_f64, log(x))
FORMULA(mish_f32, mish_f64, x *tanh(x > 20 ? x : log1p(exp(x))))
FORMULA(neg_f32, neg_f64, -x)
FORMULA(reciprocal_f32, reciprocal_f64, 1 / x)
FORMULA(relu_f32, relu_f64, x < 0 ? 0 : x)
FORMULA(round_f32, round_f64, nearbyint(x))
FORMULA(selu_f32, selu_f64, x > 0 ? beta * x : beta * alpha * expm1(x))
FORMULA(shrink_f32, shrink_f64, x<-beta ? x + alpha : x> beta ? x - alpha : 0)
FORMULA(sigmoid_f32, sigmoid_f64, 1 / (1 + exp(-x)))
FORMULA(sign_f32, sign_f64, x > 0 ? 1 : x < 0 ? -1 : x)
FORMULA(sin_f32, sin_f64, sin(x))
FORMULA(sinh_f32, sinh_f64, sinh(x))
FORMULA(softplus_f32, softplus_f64, x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)))
FORMULA(softsign_f32, softsign_f64, x / (1 + fabs(x)))
FORMULA(sqrt_f32, sqrt_f64, sqrt(x))
FORMULA(tan_f32, tan_f64, tan(x))
FORMULA(tanh_f32, tanh_f64, tanh(x))
FORMULA(thresholded_relu_f32, thresholded_relu_f64, x > alpha ? x : 0)

#define INTEGER_FORMULA(name, expression)                                                          \
    static void name(const int64_t *in, int64_t *out, size_t count)                                \
    {                                                                                              \
        for (size_t i = 0; i < count; i++) {                                                       \
            int64_t x = in[i];                                                                     \
            out[i] = (expression);                                                                 \
        }                                                                                          \
    }

INTEGER_FORMULA(abs_i64, x < 0 ? (int64_t)(0 - (uint64_t)x) : x)
INTEGER_FORMULA(neg_i64, (int64_t)(0 - (uint64_t)x))
INTEGER_FORMULA(relu_i64, x < 0 ? 0 : x)
INTEGER_FORMULA(sign_i64, (x > 0) - (x < 0))
INTEGER_FORMULA(same_i64, x)

static const unary_formula formulas[] = {
    {GRAPH_OP_ABS, abs_f32, abs_f64, abs_i64, {0}, {0}},
    {GRAPH_OP_ACOS, acos_f32, acos_f64, NULL, {0}, {0}},
    {GRAPH_OP_ACOSH, acosh_f32, acosh_f64, NULL, {0}, {0}},
    {GRAPH_OP_ASIN, asin_f32, asin_f64, NULL, {0}, {0}},
    {GRAPH_OP_ASINH, asinh_f32, asinh_f64, NULL, {0}, {0}},
    {GRAPH_OP_ATAN, atan_f32, atan_f64, NULL, {0}, {0}},
    {GRAPH_OP_ATANH, atanh_f32, atanh_f64, NULL, {0}, {0}},
    {GRAPH_OP_CEIL, ceil_f32, ceil_f64, same_i64, {0}, {0}},
    {GRAPH_OP_CELU, celu_f32, celu_f64, NULL, {"alpha"}, {1}},
    {GRAPH_OP_COS, cos_f32, cos_f64, NULL, {0}, {0}},
    {GRAPH_OP_COSH, cosh_f32, cosh_f64, NULL, {0}, {0}},
    {GRAPH_OP_ELU, elu_f32, elu_f64, NULL, {"alpha"}, {1}},
    {GRAPH_OP_ERF, erf_f32, erf_f64, NULL, {0}, {0}},
    {GRAPH_OP_EXP, exp_f32, exp_f64, NULL, {0}, {0}},
    {GRAPH_OP_FLOOR, floor_f32, floor_f64, same_i64, {0}, {0}},
    {GRAPH_OP_GELU, gelu_f32, gelu_f64, NULL, {0}, {0}},
    {GRAPH_OP_HARD_SIGMOID,
     hard_sigmoid_f32,
     hard_sigmoid_f64,
     NULL,
     {"alpha", "beta"},
     {0.2f, 0.5f}},
    {GRAPH_OP_HARD_SWISH, hard_swish_f32, hard_swish_f64, NULL, {0}, {0}},
    {GRAPH_OP_LEAKY_RELU, leaky_relu_f32, leaky_relu_f64, NULL, {"alpha"}, {0.01f}},
    {GRAPH_OP_LOG, log_f32, log_f64, NULL, {0}, {0}},
    {GRAPH_OP_MISH, mish_f32, mish_f64, NULL, {0}, {0}},
    {GRAPH_OP_NEG, neg_f32, neg_f64, neg_i64, {0}, {0}},
    {GRAPH_OP_RECIPROCAL, reciprocal_f32, reciprocal_f64, NULL, {0}, {0}},
    {GRAPH_OP_RELU, relu_f32, relu_f64, relu_i64, {0}, {0}},
    {GRAPH_OP_ROUND, round_f32, round_f64, same_i64, {0}, {0}},
    {GRAPH_OP_SELU,
     selu_f32,
     selu_f64,
     NULL,
     {"alpha", "gamma"},
     {1.67326319217681884765625f, 1.05070102214813232421875f}},
    {GRAPH_OP_SHRINK, shrink_f32, shrink_f64, NULL, {"bias", "lambd"}, {0, 0.5f}},
    {GRAPH_OP_SIGMOID, sigmoid_f32, sigmoid_f64, NULL, {0}, {0}},
    {GRAPH_OP_SIGN, sign_f32, sign_f64, sign_i64, {0}, {0}},
    {GRAPH_OP_SIN, sin_f32, sin_f64, NULL, {0}, {0}},
    {GRAPH_OP_SINH, sinh_f32, sinh_f64, NULL, {0}, {0}},
    {GRAPH_OP_SOFTPLUS, softplus_f32, softplus_f64, NULL, {0}, {0}},
    {GRAPH_OP_SOFTSIGN, softsign_f32, softsign_f64, NULL, {0}, {0}},
    {GRAPH_OP_SQRT, sqrt_f32, sqrt_f64, NULL, {0}, {0}},
    {GRAPH_OP_TAN, tan_f32, tan_f64, NULL, {0}, {0}},
    {GRAPH_OP_TANH, tanh_f32, tanh_f64, NULL, {0}, {0}},
    {GRAPH_OP_THRESHOLDED_RELU, thresholded_relu_f32, thresholded_relu_f64, NULL, {"alpha"}, {1}},
};

/* The kernel table's entry, where it has one. */
static kernels_unary_f32 kernel_of(const kernels *k, graph_op op, bool is_tanh_gelu)
{
    switch (op) {
    case GRAPH_OP_EXP:
        return k->exp_f32;
    case GRAPH_OP_ERF:
        return k->erf_f32;
    case GRAPH_OP_TANH:
        return k->tanh_f32;
    case GRAPH_OP_SIGMOID:
        return k->sigmoid_f32;
    case GRAPH_OP_RELU:
        return k->relu_f32;
    case GRAPH_OP_GELU:
        return is_tanh_gelu ? k->gelu_tanh_f32 : k->gelu_f32;
    default:
        return NULL;
    }
}

typedef struct unary_state {
    unary_formula formula;
    kernels_unary_f32 kernel;
    float parameters[PARAMETERS_MAX];
} unary_state;

static status prepare_unary(cpu_prepare *p)
{
    const graph_node *node = p->node;
    unary_state *state = arena_allocate(p->memory, sizeof *state);
    if (!state)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    size_t i = 0;
    while (formulas[i].op != node->op)
        i++;
    state->formula = formulas[i];
    const char *approximate = graph_attribute_string(node, "approximate", "none");
    bool is_tanh_gelu = node->op == GRAPH_OP_GELU && approximate[0] == 't';
    if (is_tanh_gelu) {
        state->formula.f32 = gelu_tanh_f32;
        state->formula.f64 = gelu_tanh_f64;
    }
    state->kernel = kernel_of(p->kernels, node->op, is_tanh_gelu);
    for (int a = 0; a < PARAMETERS_MAX; a++) {
        const char *name = state->formula.names[a];
        float otherwise = state->formula.defaults[a];
        state->parameters[a] = name ? graph_attribute_float(node, name, otherwise) : otherwise;
    }
    dtype type = p->inputs[0]->dtype;
    if (type >= DTYPE_BYTES ||
        (!dtype_is_float(type) && !state->formula.i64 && node->op != GRAPH_OP_SHRINK))
        return cpu_op_fail_dtype(node, type);
    p->state = state;
    return STATUS_OK;
}

static void run_block(const unary_state *state, cpu_compute compute, const cpu_block *in,
                      cpu_block *out, size_t count)
{
    if (compute == CPU_COMPUTE_F32 && state->kernel)
        state->kernel(in->f32, out->f32, count);
    else if (compute == CPU_COMPUTE_F32)
        state->formula.f32(in->f32, out->f32, count, state->parameters);
    else if (compute == CPU_COMPUTE_F64)
        state->formula.f64(in->f64, out->f64, count, state->parameters);
    else
        state->formula.i64(in->i64, out->i64, count);
}

static status run_unary(const cpu_call *c)
{
    const unary_state *state = c->state;
    const tensor *in = c->inputs[0], *out = &c->outputs[0];
    size_t count = (size_t)tensor_count(in);
    if (in->dtype == DTYPE_F32) {
        if (state->kernel)
            state->kernel(in->data, out->data, count);
        else
            state->formula.f32(in->data, out->data, count, state->parameters);
        return STATUS_OK;
    }
    /* Of the U64 only the identities are asked for (Abs, Relu, Ceil ...), except Sign and Neg. */
    cpu_compute compute = cpu_compute_of(in->dtype);
    if (compute == CPU_COMPUTE_U64) {
        const uint64_t *x = in->data;
        uint64_t *y = out->data;
        for (size_t i = 0; i < count; i++)
            y[i] = c->node->op == GRAPH_OP_SIGN  ? x[i] > 0
                   : c->node->op == GRAPH_OP_NEG ? 0 - x[i]
                                                 : x[i];
        return STATUS_OK;
    }
    if (!state->formula.i64 && compute == CPU_COMPUTE_I64)
        compute = CPU_COMPUTE_F64; /* Shrink of integers */
    cpu_block x, y;
    for (size_t i = 0; i < count; i += CPU_BLOCK_ELEMENTS) {
        size_t n = count - i < CPU_BLOCK_ELEMENTS ? count - i : CPU_BLOCK_ELEMENTS;
        cpu_load(compute, in->dtype, in->data, (int64_t)i, 1, n, &x);
        run_block(state, compute, &x, &y, n);
        cpu_store(compute, out->dtype, &y, out->data, (int64_t)i, 1, n);
    }
    return STATUS_OK;
}

static status run_not(const cpu_call *c)
{
    const uint8_t *in = c->inputs[0]->data;
    uint8_t *out = c->outputs[0].data;
    size_t count = (size_t)tensor_count(c->inputs[0]);
    for (size_t i = 0; i < count; i++)
        out[i] = !in[i];
    return STATUS_OK;
}

static status run_bitwise_not(const cpu_call *c)
{
    if (!dtype_is_integer(c->inputs[0]->dtype))
        return cpu_op_fail_dtype(c->node, c->inputs[0]->dtype);
    const uint8_t *in = c->inputs[0]->data;
    uint8_t *out = c->outputs[0].data;
    size_t bytes = tensor_bytes(c->inputs[0]);
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)~in[i];
    return STATUS_OK;
}

static status run_is_special(const cpu_call *c)
{
    const tensor *in = c->inputs[0];
    if (!dtype_is_float(in->dtype))
        return cpu_op_fail_dtype(c->node, in->dtype);
    uint8_t *out = c->outputs[0].data;
    size_t count = (size_t)tensor_count(in);
    bool is_nan = c->node->op == GRAPH_OP_IS_NAN;
    bool positive = graph_attribute_int(c->node, "detect_positive", 1) != 0;
    bool negative = graph_attribute_int(c->node, "detect_negative", 1) != 0;
    cpu_block x;
    for (size_t i = 0; i < count; i += CPU_BLOCK_ELEMENTS) {
        size_t n = count - i < CPU_BLOCK_ELEMENTS ? count - i : CPU_BLOCK_ELEMENTS;
        cpu_load(CPU_COMPUTE_F64, in->dtype, in->data, (int64_t)i, 1, n, &x);
        for (size_t j = 0; j < n; j++)
            out[i + j] = is_nan ? x.f64[j] != x.f64[j]
                                : (positive && x.f64[j] == (double)INFINITY) ||
                                      (negative && x.f64[j] == -(double)INFINITY);
    }
    return STATUS_OK;
}

#define UNARY(identifier)                                                                          \
    {                                                                                              \
        GRAPH_OP_##identifier, prepare_unary, run_unary, 0, false                                  \
    }

static const cpu_op table[] = {
    UNARY(ABS),
    UNARY(ACOS),
    UNARY(ACOSH),
    UNARY(ASIN),
    UNARY(ASINH),
    UNARY(ATAN),
    UNARY(ATANH),
    UNARY(CEIL),
    UNARY(CELU),
    UNARY(COS),
    UNARY(COSH),
    UNARY(ELU),
    UNARY(ERF),
    UNARY(EXP),
    UNARY(FLOOR),
    UNARY(GELU),
    UNARY(HARD_SIGMOID),
    UNARY(LOG),
    UNARY(HARD_SWISH),
    UNARY(LEAKY_RELU),
    UNARY(MISH),
    UNARY(NEG),
    UNARY(RECIPROCAL),
    UNARY(RELU),
    UNARY(ROUND),
    UNARY(SELU),
    UNARY(SHRINK),
    UNARY(SIGMOID),
    UNARY(SIGN),
    UNARY(SIN),
    UNARY(SINH),
    UNARY(SOFTPLUS),
    UNARY(SOFTSIGN),
    UNARY(SQRT),
    UNARY(TAN),
    UNARY(TANH),
    UNARY(THRESHOLDED_RELU),
    {GRAPH_OP_NOT, NULL, run_not, 0, false},
    {GRAPH_OP_BITWISE_NOT, NULL, run_bitwise_not, 0, false},
    {GRAPH_OP_IS_INF, NULL, run_is_special, 0, false},
    {GRAPH_OP_IS_NAN, NULL, run_is_special, 0, false},
};

const cpu_op_family cpu_ops_unary = {table, sizeof table / sizeof table[0]};

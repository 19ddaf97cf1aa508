#include <assert.h>
#include <math.h>
#include <string.h>

#include "graph/stablehlo/operators.h"

/* Operators that treat every element alike, with numpy broadcasting. */

typedef struct named_op {
    graph_op op;
    const char *hlo;
} named_op;

static const named_op unary_ops[] = {
    {GRAPH_OP_ABS, "abs"},          {GRAPH_OP_NEG, "negate"},
    {GRAPH_OP_EXP, "exponential"},  {GRAPH_OP_LOG, "log"},
    {GRAPH_OP_SQRT, "sqrt"},        {GRAPH_OP_TANH, "tanh"},
    {GRAPH_OP_SIGMOID, "logistic"}, {GRAPH_OP_CEIL, "ceil"},
    {GRAPH_OP_FLOOR, "floor"},      {GRAPH_OP_ROUND, "round_nearest_even"},
    {GRAPH_OP_SIGN, "sign"},        {GRAPH_OP_SIN, "sine"},
    {GRAPH_OP_COS, "cosine"},       {GRAPH_OP_NOT, "not"},
    {GRAPH_OP_BITWISE_NOT, "not"},
};

static const named_op binary_ops[] = {
    {GRAPH_OP_ADD, "add"},         {GRAPH_OP_SUB, "subtract"},    {GRAPH_OP_MUL, "multiply"},
    {GRAPH_OP_DIV, "divide"},      {GRAPH_OP_AND, "and"},         {GRAPH_OP_OR, "or"},
    {GRAPH_OP_XOR, "xor"},         {GRAPH_OP_BITWISE_AND, "and"}, {GRAPH_OP_BITWISE_OR, "or"},
    {GRAPH_OP_BITWISE_XOR, "xor"},
};

static const named_op many_ops[] = {{GRAPH_OP_MAX, "maximum"},
                                    {GRAPH_OP_MIN, "minimum"},
                                    {GRAPH_OP_SUM, "add"},
                                    {GRAPH_OP_MEAN, "add"}};

static const named_op compare_ops[] = {{GRAPH_OP_EQUAL, "EQ"},
                                       {GRAPH_OP_GREATER, "GT"},
                                       {GRAPH_OP_GREATER_OR_EQUAL, "GE"},
                                       {GRAPH_OP_LESS, "LT"},
                                       {GRAPH_OP_LESS_OR_EQUAL, "LE"}};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static const char *name_in(const named_op *ops, size_t count, graph_op op)
{
    for (size_t i = 0; i < count; i++)
        if (ops[i].op == op)
            return ops[i].hlo;
    return NULL;
}

static status emit_unary(emitter *e, const graph_node *n)
{
    emit_output(e, n, 0,
                hlo_unary(e, name_in(unary_ops, COUNT_OF(unary_ops), n->op), emit_input(e, n, 0)));
    return STATUS_OK;
}

static status emit_binary(emitter *e, const graph_node *n)
{
    const char *op = name_in(binary_ops, COUNT_OF(binary_ops), n->op);
    emit_output(e, n, 0, hlo_broadcast_binary(e, op, emit_input(e, n, 0), emit_input(e, n, 1)));
    return STATUS_OK;
}

static status emit_many(emitter *e, const graph_node *n)
{
    ssa v = emit_input(e, n, 0);
    for (int i = 1; i < n->input_count; i++)
        v = hlo_broadcast_binary(e, name_in(many_ops, COUNT_OF(many_ops), n->op), v,
                                 emit_input(e, n, i));
    if (n->op == GRAPH_OP_MEAN)
        v = hlo_scalar_binary(e, "divide", v, n->input_count);
    emit_output(e, n, 0, v);
    return STATUS_OK;
}

static status emit_compare(emitter *e, const graph_node *n)
{
    ssa a = emit_input(e, n, 0), b = emit_input(e, n, 1);
    hlo_broadcast_pair(e, &a, &b);
    emit_output(e, n, 0, hlo_compare(e, name_in(compare_ops, COUNT_OF(compare_ops), n->op), a, b));
    return STATUS_OK;
}

static status emit_where(emitter *e, const graph_node *n)
{
    ssa type = emit_output_type(e, n, 0);
    ssa c = hlo_broadcast_to(e, emit_input(e, n, 0), type.rank, type.dims);
    ssa a = hlo_broadcast_to(e, emit_input(e, n, 1), type.rank, type.dims);
    ssa b = hlo_broadcast_to(e, emit_input(e, n, 2), type.rank, type.dims);
    emit_output(e, n, 0, hlo_select(e, c, a, b));
    return STATUS_OK;
}

static status emit_cast(emitter *e, const graph_node *n)
{
    ssa x = emit_input(e, n, 0), type = emit_output_type(e, n, 0);
    /* ONNX: a number becomes true when it is not zero; converting to i1 keeps the lowest bit. */
    emit_output(e, n, 0,
                type.dtype == DTYPE_BOOL && x.dtype != DTYPE_BOOL
                    ? hlo_compare(e, "NE", x, hlo_splat_like(e, &x, 0))
                    : hlo_convert(e, x, type.dtype));
    return STATUS_OK;
}

static status emit_pow(emitter *e, const graph_node *n)
{
    ssa a = emit_input(e, n, 0);
    const tensor *power = emit_constant(e, n, 1);
    if (power != NULL && tensor_count(power) == 1 && tensor_get_number(power, 0) == 2)
        emit_output(e, n, 0, hlo_binary(e, "multiply", a, a));
    else
        emit_output(
            e, n, 0,
            hlo_broadcast_binary(e, "power", a, hlo_convert(e, emit_input(e, n, 1), a.dtype)));
    return STATUS_OK;
}

/* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), in the type of x. */
static ssa gelu_by_tanh(emitter *e, ssa x)
{
    ssa square = hlo_binary(e, "multiply", x, x);
    ssa inner = hlo_scalar_binary(e, "multiply", square, 0.044715 * sqrt(2 / M_PI));
    inner = hlo_scalar_binary(e, "add", inner, sqrt(2 / M_PI));
    ssa bent = hlo_unary(e, "tanh", hlo_binary(e, "multiply", x, inner));
    ssa half = hlo_scalar_binary(e, "multiply", x, 0.5);
    return hlo_binary(e, "add", half, hlo_binary(e, "multiply", half, bent));
}

static ssa gelu(emitter *e, ssa x, bool is_tanh)
{
    if (e->options.gelu == STABLEHLO_GELU_TANH_BF16 && x.dtype == DTYPE_F32)
        return hlo_convert(e, gelu_by_tanh(e, hlo_convert(e, x, DTYPE_BF16)), x.dtype);
    if (is_tanh || e->options.gelu != STABLEHLO_GELU_EXACT)
        return gelu_by_tanh(e, x);
    ssa inner = hlo_erf(e, hlo_scalar_binary(e, "multiply", x, M_SQRT1_2));
    ssa half = hlo_scalar_binary(e, "multiply", x, 0.5);
    return hlo_binary(e, "multiply", half, hlo_scalar_binary(e, "add", inner, 1));
}

/* log(1 + exp(x)) without overflow. */
static ssa softplus(emitter *e, ssa x)
{
    ssa magnitude = hlo_unary(e, "negate", hlo_unary(e, "abs", x));
    ssa rest = hlo_unary(e, "log_plus_one", hlo_unary(e, "exponential", magnitude));
    return hlo_binary(e, "add", hlo_scalar_binary(e, "maximum", x, 0), rest);
}

static ssa choose_positive(emitter *e, ssa x, ssa positive, ssa other)
{
    return hlo_select(e, hlo_compare(e, "GT", x, hlo_splat_like(e, &x, 0)), positive, other);
}

/* alpha (exp(x / beta) - 1) */
static ssa shifted_exponential(emitter *e, ssa x, double alpha, double beta)
{
    ssa inner = beta == 1 ? x : hlo_scalar_binary(e, "divide", x, beta);
    return hlo_scalar_binary(e, "multiply", hlo_unary(e, "exponential_minus_one", inner), alpha);
}

static ssa hard_sigmoid(emitter *e, ssa x, double alpha, double beta)
{
    ssa line = hlo_scalar_binary(e, "add", hlo_scalar_binary(e, "multiply", x, alpha), beta);
    return hlo_clamp(e, line, 0, 1);
}

static status emit_activation(emitter *e, const graph_node *n)
{
    ssa x = emit_input(e, n, 0), v;
    double alpha =
        (double)graph_attribute_float(n, "alpha",
                                      n->op == GRAPH_OP_LEAKY_RELU     ? 0.01f
                                      : n->op == GRAPH_OP_HARD_SIGMOID ? 0.2f
                                      : n->op == GRAPH_OP_SELU         ? 1.67326319217681884765625f
                                                                       : 1.0f);
    switch (n->op) {
    case GRAPH_OP_RELU:
        v = hlo_scalar_binary(e, "maximum", x, 0);
        break;
    case GRAPH_OP_RECIPROCAL:
        v = hlo_binary(e, "divide", hlo_splat_like(e, &x, 1), x);
        break;
    case GRAPH_OP_ERF:
        v = hlo_erf(e, x);
        break;
    case GRAPH_OP_GELU:
        v = gelu(e, x, strcmp(graph_attribute_string(n, "approximate", "none"), "tanh") == 0);
        if (e->options.is_gelu_apart && v.dtype == DTYPE_F32)
            v = emit_rounded_apart(e, v);
        break;
    case GRAPH_OP_LEAKY_RELU:
        v = choose_positive(e, x, x, hlo_scalar_binary(e, "multiply", x, alpha));
        break;
    case GRAPH_OP_THRESHOLDED_RELU:
        v = hlo_select(e, hlo_compare(e, "GT", x, hlo_splat_like(e, &x, alpha)), x,
                       hlo_splat_like(e, &x, 0));
        break;
    case GRAPH_OP_ELU:
        v = choose_positive(e, x, x, shifted_exponential(e, x, alpha, 1));
        break;
    case GRAPH_OP_CELU:
        v = choose_positive(e, x, x, shifted_exponential(e, x, alpha, alpha));
        break;
    case GRAPH_OP_SELU:
        v = hlo_scalar_binary(
            e, "multiply", choose_positive(e, x, x, shifted_exponential(e, x, alpha, 1)),
            (double)graph_attribute_float(n, "gamma", 1.05070102214813232421875f));
        break;
    case GRAPH_OP_HARD_SIGMOID:
        v = hard_sigmoid(e, x, alpha, (double)graph_attribute_float(n, "beta", 0.5f));
        break;
    case GRAPH_OP_HARD_SWISH:
        v = hlo_binary(e, "multiply", x, hard_sigmoid(e, x, 1.0 / 6, 0.5));
        break;
    case GRAPH_OP_SOFTPLUS:
        v = softplus(e, x);
        break;
    case GRAPH_OP_MISH:
        v = hlo_binary(e, "multiply", x, hlo_unary(e, "tanh", softplus(e, x)));
        break;
    case GRAPH_OP_SOFTSIGN:
        v = hlo_binary(e, "divide", x, hlo_scalar_binary(e, "add", hlo_unary(e, "abs", x), 1));
        break;
    case GRAPH_OP_IS_NAN:
        v = hlo_compare(e, "NE", x, x);
        break;
    default:
        return status_fail(STATUS_INTERNAL, "no such activation");
    }
    emit_output(e, n, 0, v);
    return STATUS_OK;
}

static status emit_prelu(emitter *e, const graph_node *n)
{
    ssa x = emit_input(e, n, 0);
    emit_output(
        e, n, 0,
        choose_positive(e, x, x, hlo_broadcast_binary(e, "multiply", x, emit_input(e, n, 1))));
    return STATUS_OK;
}

static status emit_clip(emitter *e, const graph_node *n)
{
    ssa x = emit_input(e, n, 0);
    if (emit_has_input(n, 1))
        x = hlo_broadcast_binary(e, "maximum", x, emit_input(e, n, 1));
    if (emit_has_input(n, 2))
        x = hlo_broadcast_binary(e, "minimum", x, emit_input(e, n, 2));
    emit_output(e, n, 0, x);
    return STATUS_OK;
}

emit_fn emit_find_elementwise(graph_op op)
{
    if (name_in(unary_ops, COUNT_OF(unary_ops), op))
        return emit_unary;
    if (name_in(binary_ops, COUNT_OF(binary_ops), op))
        return emit_binary;
    if (name_in(many_ops, COUNT_OF(many_ops), op))
        return emit_many;
    if (name_in(compare_ops, COUNT_OF(compare_ops), op))
        return emit_compare;
    switch (op) {
    case GRAPH_OP_WHERE:
        return emit_where;
    case GRAPH_OP_CAST:
    case GRAPH_OP_CAST_LIKE:
        return emit_cast;
    case GRAPH_OP_POW:
        return emit_pow;
    case GRAPH_OP_PRELU:
        return emit_prelu;
    case GRAPH_OP_CLIP:
        return emit_clip;
    case GRAPH_OP_RELU:
    case GRAPH_OP_RECIPROCAL:
    case GRAPH_OP_ERF:
    case GRAPH_OP_GELU:
    case GRAPH_OP_LEAKY_RELU:
    case GRAPH_OP_THRESHOLDED_RELU:
    case GRAPH_OP_ELU:
    case GRAPH_OP_CELU:
    case GRAPH_OP_SELU:
    case GRAPH_OP_HARD_SIGMOID:
    case GRAPH_OP_HARD_SWISH:
    case GRAPH_OP_SOFTPLUS:
    case GRAPH_OP_MISH:
    case GRAPH_OP_SOFTSIGN:
    case GRAPH_OP_IS_NAN:
        return emit_activation;
    default:
        return NULL;
    }
}

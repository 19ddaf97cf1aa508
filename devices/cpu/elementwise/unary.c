#include <math.h>

#include "devices/cpu/elementwise/unary_blocks.h"
#include "devices/cpu/ops/split.h"
#include "devices/cpu/tensor_loops/block.h"
#include "kernels/activation.h"
#include "kernels/lines.h"

/* Operators that take each element by itself. F16 and BF16 are computed as float. */

#define PARAMETERS_MAX 2
#define PIECE 16384 /* floats that one thread computes at a time */

typedef void (*unary_i64_block)(const int64_t *in, int64_t *out, size_t count);

/* Operators with parameters or with integers; the others have neither. */
typedef struct unary_row {
    graph_op op;
    unary_i64_block i64;               /* NULL: floats only */
    const char *names[PARAMETERS_MAX]; /* attributes: the parameters of the blocks */
    float defaults[PARAMETERS_MAX];
} unary_row;

static void abs_i64(const int64_t *in, int64_t *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = in[i] < 0 ? (int64_t)(0 - (uint64_t)in[i]) : in[i];
}

static void neg_i64(const int64_t *in, int64_t *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (int64_t)(0 - (uint64_t)in[i]);
}

static void relu_i64(const int64_t *in, int64_t *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = in[i] < 0 ? 0 : in[i];
}

static void sign_i64(const int64_t *in, int64_t *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (in[i] > 0) - (in[i] < 0);
}

static void copy_i64(const int64_t *in, int64_t *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = in[i];
}

static const unary_row unary_rows[] = {
    {GRAPH_OP_ABS, abs_i64, {0}, {0}},
    {GRAPH_OP_CEIL, copy_i64, {0}, {0}},
    {GRAPH_OP_CELU, NULL, {"alpha"}, {1}},
    {GRAPH_OP_ELU, NULL, {"alpha"}, {1}},
    {GRAPH_OP_FLOOR, copy_i64, {0}, {0}},
    {GRAPH_OP_HARD_SIGMOID, NULL, {"alpha", "beta"}, {0.2f, 0.5f}},
    {GRAPH_OP_LEAKY_RELU, NULL, {"alpha"}, {0.01f}},
    {GRAPH_OP_NEG, neg_i64, {0}, {0}},
    {GRAPH_OP_RELU, relu_i64, {0}, {0}},
    {GRAPH_OP_ROUND, copy_i64, {0}, {0}},
    {GRAPH_OP_SELU,
     NULL,
     {"alpha", "gamma"},
     {1.67326319217681884765625f, 1.05070102214813232421875f}},
    {GRAPH_OP_SHRINK, NULL, {"bias", "lambd"}, {0, 0.5f}},
    {GRAPH_OP_SIGN, sign_i64, {0}, {0}},
    {GRAPH_OP_THRESHOLDED_RELU, NULL, {"alpha"}, {1}},
};

static unary_row row_of(graph_op op)
{
    for (size_t i = 0; i < sizeof unary_rows / sizeof unary_rows[0]; i++)
        if (unary_rows[i].op == op)
            return unary_rows[i];
    return (unary_row){.op = op};
}

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
    case GRAPH_OP_FUSED_SILU:
        return k->silu_f32;
    case GRAPH_OP_GELU:
        return is_tanh_gelu ? k->gelu_tanh_f32 : k->gelu_f32;
    default:
        return NULL;
    }
}

/* The kind of kernels/activation.h that computes F32, or ACTIVATION_COUNT. */
static activation_kind activation_of(graph_op op)
{
    switch (op) {
    case GRAPH_OP_LEAKY_RELU:
        return ACTIVATION_LEAKY_RELU;
    case GRAPH_OP_HARD_SIGMOID:
        return ACTIVATION_HARD_SIGMOID;
    case GRAPH_OP_HARD_SWISH:
        return ACTIVATION_HARD_SWISH;
    case GRAPH_OP_ELU:
        return ACTIVATION_ELU;
    case GRAPH_OP_SOFTPLUS:
        return ACTIVATION_SOFTPLUS;
    case GRAPH_OP_MISH:
        return ACTIVATION_MISH;
    case GRAPH_OP_LOG:
        return ACTIVATION_LOG;
    case GRAPH_OP_SQRT:
        return ACTIVATION_SQRT;
    case GRAPH_OP_ABS:
        return ACTIVATION_ABS;
    case GRAPH_OP_NEG:
        return ACTIVATION_NEGATE;
    case GRAPH_OP_SELU:
        return ACTIVATION_SELU;
    case GRAPH_OP_CELU:
        return ACTIVATION_CELU;
    case GRAPH_OP_ATAN:
        return ACTIVATION_ATAN;
    case GRAPH_OP_FLOOR:
        return ACTIVATION_FLOOR;
    case GRAPH_OP_CEIL:
        return ACTIVATION_CEIL;
    case GRAPH_OP_ROUND:
        return ACTIVATION_ROUND;
    case GRAPH_OP_SIN:
        return ACTIVATION_SIN;
    case GRAPH_OP_COS:
        return ACTIVATION_COS;
    case GRAPH_OP_TAN:
        return ACTIVATION_TAN;
    case GRAPH_OP_ASIN:
        return ACTIVATION_ASIN;
    case GRAPH_OP_ACOS:
        return ACTIVATION_ACOS;
    case GRAPH_OP_SINH:
        return ACTIVATION_SINH;
    case GRAPH_OP_COSH:
        return ACTIVATION_COSH;
    case GRAPH_OP_ASINH:
        return ACTIVATION_ASINH;
    case GRAPH_OP_ACOSH:
        return ACTIVATION_ACOSH;
    case GRAPH_OP_ATANH:
        return ACTIVATION_ATANH;
    default:
        return ACTIVATION_COUNT;
    }
}

typedef struct unary_state {
    cpu_unary_f32_block f32;
    cpu_unary_f64_block f64;
    unary_i64_block i64;
    kernels_unary_f32 kernel;   /* NULL, or what computes F32 */
    activation_kind activation; /* that of `kernels`, or ACTIVATION_COUNT */
    const kernels *kernels;
    float parameters[PARAMETERS_MAX];
} unary_state;

static status prepare_unary(cpu_prepare *p)
{
    const graph_node *node = p->node;
    unary_state *state = arena_allocate(p->memory, sizeof *state);
    if (!state)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    const char *approximate = graph_attribute_string(node, "approximate", "none");
    bool is_tanh_gelu = node->op == GRAPH_OP_GELU && approximate[0] == 't';
    int block = is_tanh_gelu ? CPU_UNARY_GELU_TANH : (int)node->op;
    unary_row row = row_of(node->op);
    *state = (unary_state){.f32 = cpu_unary_f32_blocks[block],
                           .f64 = cpu_unary_f64_blocks[block],
                           .i64 = row.i64,
                           .kernel = kernel_of(p->kernels, node->op, is_tanh_gelu),
                           .activation = activation_of(node->op),
                           .kernels = p->kernels};
    for (int a = 0; a < PARAMETERS_MAX; a++) {
        const char *name = row.names[a];
        float otherwise = row.defaults[a];
        state->parameters[a] = name ? graph_attribute_float(node, name, otherwise) : otherwise;
    }
    dtype type = p->inputs[0]->dtype;
    if (type >= DTYPE_BYTES ||
        (!dtype_is_float(type) && !state->i64 && node->op != GRAPH_OP_SHRINK))
        return cpu_op_fail_dtype(node, type);
    p->state = state;
    return STATUS_OK;
}

static void run_f32(const unary_state *state, const float *in, float *out, size_t count)
{
    if (state->kernel)
        state->kernel(in, out, count);
    else if (state->activation != ACTIVATION_COUNT)
        state->kernels->activation_f32(&(activation_f32){.kind = state->activation,
                                                         .a = state->parameters[0],
                                                         .b = state->parameters[1],
                                                         .in = in,
                                                         .out = out,
                                                         .count = count});
    else
        state->f32(in, out, count, state->parameters);
}

static void run_block(const unary_state *state, cpu_compute compute, const cpu_block *in,
                      cpu_block *out, size_t count)
{
    if (compute == CPU_COMPUTE_F32)
        run_f32(state, in->f32, out->f32, count);
    else if (compute == CPU_COMPUTE_F64)
        state->f64(in->f64, out->f64, count, state->parameters);
    else
        state->i64(in->i64, out->i64, count);
}

typedef struct f32_run {
    const unary_state *state;
    const float *in;
    float *out;
    size_t count;
} f32_run;

static void run_piece(const void *context, void *memory, size_t unit)
{
    (void)memory;
    const f32_run *r = context;
    size_t first = unit * PIECE, count = r->count - first < PIECE ? r->count - first : PIECE;
    run_f32(r->state, r->in + first, r->out + first, count);
}

/* Whether Abs, Neg, Relu or Sign of the type are made of pairs with a number. */
static bool is_of_pairs(graph_op op, dtype type)
{
    return type != DTYPE_F64 && combine_line_has(COMBINE_MAX, type) &&
           (op == GRAPH_OP_ABS || op == GRAPH_OP_NEG || op == GRAPH_OP_RELU || op == GRAPH_OP_SIGN);
}

static void run_pairs(const cpu_call *c, void *memory, size_t first, size_t count)
{
    (void)memory;
    dtype type = c->inputs[0]->dtype;
    size_t bytes = dtype_bytes(type);
    const int64_t none = 0, one = 1, minus_one = -1; /* little-endian: of any width */
    const char *in = (const char *)c->inputs[0]->data + first * bytes;
    char *out = (char *)c->outputs[0].data + first * bytes;
    cpu_block some;
    const size_t most = sizeof some / bytes;
    for (size_t i = 0, n; i < count; i += n) {
        n = count - i < most ? count - i : most;
        const void *x = in + i * bytes;
        void *y = out + i * bytes;
        combine_line max = {COMBINE_MAX, type, x, 1, &none, 0, y, n};
        combine_line negate = {COMBINE_SUB, type, &none, 0, x, 1, y, n};
        combine_line least = {COMBINE_MIN, type, x, 1, &one, 0, y, n};
        if (c->node->op == GRAPH_OP_NEG) {
            c->kernels->combine_line(&negate);
        } else if (c->node->op == GRAPH_OP_RELU ||
                   (c->node->op == GRAPH_OP_ABS && type == DTYPE_U8)) {
            c->kernels->combine_line(&max);
        } else if (c->node->op == GRAPH_OP_ABS) {
            negate.out = &some;
            c->kernels->combine_line(&negate);
            max.b = &some;
            max.b_step = 1;
            c->kernels->combine_line(&max);
        } else if (type == DTYPE_U8) {
            c->kernels->combine_line(&least);
        } else {
            least.out = &some;
            c->kernels->combine_line(&least);
            max.a = &some;
            max.b = &minus_one;
            c->kernels->combine_line(&max);
        }
    }
}

static status run_unary(const cpu_call *c)
{
    const unary_state *state = c->state;
    const tensor *in = c->inputs[0], *out = &c->outputs[0];
    size_t count = (size_t)tensor_count(in);
    if (in->dtype == DTYPE_F32) {
        f32_run r = {state, in->data, out->data, count};
        cpu_split(c, (double)count / 2, run_piece, &r, (count + PIECE - 1) / PIECE);
        return STATUS_OK;
    }
    if (is_of_pairs(c->node->op, in->dtype)) {
        cpu_split_rows(c, (double)count / 8, run_pairs, count);
        return STATUS_OK;
    }
    /* Every other operator on U64 is the identity: Abs, Relu, Ceil ... */
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
    if (!state->i64 && compute == CPU_COMPUTE_I64)
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

/* out[i] = in[i] kind value, as bytes. */
static void compare_some(const cpu_call *c, combine_kind kind, const void *value, size_t step,
                         size_t first, size_t count)
{
    const tensor *in = c->inputs[0];
    size_t at = first * dtype_bytes(in->dtype);
    c->kernels->combine_line(&(combine_line){.kind = kind,
                                             .type = in->dtype == DTYPE_BOOL ? DTYPE_U8 : in->dtype,
                                             .a = (const char *)in->data + at,
                                             .a_step = 1,
                                             .b = (const char *)value + step * at,
                                             .b_step = step,
                                             .out = (uint8_t *)c->outputs[0].data + first,
                                             .count = count});
}

static void not_some(const cpu_call *c, void *memory, size_t first, size_t count)
{
    (void)memory;
    compare_some(c, COMBINE_EQUAL, &(uint8_t){0}, 0, first, count);
}

static status run_not(const cpu_call *c)
{
    size_t count = (size_t)tensor_count(c->inputs[0]);
    cpu_split_rows(c, (double)count / 16, not_some, count);
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

static void is_infinite_some(const cpu_call *c, void *memory, size_t first, size_t count)
{
    (void)memory;
    bool has_positive = graph_attribute_int(c->node, "detect_positive", 1) != 0;
    bool has_negative = graph_attribute_int(c->node, "detect_negative", 1) != 0;
    const float infinity = has_positive ? INFINITY : has_negative ? -INFINITY : NAN;
    if (!has_positive || !has_negative) {
        compare_some(c, COMBINE_EQUAL, &infinity, 0, first, count);
        return;
    }
    float sizes[CPU_BLOCK_ELEMENTS];
    for (size_t i = first, n; i < first + count; i += n) {
        n = first + count - i < CPU_BLOCK_ELEMENTS ? first + count - i : CPU_BLOCK_ELEMENTS;
        c->kernels->activation_f32(&(activation_f32){.kind = ACTIVATION_ABS,
                                                     .in = (const float *)c->inputs[0]->data + i,
                                                     .out = sizes,
                                                     .count = n});
        c->kernels->combine_line(&(combine_line){COMBINE_EQUAL, DTYPE_F32, sizes, 1, &infinity, 0,
                                                 (uint8_t *)c->outputs[0].data + i, n});
    }
}

static void is_nan_some(const cpu_call *c, void *memory, size_t first, size_t count)
{
    (void)memory;
    compare_some(c, COMBINE_NOT_EQUAL, c->inputs[0]->data, 1, first, count);
}

static status run_is_special(const cpu_call *c)
{
    const tensor *in = c->inputs[0];
    if (!dtype_is_float(in->dtype))
        return cpu_op_fail_dtype(c->node, in->dtype);
    if (in->dtype == DTYPE_F32) {
        cpu_split_rows(c, (double)tensor_count(in) / 4,
                       c->node->op == GRAPH_OP_IS_NAN ? is_nan_some : is_infinite_some,
                       (size_t)tensor_count(in));
        return STATUS_OK;
    }
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

static const cpu_op table[] = {
    {GRAPH_OP_ABS, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_ACOS, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_ACOSH, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_ASIN, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_ASINH, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_ATAN, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_ATANH, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_CEIL, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_CELU, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_COS, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_COSH, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_ELU, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_ERF, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_EXP, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_FLOOR, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_GELU, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_HARD_SIGMOID, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_LOG, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_HARD_SWISH, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_LEAKY_RELU, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_MISH, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_NEG, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_RECIPROCAL, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_RELU, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_ROUND, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_SELU, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_SHRINK, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_SIGMOID, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_SIGN, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_SIN, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_SINH, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_SOFTPLUS, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_SOFTSIGN, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_SQRT, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_TAN, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_TANH, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_THRESHOLDED_RELU, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_FUSED_SILU, prepare_unary, run_unary, 0, false},
    {GRAPH_OP_NOT, NULL, run_not, 0, false},
    {GRAPH_OP_BITWISE_NOT, NULL, run_bitwise_not, 0, false},
    {GRAPH_OP_IS_INF, NULL, run_is_special, 0, false},
    {GRAPH_OP_IS_NAN, NULL, run_is_special, 0, false},
};

const cpu_op_family cpu_ops_unary = {table, sizeof table / sizeof table[0]};

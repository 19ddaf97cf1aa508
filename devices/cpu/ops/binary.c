#include <assert.h>
#include <math.h>
#include <string.h>
#include <tgmath.h>

#include "devices/cpu/ops/op.h"
#include "devices/cpu/tensor_loops/block.h"
#include "devices/cpu/tensor_loops/walk.h"

/* Operators of two (or more) broadcast inputs. A formula is made for each type we compute in. */

typedef void (*binary_block)(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count);

typedef struct binary_formula {
    graph_op op;
    binary_block blocks[CPU_COMPUTE_COUNT]; /* NULL: not defined for that type */
    bool is_compare;                        /* blocks write out->u8 */
} binary_formula;

#define FORMULA(name, type, member, out_member, expression)                                        \
    static void name(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)         \
    {                                                                                              \
        for (size_t i = 0; i < count; i++) {                                                       \
            type x = a->member[i], y = b->member[i];                                               \
            out->out_member[i] = (expression);                                                     \
        }                                                                                          \
    }

#define WRAP(x, operator, y) (int64_t)((uint64_t)(x) operator(uint64_t)(y))

FORMULA(add_f32, float, f32, f32, x + y)
FORMULA(add_f64, double, f64, f64, x + y)
FORMULA(add_i64, int64_t, i64, i64, WRAP(x, +, y))
FORMULA(add_u64, uint64_t, u64, u64, x + y)
FORMULA(sub_f32, float, f32, f32, x - y)
FORMULA(sub_f64, double, f64, f64, x - y)
FORMULA(sub_i64, int64_t, i64, i64, WRAP(x, -, y))
FORMULA(sub_u64, uint64_t, u64, u64, x - y)
FORMULA(mul_f32, float, f32, f32, x *y)
FORMULA(mul_f64, double, f64, f64, x *y)
FORMULA(mul_i64, int64_t, i64, i64, WRAP(x, *, y))
FORMULA(mul_u64, uint64_t, u64, u64, x *y)
FORMULA(div_f32, float, f32, f32, x / y)
FORMULA(div_f64, double, f64, f64, x / y)
/* Integers: toward zero; x / 0 is 0, as in NumPy, because padding may divide by it. */
FORMULA(div_i64, int64_t, i64, i64, y == 0 ? 0 : y == -1 ? WRAP(0, -, x) : x / y)
FORMULA(div_u64, uint64_t, u64, u64, y == 0 ? 0 : x / y)
FORMULA(max_f32, float, f32, f32, x > y || x != x ? x : y)
FORMULA(max_f64, double, f64, f64, x > y || x != x ? x : y)
FORMULA(max_i64, int64_t, i64, i64, x > y ? x : y)
FORMULA(max_u64, uint64_t, u64, u64, x > y ? x : y)
FORMULA(min_f32, float, f32, f32, x < y || x != x ? x : y)
FORMULA(min_f64, double, f64, f64, x < y || x != x ? x : y)
FORMULA(min_i64, int64_t, i64, i64, x < y ? x : y)
FORMULA(min_u64, uint64_t, u64, u64, x < y ? x : y)
FORMULA(prelu_f32, float, f32, f32, x < 0 ? x * y : x)
FORMULA(prelu_f64, double, f64, f64, x < 0 ? x * y : x)
FORMULA(prelu_i64, int64_t, i64, i64, x < 0 ? WRAP(x, *, y) : x)
FORMULA(prelu_u64, uint64_t, u64, u64, ((void)y, x))
/* Mod with fmod = 0: the sign of the divisor; with fmod = 1: of the dividend. */
static double floored_mod(double x, double y)
{
    double r = fmod(x, y);
    if (r == 0)
        return copysign(r, y);
    return (r < 0) != (y < 0) ? r + y : r;
}

FORMULA(mod_f32, float, f32, f32, floored_mod(x, y))
FORMULA(mod_f64, double, f64, f64, floored_mod(x, y))
FORMULA(mod_i64, int64_t, i64, i64,
        y == 0 || y == -1                        ? 0
        : (x % y != 0) && (x % y < 0) != (y < 0) ? x % y + y
                                                 : x % y)
FORMULA(mod_u64, uint64_t, u64, u64, y == 0 ? 0 : x % y)
FORMULA(fmod_f32, float, f32, f32, fmod(x, y))
FORMULA(fmod_f64, double, f64, f64, fmod(x, y))
FORMULA(fmod_i64, int64_t, i64, i64, y == 0 || y == -1 ? 0 : x % y)
FORMULA(pow_f32, float, f32, f32, y == 2 ? x * x : pow(x, y))
FORMULA(pow_f64, double, f64, f64, pow(x, y))
FORMULA(bitwise_and_i64, int64_t, i64, i64, x &y)
FORMULA(bitwise_or_i64, int64_t, i64, i64, x | y)
FORMULA(bitwise_xor_i64, int64_t, i64, i64, x ^ y)
/* Signed: beyond the width, and for negative distances, only the sign's extension is left. */
FORMULA(shift_left_i64, int64_t, i64, i64, y<0 || y> 63 ? 0 : (int64_t)((uint64_t)x << y))
FORMULA(shift_right_i64, int64_t, i64, i64, y<0 || y> 63 ? (x < 0 ? -1 : 0) : x >> y)
FORMULA(shift_left_u64, uint64_t, u64, u64, y < 64 ? x << y : 0)
FORMULA(shift_right_u64, uint64_t, u64, u64, y < 64 ? x >> y : 0)
FORMULA(and_i64, int64_t, i64, u8, x &&y)
FORMULA(or_i64, int64_t, i64, u8, x || y)
FORMULA(xor_i64, int64_t, i64, u8, !x != !y)
FORMULA(equal_f32, float, f32, u8, x == y)
FORMULA(equal_f64, double, f64, u8, x == y)
FORMULA(equal_i64, int64_t, i64, u8, x == y)
FORMULA(less_f32, float, f32, u8, x < y)
FORMULA(less_f64, double, f64, u8, x < y)
FORMULA(less_i64, int64_t, i64, u8, x < y)
FORMULA(less_u64, uint64_t, u64, u8, x < y)
FORMULA(less_or_equal_f32, float, f32, u8, x <= y)
FORMULA(less_or_equal_f64, double, f64, u8, x <= y)
FORMULA(less_or_equal_i64, int64_t, i64, u8, x <= y)
FORMULA(less_or_equal_u64, uint64_t, u64, u8, x <= y)
FORMULA(greater_f32, float, f32, u8, x > y)
FORMULA(greater_f64, double, f64, u8, x > y)
FORMULA(greater_i64, int64_t, i64, u8, x > y)
FORMULA(greater_u64, uint64_t, u64, u8, x > y)
FORMULA(greater_or_equal_f32, float, f32, u8, x >= y)
FORMULA(greater_or_equal_f64, double, f64, u8, x >= y)
FORMULA(greater_or_equal_i64, int64_t, i64, u8, x >= y)
FORMULA(greater_or_equal_u64, uint64_t, u64, u8, x >= y)

static void pow_i64(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t base = a->u64[i], result = 1;
        int64_t exponent = b->i64[i];
        if (exponent < 0) /* 1 / base^n, toward zero */
            result = base == 1 ? 1 : base == UINT64_MAX ? (exponent & 1 ? UINT64_MAX : 1) : 0;
        for (; exponent > 0; exponent >>= 1, base *= base)
            if (exponent & 1)
                result *= base;
        out->u64[i] = result;
    }
}

static const binary_formula formulas[] = {
    {GRAPH_OP_ADD, {add_f32, add_f64, add_i64, add_u64}, false},
    {GRAPH_OP_SUM, {add_f32, add_f64, add_i64, add_u64}, false},
    {GRAPH_OP_MEAN, {add_f32, add_f64, NULL, NULL}, false},
    {GRAPH_OP_SUB, {sub_f32, sub_f64, sub_i64, sub_u64}, false},
    {GRAPH_OP_MUL, {mul_f32, mul_f64, mul_i64, mul_u64}, false},
    {GRAPH_OP_DIV, {div_f32, div_f64, div_i64, div_u64}, false},
    {GRAPH_OP_MAX, {max_f32, max_f64, max_i64, max_u64}, false},
    {GRAPH_OP_MIN, {min_f32, min_f64, min_i64, min_u64}, false},
    {GRAPH_OP_PRELU, {prelu_f32, prelu_f64, prelu_i64, prelu_u64}, false},
    {GRAPH_OP_MOD, {mod_f32, mod_f64, mod_i64, mod_u64}, false},
    {GRAPH_OP_POW, {pow_f32, pow_f64, pow_i64, pow_i64}, false},
    {GRAPH_OP_BITWISE_AND, {NULL, NULL, bitwise_and_i64, bitwise_and_i64}, false},
    {GRAPH_OP_BITWISE_OR, {NULL, NULL, bitwise_or_i64, bitwise_or_i64}, false},
    {GRAPH_OP_BITWISE_XOR, {NULL, NULL, bitwise_xor_i64, bitwise_xor_i64}, false},
    {GRAPH_OP_BIT_SHIFT, {NULL, NULL, shift_left_u64, shift_left_u64}, false},
    {GRAPH_OP_AND, {NULL, NULL, and_i64, NULL}, true},
    {GRAPH_OP_OR, {NULL, NULL, or_i64, NULL}, true},
    {GRAPH_OP_XOR, {NULL, NULL, xor_i64, NULL}, true},
    {GRAPH_OP_EQUAL, {equal_f32, equal_f64, equal_i64, equal_i64}, true},
    {GRAPH_OP_LESS, {less_f32, less_f64, less_i64, less_u64}, true},
    {GRAPH_OP_LESS_OR_EQUAL,
     {less_or_equal_f32, less_or_equal_f64, less_or_equal_i64, less_or_equal_u64},
     true},
    {GRAPH_OP_GREATER, {greater_f32, greater_f64, greater_i64, greater_u64}, true},
    {GRAPH_OP_GREATER_OR_EQUAL,
     {greater_or_equal_f32, greater_or_equal_f64, greater_or_equal_i64, greater_or_equal_u64},
     true},
};

typedef struct binary_state {
    binary_block block;
    cpu_compute compute;
    kernels_binary_f32 kernel; /* NULL, or what computes F32 */
    bool is_compare;
} binary_state;

static kernels_binary_f32 kernel_of(const kernels *k, graph_op op)
{
    switch (op) {
    case GRAPH_OP_ADD:
    case GRAPH_OP_SUM:
    case GRAPH_OP_MEAN:
        return k->add_f32;
    case GRAPH_OP_SUB:
        return k->sub_f32;
    case GRAPH_OP_MUL:
        return k->mul_f32;
    case GRAPH_OP_DIV:
        return k->div_f32;
    case GRAPH_OP_MAX:
        return k->max_f32;
    case GRAPH_OP_MIN:
        return k->min_f32;
    default:
        return NULL;
    }
}

static bool is_float_block(cpu_compute c)
{
    return c == CPU_COMPUTE_F32 || c == CPU_COMPUTE_F64;
}

static status prepare_binary(cpu_prepare *p)
{
    const graph_node *node = p->node;
    dtype type = p->inputs[0]->dtype;
    if (type >= DTYPE_BYTES)
        return cpu_op_fail_dtype(node, type);
    cpu_compute compute = cpu_compute_of(type);
    size_t i = 0;
    while (formulas[i].op != node->op)
        i++;
    binary_block block;
    if (node->op == GRAPH_OP_POW) { /* its exponent has a type of its own */
        cpu_compute other = cpu_compute_of(p->inputs[1]->dtype);
        if (!is_float_block(compute) && is_float_block(other))
            compute = CPU_COMPUTE_F64;
    }
    block = formulas[i].blocks[compute];
    if (node->op == GRAPH_OP_MOD && graph_attribute_int(node, "fmod", 0)) {
        static const binary_block fmods[] = {fmod_f32, fmod_f64, fmod_i64, mod_u64};
        block = fmods[compute];
    }
    if (node->op == GRAPH_OP_BIT_SHIFT) {
        bool is_right = graph_attribute_string(node, "direction", "LEFT")[0] == 'R';
        bool is_signed = dtype_integer_min(type) < 0;
        compute = is_signed ? CPU_COMPUTE_I64 : CPU_COMPUTE_U64;
        block = is_signed  ? is_right ? shift_right_i64 : shift_left_i64
                : is_right ? shift_right_u64
                           : shift_left_u64;
    }
    if (!block)
        return cpu_op_fail_dtype(node, type);
    binary_state *state = arena_allocate(p->memory, sizeof *state);
    if (!state)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    *state = (binary_state){.block = block,
                            .compute = compute,
                            .kernel = type == DTYPE_F32 ? kernel_of(p->kernels, node->op) : NULL,
                            .is_compare = formulas[i].is_compare};
    p->state = state;
    return STATUS_OK;
}

static void run_pair(const binary_state *state, const tensor *a, const tensor *b, tensor *out)
{
    cpu_walk w;
    cpu_walk_broadcast(&w, out, 2, (const tensor *const[]){a, b});
    int64_t run = cpu_walk_run(&w), a_step = cpu_walk_step(&w, 1), b_step = cpu_walk_step(&w, 2);
    cpu_cursor c;
    for (bool more = cpu_walk_start(&w, &c); more; more = cpu_walk_next(&w, &c)) {
        if (state->kernel) {
            /* Dense inputs: along a run they step by one or repeat. */
            assert((a_step | b_step | 1) == 1);
            state->kernel((const float *)a->data + c.offsets[1], (size_t)a_step,
                          (const float *)b->data + c.offsets[2], (size_t)b_step,
                          (float *)out->data + c.offsets[0], (size_t)run);
            continue;
        }
        cpu_block x, y, z;
        for (int64_t i = 0; i < run; i += CPU_BLOCK_ELEMENTS) {
            size_t n = (size_t)(run - i < CPU_BLOCK_ELEMENTS ? run - i : CPU_BLOCK_ELEMENTS);
            cpu_load(state->compute, a->dtype, a->data, c.offsets[1] + i * a_step, a_step, n, &x);
            cpu_load(state->compute, b->dtype, b->data, c.offsets[2] + i * b_step, b_step, n, &y);
            state->block(&x, &y, &z, n);
            if (state->is_compare)
                memcpy((uint8_t *)out->data + c.offsets[0] + i, z.u8, n);
            else
                cpu_store(state->compute, out->dtype, &z, out->data, c.offsets[0] + i, 1, n);
        }
    }
}

static bool strings_equal(const tensor_string *a, const tensor_string *b)
{
    return a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

/* Equal of strings: the one operator on pairs that takes them. */
static void run_equal_strings(const tensor *a, const tensor *b, tensor *out)
{
    cpu_walk w;
    cpu_walk_broadcast(&w, out, 2, (const tensor *const[]){a, b});
    cpu_cursor c;
    const tensor_string *x = a->data, *y = b->data;
    for (bool more = cpu_walk_start(&w, &c); more; more = cpu_walk_next(&w, &c))
        for (int64_t i = 0; i < cpu_walk_run(&w); i++)
            ((uint8_t *)out->data)[c.offsets[0] + i] =
                strings_equal(&x[c.offsets[1] + i * cpu_walk_step(&w, 1)],
                              &y[c.offsets[2] + i * cpu_walk_step(&w, 2)]);
}

static status prepare_equal(cpu_prepare *p)
{
    return p->inputs[0]->dtype == DTYPE_BYTES ? STATUS_OK : prepare_binary(p);
}

static status run_binary(const cpu_call *c)
{
    if (c->inputs[0]->dtype == DTYPE_BYTES)
        run_equal_strings(c->inputs[0], c->inputs[1], &c->outputs[0]);
    else
        run_pair(c->state, c->inputs[0], c->inputs[1], &c->outputs[0]);
    return STATUS_OK;
}

static void broadcast_copy(const tensor *in, tensor *out)
{
    cpu_walk w;
    cpu_walk_broadcast(&w, out, 1, &in);
    cpu_cursor c;
    size_t bytes = dtype_bytes(in->dtype);
    for (bool more = cpu_walk_start(&w, &c); more; more = cpu_walk_next(&w, &c)) {
        int64_t step = cpu_walk_step(&w, 1), run = cpu_walk_run(&w);
        const char *from = (const char *)in->data + c.offsets[1] * (int64_t)bytes;
        char *to = (char *)out->data + c.offsets[0] * (int64_t)bytes;
        cpu_copy_strided(bytes, 1, &run, from, &step, to, &(int64_t){1});
    }
}

/* Sum, Mean, Max, Min of any number of inputs: out = in0, then out = out op in1, and so on. */
static status run_variadic(const cpu_call *c)
{
    tensor *out = &c->outputs[0];
    int count = c->node->input_count;
    if (count == 1)
        broadcast_copy(c->inputs[0], out);
    else
        run_pair(c->state, c->inputs[0], c->inputs[1], out);
    for (int i = 2; i < count; i++)
        run_pair(c->state, out, c->inputs[i], out);
    if (c->node->op != GRAPH_OP_MEAN)
        return STATUS_OK;
    cpu_block x;
    int64_t total = tensor_count(out);
    for (int64_t i = 0; i < total; i += CPU_BLOCK_ELEMENTS) {
        size_t n = (size_t)(total - i < CPU_BLOCK_ELEMENTS ? total - i : CPU_BLOCK_ELEMENTS);
        cpu_load(CPU_COMPUTE_F64, out->dtype, out->data, i, 1, n, &x);
        for (size_t j = 0; j < n; j++)
            x.f64[j] /= count;
        cpu_store(CPU_COMPUTE_F64, out->dtype, &x, out->data, i, 1, n);
    }
    return STATUS_OK;
}

static status run_where(const cpu_call *c)
{
    const tensor *condition = c->inputs[0], *x = c->inputs[1], *y = c->inputs[2];
    tensor *out = &c->outputs[0];
    cpu_walk w;
    cpu_walk_broadcast(&w, out, 3, c->inputs);
    int64_t run = cpu_walk_run(&w);
    int64_t steps[] = {cpu_walk_step(&w, 1), cpu_walk_step(&w, 2), cpu_walk_step(&w, 3)};
    size_t bytes = dtype_bytes(out->dtype);
    cpu_cursor at;
    for (bool more = cpu_walk_start(&w, &at); more; more = cpu_walk_next(&w, &at)) {
        const uint8_t *choose = (const uint8_t *)condition->data + at.offsets[1];
        if (bytes == sizeof(uint32_t)) {
            const uint32_t *a = (const uint32_t *)x->data + at.offsets[2];
            const uint32_t *b = (const uint32_t *)y->data + at.offsets[3];
            uint32_t *to = (uint32_t *)out->data + at.offsets[0];
            for (int64_t i = 0; i < run; i++)
                to[i] = choose[i * steps[0]] ? a[i * steps[1]] : b[i * steps[2]];
            continue;
        }
        const char *a = (const char *)x->data + at.offsets[2] * (int64_t)bytes;
        const char *b = (const char *)y->data + at.offsets[3] * (int64_t)bytes;
        char *to = (char *)out->data + at.offsets[0] * (int64_t)bytes;
        for (int64_t i = 0; i < run; i++)
            memcpy(to + i * (int64_t)bytes,
                   choose[i * steps[0]] ? a + i * steps[1] * (int64_t)bytes
                                        : b + i * steps[2] * (int64_t)bytes,
                   bytes);
    }
    return STATUS_OK;
}

/* Clip is Min(Max(x, low), high) with scalar bounds. */
static status prepare_clip(cpu_prepare *p)
{
    if (p->inputs[0]->dtype >= DTYPE_BOOL + 1 && p->inputs[0]->dtype < DTYPE_BYTES)
        return STATUS_OK;
    return cpu_op_fail_dtype(p->node, p->inputs[0]->dtype);
}

static status run_clip(const cpu_call *c)
{
    const tensor *in = c->inputs[0],
                 *bounds[2] = {cpu_input(c->inputs, c->node, 1), cpu_input(c->inputs, c->node, 2)};
    tensor *out = &c->outputs[0];
    cpu_compute compute = cpu_compute_of(in->dtype);
    static const binary_block maxima[] = {max_f32, max_f64, max_i64, max_u64};
    static const binary_block minima[] = {min_f32, min_f64, min_i64, min_u64};
    cpu_block x, low, high;
    if (bounds[0])
        cpu_load(compute, in->dtype, bounds[0]->data, 0, 0, CPU_BLOCK_ELEMENTS, &low);
    if (bounds[1])
        cpu_load(compute, in->dtype, bounds[1]->data, 0, 0, CPU_BLOCK_ELEMENTS, &high);
    int64_t total = tensor_count(in);
    for (int64_t i = 0; i < total; i += CPU_BLOCK_ELEMENTS) {
        size_t n = (size_t)(total - i < CPU_BLOCK_ELEMENTS ? total - i : CPU_BLOCK_ELEMENTS);
        cpu_load(compute, in->dtype, in->data, i, 1, n, &x);
        if (bounds[0])
            maxima[compute](&x, &low, &x, n);
        if (bounds[1])
            minima[compute](&x, &high, &x, n);
        cpu_store(compute, out->dtype, &x, out->data, i, 1, n);
    }
    return STATUS_OK;
}

#define BINARY(identifier)                                                                         \
    {                                                                                              \
        GRAPH_OP_##identifier, prepare_binary, run_binary, 0, false                                \
    }
#define VARIADIC(identifier)                                                                       \
    {                                                                                              \
        GRAPH_OP_##identifier, prepare_binary, run_variadic, 0, false                              \
    }

static const cpu_op table[] = {
    BINARY(ADD),
    BINARY(SUB),
    BINARY(MUL),
    BINARY(DIV),
    BINARY(PRELU),
    BINARY(MOD),
    BINARY(POW),
    BINARY(AND),
    BINARY(OR),
    BINARY(XOR),
    BINARY(BITWISE_AND),
    BINARY(BITWISE_OR),
    BINARY(BITWISE_XOR),
    BINARY(BIT_SHIFT),
    BINARY(LESS),
    BINARY(LESS_OR_EQUAL),
    BINARY(GREATER),
    BINARY(GREATER_OR_EQUAL),
    VARIADIC(SUM),
    VARIADIC(MEAN),
    VARIADIC(MAX),
    VARIADIC(MIN),
    {GRAPH_OP_EQUAL, prepare_equal, run_binary, 0, false},
    {GRAPH_OP_WHERE, NULL, run_where, 0, false},
    {GRAPH_OP_CLIP, prepare_clip, run_clip, 0, false},
};

const cpu_op_family cpu_ops_binary = {table, sizeof table / sizeof table[0]};

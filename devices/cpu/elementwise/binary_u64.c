#define ELEMENT uint64_t
#define MEMBER u64
#include "devices/cpu/elementwise/binary_integer.h"

/* x / 0 is 0, as in NumPy, because padding may divide by it. */
static void div_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t x = a->u64[i], y = b->u64[i];
        out->u64[i] = y == 0 ? 0 : x / y;
    }
}

/* No element is negative. */
static void prelu_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    (void)b;
    for (size_t i = 0; i < count; i++)
        out->u64[i] = a->u64[i];
}

static void mod_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t x = a->u64[i], y = b->u64[i];
        out->u64[i] = y == 0 ? 0 : x % y;
    }
}

static void shift_left_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t x = a->u64[i], y = b->u64[i];
        out->u64[i] = y < 64 ? x << y : 0;
    }
}

static void shift_right_block(const cpu_block *a, const cpu_block *b, cpu_block *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t x = a->u64[i], y = b->u64[i];
        out->u64[i] = y < 64 ? x >> y : 0;
    }
}

const cpu_binary_block cpu_binary_blocks_u64[CPU_BINARY_COUNT] = {
    [CPU_BINARY_ADD] = add_block,
    [CPU_BINARY_SUB] = sub_block,
    [CPU_BINARY_MUL] = mul_block,
    [CPU_BINARY_DIV] = div_block,
    [CPU_BINARY_MAX] = max_block,
    [CPU_BINARY_MIN] = min_block,
    [CPU_BINARY_PRELU] = prelu_block,
    [CPU_BINARY_MOD] = mod_block,
    [CPU_BINARY_FMOD] = mod_block,
    [CPU_BINARY_POW] = pow_block,
    [CPU_BINARY_BITWISE_AND] = bitwise_and_block,
    [CPU_BINARY_BITWISE_OR] = bitwise_or_block,
    [CPU_BINARY_BITWISE_XOR] = bitwise_xor_block,
    [CPU_BINARY_SHIFT_LEFT] = shift_left_block,
    [CPU_BINARY_SHIFT_RIGHT] = shift_right_block,
    [CPU_BINARY_EQUAL] = equal_block,
    [CPU_BINARY_LESS] = less_block,
    [CPU_BINARY_LESS_OR_EQUAL] = less_or_equal_block,
    [CPU_BINARY_GREATER] = greater_block,
    [CPU_BINARY_GREATER_OR_EQUAL] = greater_or_equal_block,
};
